// The offline router: one decision for each trigger and report of the last turn.
import { excerpt, parseMessage } from "../../core/context.ts";
import { type ContextItem, hiddenTitle, type RouterItem, type TaskLine } from "../../protocol/context-items.ts";
import type { Lane } from "../../protocol/principal.ts";
import { timerKind } from "../../protocol/trigger.ts";
import type { Answer, Chat } from "./chat.ts";
import { askedToForget, asksWhatIsKept, factsOf, listFacts } from "./facts.ts";
import { describe, type Intent, isWork, titleOf, type WorkIntent } from "./intents.ts";
import { nothingAsked, toldOfUs } from "./nothing-asked.ts";
import { planTimed, type Schedules, timeForms } from "./plan-schedule.ts";
import { readIntents, shortRuns, unreadBesideWork } from "./read-intents.ts";
import { lineToConfirm, readPolicy } from "./read-policy.ts";
import { quoted, unreadOf } from "./unread.ts";

type Trigger = Extract<RouterItem, { item: "trigger" }>;
type Machine = Extract<RouterItem, { item: "machines" }>["list"][number];
type Call = NonNullable<Answer["calls"]>[number];
type View = {
  name: string;
  lane: Lane;
  open: TaskLine[];
  recent: TaskLine[];
  machines: Machine[];
  earlier: Trigger[];
  schedules: Schedules | null;
  /** What was found in this turn of what we remember: `kept` in words, null while nobody looked. */
  facts: ReturnType<typeof factsOf>;
  /** What code refused of our calls, in words for people, by the trigger that they settle. */
  refused: ReadonlyMap<string, string>;
};

/** What this model can do, in words for people. */
export const abilities =
  "I can run the tests, build, lint or type-check, run a command that you spell out (`npm test`), search the files, list or show them, count lines, and say what changed in git.";
const realModel = "For everything else, set a real model: MODEL_PROVIDER, see the README.";

const itemsOf = (chat: Chat): { turn: number; lane: Lane; items: ContextItem[] }[] =>
  chat.messages.flatMap((message) => {
    const parsed = message.role === "user" ? parseMessage(message.text) : null;
    return parsed === null || !("lane" in parsed.head) ? [] : [{ ...parsed.head, items: parsed.items }];
  });

/** What we are called, as the system's first words say it. */
function nameIn(chat: Chat): string {
  const [first] = chat.messages;
  return (first?.role === "system" ? /^You are ([^,\n]{1,60}),/.exec(first.text)?.[1] : undefined) ?? "";
}

const undone: Record<string, string> = {
  set_policy: "I have not changed any rule.",
  schedule: "I have left the schedules as they are.",
  remember: "I have not kept that.",
};

/** What was refused is not tried again: whoever asked for it hears why. */
function refusedCalls(chat: Chat): ReadonlyMap<string, string> {
  const outputs = new Map(chat.messages.flatMap((message) => (message.role === "tool" ? [[message.callId, message.output] as const] : [])));
  const calls = chat.messages.flatMap((message) => (message.role === "assistant" ? message.calls : []));
  return new Map(
    calls.flatMap(({ callId, tool, input }) => {
      const forgets = tool === "remember" && input.text === undefined;
      const words = forgets ? "I have forgotten nothing." : Object.hasOwn(undone, tool) ? undone[tool] : undefined;
      const reason = words === undefined ? undefined : /^\{"refused":(".*")\}$/s.exec(outputs.get(callId) ?? "")?.[1];
      const settles = Array.isArray(input.settles) ? input.settles : [];
      return reason === undefined ? [] : settles.map((id) => [String(id), `${words} ${String(JSON.parse(reason))}`] as const);
    }),
  );
}

const isTrigger = (item: ContextItem): item is Trigger => item.item === "trigger";

