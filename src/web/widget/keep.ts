// What the browser keeps for this page: the session, drafts, and the outbox with one key an entry, so that two tabs do not undo each other.
import { type OutboxEntry, parseEntry, serialiseEntry } from "./outbox.ts";

const prefix = "switchyard:";
const memory = new Map<string, string>();

/** False when the browser keeps nothing for a framed page: then a reload forgets, and the page says so. */
export const keepsAcrossReloads: boolean = (() => {
  try {
    localStorage.setItem(`${prefix}probe`, "1");
    localStorage.removeItem(`${prefix}probe`);
    return true;
  } catch {
    return false;
  }
})();

export function read(key: string): string | null {
  return memory.get(key) ?? (keepsAcrossReloads ? localStorage.getItem(prefix + key) : null);
}

export function write(key: string, value: string | null): void {
  try {
    if (value === null) localStorage.removeItem(prefix + key);
    else localStorage.setItem(prefix + key, value);
    memory.delete(key);
  } catch {
    // Full or forbidden: the page keeps working, and keeps it at least while it is open.
    if (value === null) memory.delete(key);
    else memory.set(key, value);
  }
}

const outboxKey = (person: string, clientMsgId = ""): string => `outbox:${person}:${clientMsgId}`;

export const keepEntry = (person: string, entry: OutboxEntry): void =>
  write(outboxKey(person, entry.frame.clientMsgId), serialiseEntry(entry));
export const forgetEntry = (person: string, clientMsgId: string): void => write(outboxKey(person, clientMsgId), null);

/** The kept entries of a person, oldest first. */
export function keptEntries(person: string): OutboxEntry[] {
  if (!keepsAcrossReloads) return [];
  const start = prefix + outboxKey(person);
  return Object.keys(localStorage)
    .filter((key) => key.startsWith(start))
    .flatMap((key) => parseEntry(localStorage.getItem(key) ?? "") ?? [])
    .sort((a, b) => a.atMs - b.atMs);
}
