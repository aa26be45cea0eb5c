// Every object has a short prefixed id. How ids are made is `src/core/ids.ts`; here is only their form.
import * as z from "zod/mini";

export const idPrefixes = ["trg", "thr", "tsk", "rep", "ep", "cmd", "art", "out", "dec", "prs", "seg", "fct", "sch", "rul", "nts"] as const;
export type IdPrefix = (typeof idPrefixes)[number];

const idOf = (prefix: IdPrefix) =>
  z.string().check(z.regex(new RegExp(`^${prefix}_[a-z0-9]+(-[a-z0-9]+)?$`), `is not a ${prefix}_ id`), z.maxLength(64));

export const triggerId = idOf("trg");
export const threadId = idOf("thr");
export const taskId = idOf("tsk");
export const reportId = idOf("rep");
export const endpointId = idOf("ep");
export const commandId = idOf("cmd");
export const artifactId = idOf("art");
export const decisionId = idOf("dec");
export const personId = idOf("prs");
export const factId = idOf("fct");

export type TriggerId = string;
export type ThreadId = string;
export type TaskId = string;
export type ReportId = string;
export type EndpointId = string;
export type CommandId = string;
export type ArtifactId = string;
export type OutboundId = string;
export type PersonId = string;