/** The decisions of one turn, whose items may have come in several messages. */
export function planRouter(chat: Chat): Answer {
  const turns = itemsOf(chat);
  const last = turns.at(-1);
  if (last === undefined) return { text: "There is nothing to decide." };
  const newest = <K extends "tasks" | "machines" | "schedules">(kind: K): Extract<ContextItem, { item: K }> | undefined =>
    turns.flatMap((turn) => turn.items).findLast((item): item is Extract<ContextItem, { item: K }> => item.item === kind);
  const view: View = {
    name: nameIn(chat),
    lane: last.lane,
    open: newest("tasks")?.open ?? [],
    recent: newest("tasks")?.recent ?? [],
    machines: newest("machines")?.list ?? [],
    schedules: newest("schedules") ?? null,
    refused: refusedCalls(chat),
    facts: factsOf(chat),
    earlier: turns.filter(({ turn }) => turn !== last.turn).flatMap(({ items }) => items.filter(isTrigger)),
  };
  // Items that joined the turn came in a message of their own.
  const items = turns.filter(({ turn }) => turn === last.turn).flatMap((each) => each.items);
  const calls = items.flatMap((item): Call[] => {
    if (isTrigger(item)) return decide({ ...item, text: shortRuns(item.text) }, view);
    // Reports that reach the model wait for a word to people: theirs is ready to show.
    if (item.item === "report" && item.kind === "proposal")
      return [{ tool: "record", input: { settles: [item.id], reason: "a person of the team decides about it" } }];
    if (item.item === "report") return [{ tool: "relay", input: { settles: [item.id], report: item.id } }];
    return [];
  });
  return calls.length > 0 ? { calls } : { text: "There is nothing to decide." };
}

function decide(trigger: Trigger, view: View): Call[] {
  const settles = [trigger.id];
  const record = (reason: string): Call[] => [{ tool: "record", input: { settles, reason } }];
  const reply = (text: string): Call[] => [{ tool: "reply", input: { settles, text } }];
  // A schedule that is due speaks for the person who made it.
  if ((trigger.from.role === "bot" || trigger.from.role === "agent") && trigger.kind !== timerKind)
    return record(`${trigger.kind} of a program; nobody asked for anything`);
  if (trigger.verdict === "candidate" && !trigger.addressed)
    return record(`${trigger.kind}, not addressed to us; nobody asked for anything`);

  const overheard = isSaidToOthers(trigger) ? toldOfUs(trigger.text, view.name) : null;
  if (overheard !== null) return record(`${overheard}; nobody asked for anything`);

  const refused = view.refused.get(trigger.id);
  if (refused !== undefined) return reply(refused);
  const timed = planTimed(trigger, view.schedules, view.lane === "team");
  if (timed !== null) return timed;
  const policy = trigger.kind === timerKind ? null : readPolicy(trigger.text);
  if (policy !== null) return [{ tool: "set_policy", input: { settles, ...policy } }];
  const toConfirm = lineToConfirm(trigger.text, trigger.before?.at(-1));
  if (toConfirm !== null) return reply(`Say “${toConfirm}”: only that line, in your own words, saves it.`);
  if (view.lane === "team" && asksWhatIsKept(trigger.text)) return view.facts.kept === null ? listFacts : reply(view.facts.kept);
  const unwanted = trigger.kind === timerKind ? null : askedToForget(trigger.text);
  // Code refuses people from outside the team; it has to see that they asked.
  if (unwanted !== null) return view.facts.forgetting(settles, view.lane === "team" ? unwanted : "fct_none");
  const told =
    /^\s*(?:@\S+\s+)?(?:please\s+)?remember(\s+for\s+(?:the\s+team|everybody|everyone))?(?:\s+that)?[:,]?\s+(.{3,400}?)\s*$/isu.exec(
      trigger.text,
    );
  if (told?.[2] !== undefined) return remember(settles, told[2], told[1] !== undefined, trigger.source);

  const intents = readIntents(
    trigger,
    view.machines.map((machine) => machine.name),
  );
  const work = intents.filter(isWork);
  const ended = endedTopic(trigger, view);
  if (ended !== undefined && (work.length > 0 || intents.some(({ kind }) => kind === "again")))
    return [{ tool: "resolve", input: { settles, task: ended.id, how: "reopen" } }];
  if (work.length > 0) return dispatch(trigger, work, view);
  const first = <K extends Intent["kind"]>(kind: K) =>
    intents.find((intent): intent is Extract<Intent, { kind: K }> => intent.kind === kind);
  const quiet = wantsNothing(trigger, view);
  if (quiet !== null) return record(`${quiet}; nobody asked for anything`);
  const stop = first("stop");
  if (stop) return withRest(cancel(trigger, stop.target, view), intents);
  if (first("again")) return again(trigger, view);
  if (first("status")) return withRest(reply(status(trigger, view)), intents);
  const outside = isOutside(trigger, view);
  const unable = first("unable");
  // Code refuses it and lets the team know: that is all that a guest can bring about.
  if (outside && unable)
    return [{ tool: "dispatch", input: { settles, title: excerpt(unable.what, 100), goal: excerpt(unable.what, 2_000) } }];
  const social = outside ? (first("help") ?? first("greeting") ?? first("unknown")) : undefined;
  if (social) return reply(guestWelcome(trigger, social.kind));
  if (unable) return reply(`That is beyond the offline model that I run on (“${excerpt(unable.what, 60)}”). ${abilities} ${realModel}`);
  const unknown = first("unknown");
  if (unknown)
    return reply(
      `Sorry, I did not understand that. I run on the offline model, which knows only a few forms: say “help”, and I list them. ${abilities} ${realModel}`,
    );
  if (first("help")) return reply(help(view.schedules));
  if (first("thanks") && !trigger.text.includes("?")) return record("thanks; nobody asked for anything");
  if (first("greeting")) return reply(`Hello ${firstName(trigger.from.name)}! What shall I do? Ask me for “help” to see what I can.`);
  return reply(outside ? guestWelcome(trigger, "unknown") : `I do not see what to do here. ${abilities}`);
}

