export const answerChat = (body: string): string => body;
