// Authority: structure, not prompt. Every rule about who may cause what is here.
import type { Offer } from "../protocol/offer.ts";
import { type Authority, authorities, type Lane, type Principal, type Role } from "../protocol/principal.ts";
import type { ThreadRow } from "../protocol/thread.ts";

const rank = (authority: Authority): number => authorities.indexOf(authority);

/** The lower of two authorities. */
export const lower = (a: Authority, b: Authority): Authority => (rank(a) >= rank(b) ? a : b);

export const atLeast = (have: Authority, need: Authority): boolean => rank(have) <= rank(need);

/** [A1] The authority a principal brings. An agent or a bot has what it speaks for, and nothing by itself. */
export function authorityOf(principal: Principal): Authority {
  const role: Role = principal.role;
  switch (role) {
    case "owner":
    case "member":
    case "guest":
    case "public":
      return role;
    case "bot":
    case "agent":
      return principal.onBehalfOf ?? "public";
  }
}

/** [A3] Members and owners are the team; everybody else is the public lane. */
export const laneOf = (authority: Authority): Lane => (atLeast(authority, "member") ? "team" : "public");

/** A person, and no program, of the team. */
export const isTeamPerson = ({ role }: Pick<Principal, "role">): boolean => role === "owner" || role === "member";

/** A person, of the team or not. */
export const isPerson = ({ role }: Pick<Principal, "role">): boolean => role !== "agent" && role !== "bot";

/** The router as somebody who acts with an authority. `name`: whose word people read in it. */
export const asRouter = (name: string, onBehalfOf: Authority): Principal => ({ role: "agent", id: "router", name, onBehalfOf });

/** [A4] Text of the public lane taints every context that it enters. */
export const taints = (principal: Principal): boolean => principal.role !== "agent" && laneOf(authorityOf(principal)) === "public";

/** [A7] Our own output taints when it was made from public text: an answer in the public lane may repeat what it answers. */
export const rowTaints = (row: ThreadRow): boolean => {
  switch (row.kind) {
    case "trigger":
      return taints(row.trigger.principal);
    case "outbound":
      return row.outbound.tainted === true;
    case "topic":
      return false;
  }
};

/** [A7] The same of what a task proposed and nobody said yet. */
export const offerTaints = ({ from }: Pick<Offer, "from">): boolean => from.tainted || laneOf(from.authority) === "public";

/**
 * [A5] A command on a machine needs a root principal of the team and a worker free of public taint.
 * Returns null when it may run, else the reason for people.
 */
export function refuseCommand(task: { authority: Authority; tainted: boolean }): string | null {
  if (!atLeast(task.authority, "member")) return "Commands on a machine need a member of the team; this request came from outside it.";
  if (task.tainted)
    return "This task has read text from outside the team, so it may not run commands on a machine. Ask for the work in a place that only the team can write to.";
  return null;
}