/** What was asked for beside it is not left out without a word. */
function withRest(calls: Call[], intents: readonly Intent[]): Call[] {
  const rest = [...intents.flatMap((intent) => (intent.kind === "unable" ? [intent.what] : [])), ...unreadOf(intents)];
  if (rest.length === 0) return calls;
  const left = `I have done nothing about ${quoted(rest)}: that is beyond the offline model.`;
  return calls.map((call) => (call.tool === "reply" ? { ...call, input: { ...call.input, text: `${call.input.text}\n\n${left}` } } : call));
}

/** Why nothing is to be said; null while there is a question of ours that it may answer, or work here that may be meant. */
function wantsNothing(trigger: Trigger, view: View): string | null {
  const why = nothingAsked(trigger.text, view.name);
  const last = trigger.before?.at(-1);
  if (why === "it takes note" && last?.from === "you" && last.text.includes("?")) return null;
  return why === "it is taken back" && openHere(trigger, view.open).length > 0 ? null : why;
}

/** Others are there, and only our name says that we are meant: no page of one's own, no letter, nothing that was assigned to us. */
const isSaidToOthers = ({ source, kind }: Trigger): boolean => source !== "web" && /^message$|\.(?:created|opened|submitted)$/.test(kind);

const openHere = (trigger: Trigger, open: readonly TaskLine[]): readonly TaskLine[] =>
  open.filter((task) => trigger.tasks?.includes(task.id) || task.thread === trigger.thread);

/** A topic has one task and one card: who asks for more in a finished one asks that task. */
const endedTopic = (trigger: Trigger, view: View): TaskLine | undefined =>
  trigger.source === "web" ? view.recent.find((task) => task.thread === trigger.thread) : undefined;

const isOutside = (trigger: Trigger, view: View): boolean =>
  view.lane === "public" || trigger.from.role === "guest" || trigger.from.role === "public";

/** Guests hear what they can do; how this deployment is set up is not their matter. */
function guestWelcome(trigger: Trigger, kind: Intent["kind"]): string {
  const can = "You can talk to me here and ask for work: I let the team know, and its members can start it.";
  if (kind === "greeting") return `Hello ${firstName(trigger.from.name)}! ${can}`;
  return kind === "help" ? `I am an agent that works for this team. ${can}` : `I did not understand that. ${can}`;
}

const factKind = (fact: string): string =>
  /\b(?:i|we) (?:like|prefer|want|hate|love)\b|\bprefers?\b/i.test(fact)
    ? "preference"
    : /\b(?:always|never|must|only)\b/i.test(fact)
      ? "rule"
      : "background";

/** What is told in a conversation of one's own stays there; people hear how to tell it to all. */
function remember(settles: string[], text: string, team: boolean, source: string): Call[] {
  const kind = factKind(text);
  const here = source === "web" && !team && kind !== "rule";
  const said = here ? "I will remember that here. To let the whole team know, say: remember for the team that …" : "I will remember that.";
  return [
    { tool: "remember", input: { settles, kind, text, ...(team ? { for: "team" } : {}) } },
    { tool: "reply", input: { settles, text: said } },
  ];
}

