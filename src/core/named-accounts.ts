// Which accounts a rule means by the name of a principal.
import type { GateRule } from "../protocol/gate.ts";

/**
 * [G15] The account of exactly this name, and at GitHub the program's: `renovate` also means `renovate[bot]`. GitHub gives a program no
 * name that is another's login, so the twin of a person's login is nobody else's.
 */
export function namedAccounts({ principalId, source }: Pick<GateRule, "principalId" | "source">): string[] {
  if (principalId === undefined) return [];
  const mayBeProgram = (source ?? "github") === "github" && /^[a-z0-9][a-z0-9-]*$/i.test(principalId);
  return mayBeProgram ? [principalId, `${principalId}[bot]`] : [principalId];
}
