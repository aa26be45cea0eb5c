// Which accounts a rule means by the name of a principal.
import type { GateRule } from "../protocol/gate.ts";

/**
 * [G15] The account of exactly this name, and at GitHub the program's: `renovate` also means `renovate[bot]`. GitHub gives a program no
 * name that is another's login, so the twin of a person's login is nobody else's; elsewhere it may be.
 */
export function namedAccounts({ principalId, source }: Pick<GateRule, "principalId" | "source">): string[] {
  if (principalId === undefined) return [];
  const mayBeProgram = (source ?? "github") === "github" && /^[a-z0-9][a-z0-9-]*$/i.test(principalId);
  return mayBeProgram ? [principalId, `${principalId}[bot]`] : [principalId];
}

const folded = (name: string): string => name.replace(/[A-Z]/g, (letter) => letter.toLowerCase());

/** [G15] Upper and lower case of the Latin letters are one name. Of no other sign: some fold into a letter that they only look like. */
export const isNamed = (rule: Pick<GateRule, "principalId">, by: { source: string; id: string }): boolean =>
  namedAccounts({ ...rule, source: by.source }).some((account) => account.length === by.id.length && folded(account) === folded(by.id));