const firstName = (name: string): string => name.trim().split(/\s+/)[0] ?? name;

/** Within the limit of a chat: longer, it would cost a second call and come back cut. */
const help = (schedules: Schedules | null): string =>
  [
    "Offline I know:",
    "- run the tests (only the login tests), build, lint, typecheck, `any command`",
    "- search for “text”, find *.md, list files, show README.md, count lines in FILE, what changed?",
    "- what is going on?, stop",
    `- ${timeForms(schedules).join("; ")}`,
    "- list schedules, pause/resume/cancel schedule NAME",
    "- remember (for the team) …; forget …; what do you remember?",
    "- owners: stop reacting to NAME, mute acme/app(#12), list policies, policy NAME: words, switch policy NAME off, undo rul_…",
    "",
    "More: a real model.",
  ].join("\n");

function dispatch(trigger: Trigger, work: readonly WorkIntent[], view: View): Call[] {
  const title = titleOf(work);
  const machine = machineFor(trigger, view.machines);
  return [
    {
      tool: "dispatch",
      input: {
        settles: [trigger.id],
        title,
        goal: goalOf(work),
        ...(machine ? { machine: machine.id } : {}),
        // Told only to the team: what machines there are is nobody else's business. What is asked about first is not "on it".
        ...(view.lane === "team" && !work.some((one) => one.kind === "command" && one.unsure)
          ? { acknowledge: [acknowledgement(title, machine), ...notUnderstood(trigger, view)].join(" ") }
          : {}),
      },
    },
  ];
}

/** Said at once, so that it can be put in other words while the rest is done. */
function notUnderstood(trigger: Trigger, view: View): string[] {
  const unread = unreadBesideWork(
    trigger,
    view.machines.map((machine) => machine.name),
  );
  return unread.length === 0 ? [] : [`I did not understand ${quoted(unread)}.`];
}

/** Also read by the offline worker when the quoted text alone says too little (“again”): its first sentence stays in the forms that are known. */
function goalOf(work: readonly WorkIntent[]): string {
  const list = work.map(describe).join(", then ");
  return `${list.charAt(0).toUpperCase()}${list.slice(1)}.\nDone when the report says which command ran, its exit code, and what its output shows: for tests the names of those that fail.`;
}

function machineFor(trigger: Trigger, machines: readonly Machine[]): Machine | undefined {
  const text = trigger.text.toLowerCase();
  const named = machines.filter((machine) => text.includes(machine.name.toLowerCase())).sort((a, b) => b.name.length - a.name.length)[0];
  return named ?? machines.find((machine) => machine.online) ?? machines[0];
}

function acknowledgement(title: string, machine: Machine | undefined): string {
  const what = title.charAt(0).toLowerCase() + title.slice(1);
  if (machine === undefined) return `I noted it: ${what}. But no machine is connected yet: enrol one in the console, then ask me again.`;
  if (!machine.online) return `On it: ${what}, as soon as ${machine.name} is online again.`;
  return `On it: ${what}, on ${machine.name}.`;
}

function again(trigger: Trigger, view: View): Call[] {
  for (const earlier of view.earlier.toReversed()) {
    if (earlier.thread !== trigger.thread) continue;
    const work = readIntents(
      earlier,
      view.machines.map((machine) => machine.name),
    ).filter((intent) => isWork(intent) && !(intent.kind === "command" && intent.unsure)) as WorkIntent[];
    if (work.length > 0) return dispatch(trigger, work, view);
  }
  return [{ tool: "reply", input: { settles: [trigger.id], text: "I do not know what to do again: nothing was asked for here before." } }];
}

const stopWords = new Set(
  "the a an it that this them all everything task job work please run running to of on in and with my our your".split(" "),
);
const wordsOf = (text: string): string[] =>
  text
    .toLowerCase()
    .split(/[^\p{L}\p{N}:._-]+/u)
    .filter((word) => word !== "" && !stopWords.has(word));

