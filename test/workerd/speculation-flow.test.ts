// One speculative task all the way on the deployment's own objects: the router starts it, its worker works in silence, a person sends it.
import { evictDurableObject } from "cloudflare:test";
import { env } from "cloudflare:workers";
import { expect, test } from "vitest";
import { type Env, routerName } from "../../src/env.ts";
import type { BoardState } from "../../src/protocol/board.ts";
import type { OfferView } from "../../src/protocol/offer.ts";
import type { SpeculationAnswer } from "../../src/protocol/speculation.ts";
import { policiesInForce } from "../../src/storage/policies.ts";
import { triggerOf } from "../support/router-fixtures.ts";
import { until } from "../support/until.ts";
import { asOperator, ok } from "./console-support.ts";
import { decided, type Lab, saidIn, say, scriptModel } from "./router-lab.ts";
import { partsOf } from "./speculation-lab.ts";

const objects = env as unknown as Env;
const token = `flow${Date.now().toString(36)}`;
const lab: Lab = { token, router: objects.ROUTER.getByName(routerName) };

test("[SP2][SP4] a worker that nobody asked cannot ask, follow or propose; its sure result waits, and is said when a person sends it", async () => {
  const policy = {
    id: "early",
    version: 0,
    text: "Look for causes early.",
    enabled: true,
    speculation: { places: [{ source: "github", place: "acme/app" }], callsPerTask: 4, callsPerDay: 8, maxWastedCalls: 50 },
  };
  await ok(asOperator("POST", "policies", policy));
  await policiesInForce(objects.DB, Date.now() + 60_000);
  const parts = partsOf(lab, "");
  const { id, threadId } = triggerOf(parts);
  const input = { settles: [id], title: "Find the cause", goal: `Find the cause. ${token}worker`, speculative: true, policy: "early" };
  await scriptModel(["ask_human", id], [{ calls: [{ tool: "dispatch", input }] }]);
  const report = (kind: string, text: string, more = {}) => ({ tool: "report", input: { kind, text, ...more } });
  await scriptModel(
    ["You are a worker session", `${token}worker`],
    [
      {
        calls: [
          report("question", "Which browser?"),
          { tool: "subscribe", input: { thread: threadId, reason: "to hear more" } },
          { tool: "propose", input: { what: "comment", text: "Hello!" } },
        ],
      },
      { calls: [report("done", "It is the cookie: it has no path.", { confidence: 0.95, straightforward: true })] },
    ],
  );
  await say(lab, parts);
  const { taskId = "" } = await decided(lab, id);
  const task = objects.WORKER_SESSION.getByName(taskId);
  await until("its end", async () => (await task.describe())?.card.status === "done");
  await evictDurableObject(objects.ROUTER.getByName(routerName) as never);
  const row = await until("the offer", async () => {
    const { recent, off } = await ok<SpeculationAnswer>(asOperator("GET", "speculation"));
    expect(off).toBeNull();
    return recent.find((each) => each.taskId === taskId && each.outcome === "offered");
  });
  expect(row.spent).toMatchObject({ calls: 2 });
  const described = await task.describe();
  expect(described?.reports.map(({ kind }) => kind)).toEqual(["done"]);
  expect(described?.card).toMatchObject({ speculative: true });
  const refused = (await task.events({ afterSeq: 0, limit: 200 })).flatMap(({ event }) =>
    event.kind === "task.tool" && event.phase === "refused" ? [event.tool] : [],
  );
  expect(refused).toEqual(["report", "subscribe", "propose"]);
  expect(await saidIn(threadId)).toEqual([]);
  const { info, cards } = await objects.THREAD.getByName(threadId).read({ afterSeq: 0, limit: 10 });
  expect(info.subscribers).toEqual([]);
  expect(cards).toEqual([]);

  const offerId = row.offerId ?? "";
  const board = await until("the notice on the board", async () => {
    const state: BoardState = await objects.BOARD.getByName("board").snapshot();
    return state.notices.some((notice) => notice.id === offerId) && state;
  });
  expect(board.notices.find((notice) => notice.id === offerId)).toMatchObject({ kind: "offer", taskId });
  expect(board.tasks.find((each) => each.taskId === taskId)).toMatchObject({ askedBy: "nobody", speculative: true });
  expect(await ok<OfferView>(asOperator("POST", `offers/${offerId}`, { verdict: "release" }))).toMatchObject({ state: "released" });
  expect((await saidIn(threadId)).map(({ text }) => text)).toEqual(["It is the cookie: it has no path."]);
});
