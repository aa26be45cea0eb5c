// What the bare object of `bare-step.ts` is asked to do.
export type BareTurns = {
  baseUrl: string;
  model: string;
  system: string;
  tools: { name: string; description: string; schema: object }[];
  /** What each turn is told. */
  text: string;
  turns: number;
};

export type BareRpc = {
  turns(input: BareTurns): Promise<void>;
  nothing(input: unknown): Promise<void>;
};