function cancel(trigger: Trigger, target: string, view: View): Call[] {
  const settles = [trigger.id];
  const reply = (text: string): Call[] => [{ tool: "reply", input: { settles, text } }];
  // Code refuses people from outside the team; it has to see that they asked.
  if (view.lane === "public")
    return [{ tool: "cancel", input: { settles, task: /tsk_[a-z0-9-]+/.exec(target)?.[0] ?? "tsk_none", reason: "asked to stop" } }];
  const open = view.open.filter((task) => task.status !== "cancelling");
  const found = matchingTasks(target, trigger, open);
  const only = found.length === 1 ? found[0] : undefined;
  if (only)
    return [
      { tool: "cancel", input: { settles, task: only.id, reason: `${trigger.from.name} asked to stop it` } },
      { tool: "reply", input: { settles, text: `I have asked “${only.title}” to stop.` } },
    ];
  if (open.length === 0)
    return reply(view.open.length > 0 ? "It is being stopped already." : "Nothing is running, so there is nothing to stop.");
  const list = (found.length > 0 ? found : open).slice(0, 8).map((task) => `- ${task.title} (${task.minutes} min)`);
  return reply(
    `${found.length > 0 ? "Which one shall I stop?" : "I do not find that one. These are open:"}\n${list.join("\n")}\nName one${trigger.source === "web" ? ", or press Stop on its card" : ""}.`,
  );
}

/** By id, by the words of the title, or the only one there is. */
function matchingTasks(target: string, trigger: Trigger, open: readonly TaskLine[]): readonly TaskLine[] {
  const id = /tsk_[a-z0-9-]+/.exec(target)?.[0];
  if (id !== undefined) return open.filter((task) => task.id === id);
  const words = wordsOf(target);
  if (words.length > 0) {
    const scored = open.map((task) => ({
      task,
      score: words.filter((word) => wordsOf(task.title).some((other) => other.startsWith(word) || word.startsWith(other))).length,
    }));
    const best = Math.max(0, ...scored.map((each) => each.score));
    return best === 0 ? [] : scored.filter((each) => each.score === best).map((each) => each.task);
  }
  const here = openHere(trigger, open);
  return here.length === 1 ? here : open;
}

const shown = 5;

/** As the pages say it. */
const wordOf = (status: string): string => ({ cancelled: "stopped", cancelling: "stopping" })[status] ?? status;

function status(trigger: Trigger, view: View): string {
  if (view.lane === "public") {
    const own = openHere(trigger, view.open);
    return own.length > 0
      ? `The team is at work on this (${wordOf(own[0]?.status ?? "")}).`
      : "There is nothing that I can tell about the team's work here.";
  }
  const lines: string[] = [];
  if (view.open.length === 0) lines.push("Nothing is running.");
  else {
    lines.push(view.open.length === 1 ? "One task is open:" : `${view.open.length} tasks are open:`);
    const told = view.open.filter(({ title }) => title !== hiddenTitle);
    const hidden = view.open.length - told.length;
    for (const task of told.slice(0, shown)) {
      const where = task.machine && task.status !== "waiting" ? ` on ${task.machine}` : "";
      lines.push(
        `- ${task.title}: ${wordOf(task.status)}${where}, ${task.minutes} min${task.line ? ` (${excerpt(task.line.replaceAll("`", ""), 60)})` : ""}`,
      );
    }
    if (told.length > shown) lines.push(`- and ${told.length - shown} more`);
    if (hidden > 0) lines.push(hidden === 1 ? "- one of another conversation" : `- ${hidden} of other conversations`);
    lines.push("");
  }
  const recent = view.recent.filter(({ title }) => title !== hiddenTitle).slice(0, view.open.length > 2 ? 1 : 3);
  if (recent.length > 0) lines.push(`Last: ${recent.map((task) => `${task.title} (${wordOf(task.status)})`).join("; ")}.`);
  const online = view.machines.filter((machine) => machine.online).map((machine) => machine.name);
  const offline = view.machines.filter((machine) => !machine.online).map((machine) => machine.name);
  if (view.machines.length === 0) lines.push("No machine is connected.");
  else
    lines.push(
      [
        online.length > 0 ? `Online: ${online.slice(0, 5).join(", ")}.` : "",
        offline.length > 0 ? `Offline: ${offline.slice(0, 5).join(", ")}.` : "",
      ]
        .filter(Boolean)
        .join(" "),
    );
  return lines.join("\n");
}
