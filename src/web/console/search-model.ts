// What the search page finds in what is set up: a line each, with the page that it stands on.
import type { EndpointsAnswer, PeopleAnswer, PoliciesAnswer, ProfilesAnswer, RulesAnswer } from "../../protocol/console.ts";
import type { SchedulesAnswer } from "../../protocol/schedule.ts";
import { holdsWords } from "./model.ts";
import { conditionsOf, outcomeWords } from "./rules-model.ts";

/** What has been read so far. */
export type SetUps = {
  schedules?: SchedulesAnswer["schedules"] | undefined;
  machines?: EndpointsAnswer["endpoints"] | undefined;
  people?: PeopleAnswer["people"] | undefined;
  policies?: PoliciesAnswer["policies"] | undefined;
  rules?: RulesAnswer["inForce"]["rules"] | undefined;
  profiles?: ProfilesAnswer["profiles"] | undefined;
};

export type SetUpLine = { key: string; what: string; href: string; title: string; text: string };

const linesOf = ({ schedules, machines, people, policies, rules, profiles }: SetUps): SetUpLine[] => [
  ...(schedules ?? []).map(({ id, name, words, text, by, state }) => ({
    ...{ key: id, what: "Schedule", href: "#/schedules", title: name },
    text: `${words} · ${state} · for ${by.name} · ${text}`,
  })),
  ...(machines ?? [])
    .filter(({ revokedMs }) => revokedMs === null)
    .map(({ endpointId, name, platform }) => ({ key: endpointId, what: "Machine", href: "#/machines", title: name, text: platform })),
  ...(people ?? []).map(({ personId, name, role, revokedMs }) => ({
    ...{ key: personId, what: "Person", href: "#/people", title: name },
    text: revokedMs === null ? role : "access withdrawn",
  })),
  ...(policies ?? []).map(({ id, text, enabled }) => ({
    ...{ key: `policy ${id}`, what: "Policy", href: "#/rules", title: id },
    text: `${enabled ? "on" : "off"} · ${text}`,
  })),
  ...(profiles ?? []).map(({ name, purpose }) => ({
    key: `profile ${name}`,
    what: "Profile",
    href: "#/profiles",
    title: name,
    text: purpose,
  })),
  ...(rules ?? []).map((rule) => ({
    ...{ key: `rule ${rule.id}`, what: "Rule", href: "#/rules", title: rule.id },
    text: `${outcomeWords[rule.outcome]} · ${conditionsOf(rule)} · ${rule.reason}`,
  })),
];

/** Lines that hold every word. */
export const findSetUps = (known: SetUps, query: string): SetUpLine[] =>
  linesOf(known).filter(({ what, title, text }) => holdsWords(`${what} ${title} ${text}`, query));
