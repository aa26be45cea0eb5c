// The same road without a runtime: the channels' parsers, the gate's shipped rules, and one turn of the offline router, as plain calls.

import { parseGeneric } from "../../../src/channels/generic/parse.ts";
import { parseGitHub } from "../../../src/channels/github/parse.ts";
import { webTrigger } from "../../../src/channels/web.ts";
import { authorityOf, laneOf, taints } from "../../../src/core/authority.ts";
import { excerpt } from "../../../src/core/context.ts";
import { defaultRules, judge } from "../../../src/core/gate.ts";
import type { EarlierRow, KnownMachine, QueuedTrigger } from "../../../src/core/router.ts";
import { decideStep } from "../../../src/core/router-decide.ts";
import { renderTurn } from "../../../src/core/router-items.ts";
import { routerPrompt } from "../../../src/core/router-prompt.ts";
import { rootThreadIdOf } from "../../../src/core/thread.ts";
import { answerChat } from "../../../src/llm/offline/planner.ts";
import type { Principal } from "../../../src/protocol/principal.ts";
import { routerTools } from "../../../src/protocol/router-tools.ts";
import type { Trigger } from "../../../src/protocol/trigger.ts";
import type { Labelled } from "./labelled.ts";
import { becameOf, type Outcome } from "./outcome.ts";
import { agentLogin, doorOf, earlierOf, payloadOf, roleOf, roleOfHandle } from "./road.ts";

const nowMs = Date.UTC(2026, 0, 5, 9);
const agentName = "Switchyard";
const machine: KnownMachine = {
  id: "ep_eval",
  name: "build-01",
  online: true,
  workspaces: ["main"],
  revoked: false,
  revision: 1,
  seenMs: nowMs,
};

/** The message as its channel would hand it over. */
export function triggerOf(line: Labelled): Trigger {
  const { handle } = line.who;
  const principal: Principal = { role: roleOf(line), id: handle, name: handle };
  switch (doorOf(line)) {
    case "page": {
      const target = { threadId: rootThreadIdOf(handle), topicOf: null, title: "Conversation" };
      return webTrigger({ t: "send", clientMsgId: line.id, threadId: target.threadId, text: line.text }, principal, target, nowMs);
    }
    case "generic": {
      const { id, kind, text, addressed } = line;
      const body = { kind, text, thread: id, addressed, principal: { id: handle, name: handle, role: roleOf(line) } };
      return parseGeneric(body, { place: kind === "message" ? "chat" : kind, deliveryId: id, nowMs }).trigger;
    }
    case "github": {
      const { event, payload } = payloadOf(line, 1);
      const parsed = parseGitHub(event, payload, { deliveryId: line.id, label: line.id, nowMs, login: agentLogin, secret: null });
      if ("ignored" in parsed) throw new Error(`${line.id}: ${parsed.ignored}`);
      const [draft] = parsed.drafts;
      return { ...draft.trigger, threadTitle: draft.title.words?.text ?? draft.title.plain, principal };
    }
  }
}

/** What the shipped rules and the offline router make of a message that stands alone in its turn. */
export function playFast(line: Labelled): Outcome {
  const trigger = triggerOf(line);
  const verdict = judge(defaultRules, trigger);
  const about = { line, rule: verdict.rule, policy: null, usage: null };
  if (verdict.outcome !== "candidate" && verdict.outcome !== "request") return { ...about, became: "silent", what: verdict.reason };
  const lane = laneOf(authorityOf(trigger.principal));
  const item: QueuedTrigger = {
    kind: "trigger",
    id: trigger.id,
    lane,
    threadId: trigger.threadId,
    seq: 1,
    attempts: 0,
    tries: 0,
    problem: null,
    tasks: [],
    trigger,
    verdict,
    before: earlierOf(line).map(({ who, text }, n): EarlierRow => {
      const ours = who === agentLogin;
      const role = ours ? "agent" : roleOfHandle(who);
      return { id: `row-${n}`, role, name: ours ? "you" : who, text: excerpt(text, 50), taints: taints({ role, id: who, name: who }) };
    }),
  };
  const turn = { turn: 1, lane, machines: [machine], policies: [], nowMs };
  const message = renderTurn({ ...turn, items: [item], tasks: [], readers: [], observed: [], summary: [] });
  const answer = JSON.parse(
    answerChat(
      JSON.stringify({
        model: "offline",
        messages: [
          { role: "system", content: routerPrompt(agentName, lane) },
          { role: "user", content: message },
        ],
        tools: Object.keys(routerTools).map((name) => ({ type: "function", function: { name } })),
      }),
    ),
  ) as { choices: [{ message: { tool_calls?: { id: string; function: { name: string; arguments: string } }[] } }] };
  const calls = (answer.choices[0].message.tool_calls ?? []).map((call) => ({
    callId: call.id,
    tool: call.function.name,
    input: JSON.parse(call.function.arguments) as unknown,
  }));
  const view = {
    ...turn,
    step: 1,
    capped: false,
    agentName,
    items: new Map([[item.id, item]]),
    progress: new Map(),
    // What is too long for a chat is taken as it is: it is cut, and still an answer.
    shortened: new Set([item.id]),
    tasks: new Map(),
  };
  const { decisions, refused } = decideStep(view, calls);
  const what = [...decisions.map(({ tool, reason }) => `${tool}: ${reason}`), ...refused.map(({ reason }) => `refused: ${reason}`)].join(
    "; ",
  );
  return { ...about, became: decisions.length === 0 ? "none" : becameOf(decisions), what };
}
