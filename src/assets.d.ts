// Files that the bundler turns into text.
declare module "*.sql" {
  const text: string;
  export default text;
}
