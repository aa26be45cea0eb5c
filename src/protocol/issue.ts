// What a schema says of data that does not fit it.

type Misfit = { issues: readonly { path: readonly PropertyKey[]; message: string }[] };

/** The first thing that is wrong, after the name of its field; `whole` names what is wrong as a whole. */
export function firstIssue({ issues: [issue] }: Misfit, whole: string): string {
  return `${issue?.path.join(".") || whole}: ${issue?.message ?? "does not parse"}`;
}
