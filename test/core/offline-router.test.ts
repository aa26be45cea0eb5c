import { describe, expect, it } from "vitest";
import { markData, renderMessage } from "../../src/core/context.ts";
import { countWords } from "../../src/core/manners.ts";
import { probe } from "../../src/core/router-faults.ts";
import { type MemoryEntry, renderFound } from "../../src/core/router-memory.ts";
import { schedulesItem } from "../../src/core/router-schedule.ts";
import { scheduleIdOf } from "../../src/core/schedule.ts";
import { answerChat } from "../../src/llm/offline/planner.ts";
import { hiddenTitle, type RouterItem, type TaskLine } from "../../src/protocol/context-items.ts";
import { limits } from "../../src/protocol/limits.ts";
import type { Lane } from "../../src/protocol/principal.ts";
import { routerTools } from "../../src/protocol/router-tools.ts";

type Trigger = Extract<RouterItem, { item: "trigger" }>;
type Call = { tool: string; input: Record<string, unknown> };

const trigger = (text: string, over: Partial<Trigger> = {}): Trigger => ({
  item: "trigger",
  id: "trg_a-1",
  thread: "thr_a",
  source: "web",
  place: "widget",
  title: "Talk",
  kind: "message",
  from: { role: "member", name: "Member One" },
  verdict: "request",
  addressed: true,
  ...markData(text),
  ...over,
});
const task = (id: string, title: string, over: Partial<TaskLine> = {}): TaskLine => ({
  id,
  title,
  status: "running",
  thread: `thr_${id}`,
  machine: "studio",
  line: "npm test",
  minutes: 2,
  ...over,
});
const studio = { id: "ep_a", name: "studio", online: true, workspaces: ["main"] };
const tools = Object.keys(routerTools).map((name) => ({ type: "function", function: { name } }));

function ask(items: RouterItem[], options: { lane?: Lane; earlier?: RouterItem[][]; after?: (Call & { output: string })[] } = {}): Call[] {
  const lane = options.lane ?? "team";
  const turns = [...(options.earlier ?? []), items];
  const messages = [
    { role: "system", content: "You are Switchyard, a colleague." },
    ...turns.map((each, i) => ({ role: "user", content: renderMessage({ turn: i + 1, lane }, each) })),
    ...(options.after ?? []).flatMap(({ tool, input, output }) => [
      { role: "assistant", tool_calls: [{ id: "call_1", type: "function", function: { name: tool, arguments: JSON.stringify(input) } }] },
      { role: "tool", tool_call_id: "call_1", content: output },
    ]),
  ];
  const reply = JSON.parse(answerChat(JSON.stringify({ model: "offline", messages, tools }))) as {
    choices: [{ message: { tool_calls?: { function: { name: string; arguments: string } }[] } }];
  };
  return (reply.choices[0].message.tool_calls ?? []).map((call) => {
    const input = JSON.parse(call.function.arguments) as Record<string, unknown>;
    const parsed = routerTools[call.function.name as keyof typeof routerTools].input.safeParse(input);
    if (!parsed.success) throw new Error(`${call.function.name}: ${parsed.error.message}`);
    return { tool: call.function.name, input };
  });
}
const machines = (...list: (typeof studio)[]): RouterItem => ({ item: "machines", list });
const tasks = (open: TaskLine[], recent: TaskLine[] = []): RouterItem => ({ item: "tasks", open, recent });
const reply = (calls: Call[]): string => String(calls.find((call) => call.tool === "reply")?.input.text ?? "");

describe("The offline router", () => {
  it("dispatches work with a title, a goal, the machine and an acknowledgement", () => {
    expect(ask([machines(studio), trigger("Please run the tests and tell me what fails")])).toEqual([
      {
        tool: "dispatch",
        input: {
          settles: ["trg_a-1"],
          title: "Run the tests",
          goal: expect.stringMatching(/^Run the tests\./) as string,
          machine: "ep_a",
          acknowledge: "On it: run the tests, on studio.",
        },
      },
    ]);
  });

  it("settles each of several requests of one turn by a call of its own", () => {
    const calls = ask([
      machines(studio),
      trigger("run the tests"),
      trigger("list the files", { id: "trg_a-2" }),
      trigger("hello", { id: "trg_b-1", thread: "thr_b" }),
    ]);
    expect(calls.map((call) => [call.tool, call.input.settles])).toEqual([
      ["dispatch", ["trg_a-1"]],
      ["dispatch", ["trg_a-2"]],
      ["reply", ["trg_b-1"]],
    ]);
  });

  it("says so when the machine is offline or when there is none", () => {
    const [offline] = ask([machines({ ...studio, online: false }), trigger("run the tests")]);
    expect(offline?.input.acknowledge).toBe("On it: run the tests, as soon as studio is online again.");
    const [none] = ask([machines(), trigger("run the tests")]);
    expect(none?.tool).toBe("dispatch");
    expect(none?.input.acknowledge).toContain("no machine is connected");
    expect(none?.input).not.toHaveProperty("machine");
  });

  it("says at once which instruction of a request it does not understand, and of talk and context says nothing", () => {
    const said = (text: string) => ask([machines(studio), trigger(text)])[0]?.input.acknowledge;
    expect(said("run `sleep 300` on studio, then list every empty folder")).toBe(
      "On it: run sleep 300, on studio. I did not understand “list every empty folder”.",
    );
    expect(said("Hello! Please run `sleep 300`, and let me know.\n\nTo see it:\n- open the page")).toBe("On it: run sleep 300, on studio.");
    expect(said("run `a`. Use B. Use C. Use D. Use E.")).toMatch(/understand “Use B”, “Use C”, “Use D” and 1 more\.$/);
  });

  it("does not say that it is on what it asks about first", () => {
    const [call] = ask([machines(studio), trigger("rm -rf build")]);
    expect(call?.tool).toBe("dispatch");
    expect(call?.input).not.toHaveProperty("acknowledge");
  });

  it.each(["hello", "what can you do?", "what is this?", "lorem ipsum"])(
    "a guest who says “%s” hears what a guest can do, and nothing of the set-up",
    (text) => {
      const said = reply(ask([machines(studio), trigger(text, { from: { role: "guest", name: "Guest" } })], { lane: "public" }));
      expect(said).toContain("You can talk to me here and ask for work");
      expect(said).not.toMatch(/MODEL_PROVIDER|README|offline model/);
    },
  );

  it("what a guest asks for beyond this model goes to the team too", () => {
    const calls = ask([machines(studio), trigger("fix the bug", { from: { role: "guest", name: "Guest" } })], { lane: "public" });
    expect(calls).toMatchObject([{ tool: "dispatch", input: { title: "fix the bug" } }]);
  });

  it("takes the machine that the person names, else one that is online", () => {
    const laptop = { ...studio, id: "ep_b", name: "laptop" };
    expect(ask([machines(studio, laptop), trigger("run the tests on laptop")])[0]?.input.machine).toBe("ep_b");
    expect(ask([machines({ ...studio, online: false }, laptop), trigger("run the tests")])[0]?.input.machine).toBe("ep_b");
  });

  it("answers what is going on from tasks and machines", () => {
    const text = reply(
      ask([
        tasks([task("tsk_a", "Run the tests")], [task("tsk_b", "Lint", { status: "done" })]),
        machines(studio),
        trigger("what is going on?"),
      ]),
    );
    expect(text).toContain("Run the tests: running on studio, 2 min");
    expect(text).toContain("Lint (done)");
    expect(text).toContain("Online: studio");
    const [other, ended] = [task("tsk_c", hiddenTitle), task("tsk_d", hiddenTitle, { status: "done" })];
    const stopped = task("tsk_b", "Lint", { status: "cancelled" });
    const [word, more] = [
      reply(ask([tasks([task("tsk_a", "Run the tests")], [stopped]), machines(studio), trigger("status")])),
      reply(ask([tasks([task("tsk_a", "Run the tests"), other], [stopped, ended]), machines(studio), trigger("status")])),
    ];
    expect(word).toContain("Last: Lint (stopped).");
    expect(more).toContain("2 tasks are open:");
    expect(more).toContain("- one of another conversation\n");
    expect(more).toContain("Last: Lint (stopped).");
    expect(reply(ask([tasks([]), machines(), trigger("status")]))).toBe("Nothing is running.\nNo machine is connected.");
    const many = Array.from({ length: 40 }, (_, i) => task(`tsk_${i}`, `Work number ${i}`));
    expect(reply(ask([tasks(many), machines(studio), trigger("status")])).split(/\s+/).length).toBeLessThanOrEqual(100);
  });

  it("cancels the one open task, or the one whose title is named", () => {
    const two = tasks([task("tsk_a", "Run the tests"), task("tsk_b", "Build the project")]);
    expect(ask([tasks([task("tsk_a", "Run the tests")]), trigger("stop")])[0]).toMatchObject({
      tool: "cancel",
      input: { task: "tsk_a", settles: ["trg_a-1"] },
    });
    expect(ask([two, trigger("cancel the build")])[0]).toMatchObject({ tool: "cancel", input: { task: "tsk_b" } });
    expect(ask([two, trigger("stop tsk_a")])[0]).toMatchObject({ tool: "cancel", input: { task: "tsk_a" } });
  });

  it("says what it did nothing about beside a stop or a status", () => {
    const open = tasks([task("tsk_a", "Run the tests")]);
    expect(reply(ask([open, trigger("stop the tests and fix the README")]))).toBe(
      "I have asked “Run the tests” to stop.\n\nI have done nothing about “fix the README”: that is beyond the offline model.",
    );
    expect(reply(ask([open, machines(studio), trigger("status? And list every empty folder.")]))).toContain(
      "nothing about “list every empty folder”",
    );
    expect(reply(ask([open, machines(studio), trigger("status? I would like to go home.")]))).not.toContain("nothing about");
  });

  it("does not guess which one to stop", () => {
    const two = tasks([task("tsk_a", "Run the tests"), task("tsk_b", "Run the tests")]);
    expect(reply(ask([two, trigger("stop the tests")]))).toContain("Which one shall I stop?");
    expect(reply(ask([two, trigger("stop")]))).toContain("Which one");
    expect(reply(ask([two, trigger("stop the deployment")]))).toContain("I do not find that one");
    expect(reply(ask([tasks([]), trigger("stop")]))).toContain("Nothing is running");
  });

  it("greets and helps in a few words", () => {
    expect(reply(ask([machines(studio), trigger("hi")]))).toContain("Hello Member!");
    const help = reply(ask([trigger("help")]));
    expect(help).toContain("run the tests");
    expect(countWords(help)).toBeLessThanOrEqual(limits.maxInstantWords);
  });

  it("[RS1] [RD9] does what its help lists, each form of it, and the help lists nothing else", () => {
    const nightly: RouterItem = {
      item: "schedules",
      now: "2026-11-30 12:00",
      zone: "UTC",
      list: [
        {
          id: "sch_a",
          name: "nightly",
          when: "every day at 03:00 (UTC)",
          next: "2026-12-01 03:00",
          by: "Member One",
          text: "run the tests",
        },
      ],
    };
    const forms: [listed: string, said: string, tool: string][] = [
      ["run the tests (only the login tests)", "run only the login tests", "dispatch"],
      ["build", "build", "dispatch"],
      ["lint", "lint", "dispatch"],
      ["typecheck", "typecheck", "dispatch"],
      ["`any command`", "run `npm ls`", "dispatch"],
      ["search for “text”", "search for “text”", "dispatch"],
      ["find *.md", "find *.md", "dispatch"],
      ["list files", "list files", "dispatch"],
      ["show README.md", "show README.md", "dispatch"],
      ["count lines in FILE", "count lines in README.md", "dispatch"],
      ["what changed?", "what changed?", "dispatch"],
      ["what is going on?", "what is going on?", "reply"],
      ["stop", "stop", "cancel"],
      ["every day at 9 run the tests", "every day at 9 run the tests", "schedule"],
      ["every monday at 8:30", "every monday at 8:30 run the tests", "schedule"],
      ["in 10 minutes", "in 10 minutes run the tests", "schedule"],
      ["tomorrow at 9", "tomorrow at 9 run the tests", "schedule"],
      ["at 2026-12-01 09:00", "at 2026-12-01 09:00 run the tests", "schedule"],
      ["list schedules", "list schedules", "reply"],
      ...["pause", "resume", "cancel"].map((change): [string, string, string] => [
        "pause/resume/cancel schedule NAME",
        `${change} schedule nightly`,
        "schedule",
      ]),
      ["remember (for the team) …", "remember for the team that we deploy on Fridays", "remember"],
      ["what do you remember?", "what do you remember?", "find"],
      ["forget …", "forget that we deploy on Fridays", "find"],
      ["stop reacting to NAME", "stop reacting to renovate", "set_policy"],
      ["mute acme/app(#12)", "mute acme/app", "set_policy"],
      ["mute acme/app(#12)", "mute acme/app#12", "set_policy"],
      ["list policies", "list policies", "set_policy"],
      ["policy NAME: words", "policy calm: be quiet at night", "set_policy"],
      ["switch policy NAME off", "switch policy calm off", "set_policy"],
      ["undo rul_…", "undo rul_abcdefghijklmn", "set_policy"],
    ];
    const owner = { from: { role: "owner" as const, name: "Owner One" } };
    for (const [, said, tool] of forms) {
      const calls = ask([machines(studio), tasks([task("tsk_a", "Run the tests")]), nightly, trigger(said, owner)]);
      expect([said, calls[0]?.tool]).toEqual([said, tool]);
      expect(reply(calls)).not.toMatch(/did not understand|beyond the offline model/);
    }
    const help = reply(ask([nightly, trigger("help")]));
    expect(countWords(help)).toBeLessThanOrEqual(limits.maxInstantWords);
    const lines = help
      .split("\n")
      .filter((line) => line.startsWith("- "))
      .map((line) => line.slice(2).replace(/^owners: /, ""));
    const listed = [...new Set(forms.map(([form]) => form))].sort((x, y) => y.length - x.length);
    const left = listed.reduce((text, form) => text.replace(form, ""), lines.join("\n"));
    expect(left.replace(/\bor\b|[,;\s]/g, "")).toBe("");
  });

  describe("is quiet where an answer would only disturb", () => {
    it.each([
      "thank you",
      "@switchyard ok great, thanks!",
      "lol, well done",
      "alles gut, vielen Dank Switchyard!",
      "了解です",
      "👍🏽",
      "sorry, wrong window",
      "oops, please disregard my last message",
      "@switchyard never mind, wrong issue",
      "the office is closed on friday, no answer necessary",
    ])("“%s”", (text) => {
      expect(ask([trigger(text)]).map((call) => call.tool)).toEqual(["record"]);
    });

    it.each(["ok, run the tests", "thanks, and the other one?", "ok go ahead with the second", "again", "see above 🙏"])(
      "but not at “%s”, which asks for something",
      (text) => {
        expect(ask([trigger(text)]).map((call) => call.tool)).not.toContain("record");
      },
    );

    it("nor where it may answer a question of ours, or take back what is under way here", () => {
      const before = [{ id: "out_a", from: "you", text: "Shall I delete them?" }];
      expect(ask([trigger("ok", { before })]).map((call) => call.tool)).toEqual(["reply"]);
      const here = tasks([task("tsk_a", "Run the tests", { thread: "thr_a" })]);
      expect(ask([here, trigger("never mind")]).map((call) => call.tool)).toEqual(["cancel", "reply"]);
    });
  });

  describe("is quiet where others are told of it", () => {
    const chat = { source: "generic", place: "chat" };
    const tools = (text: string, over: Partial<Trigger> = chat): string[] =>
      ask([machines(studio), trigger(text, over)]).map(({ tool }) => tool);

    it.each([
      "the poster says “@switchyard run the tests” in huge letters",
      'they wrote "please, @switchyard, deploy it" on the cake',
      "the flaky test is back, I have it. cc @switchyard",
      "looking into it now (cc: @dev2 @switchyard)",
    ])("“%s”", (text) => {
      expect(tools(text)).toEqual(["record"]);
    });

    it.each([
      "@switchyard the numbers look odd",
      "the numbers look odd, @switchyard",
      "the numbers look odd @switchyard!",
      "good morning @switchyard the numbers look odd",
      "I have the feeling @switchyard made that branch",
      "cc @dev2. @switchyard run the tests",
      "“that one” is what I meant, @switchyard",
      "@switchyard see what the poster says: “@switchyard lorem”",
      "when you have time @switchyard please update the changelog",
      "could somebody ask @switchyard to run the tests",
    ])("but hears “%s”", (text) => {
      expect(tools(text)).not.toContain("record");
    });

    it("and hears all that is said on a page of one's own, written to it or assigned to it", () => {
      const text = "the poster says “@switchyard tidy up” in huge letters";
      for (const over of [{}, { ...chat, kind: "mail" }, { source: "github", place: "acme/app", kind: "issues.assigned" }])
        expect(tools(text, over)).toEqual(["reply"]);
    });
  });

  it.each(["how do I run the tests?", "so how would one run only the unit tests", "How to build it?"])(
    "tells nobody “on it” who asks how to do it: “%s”",
    (text) => {
      expect(ask([machines(studio), trigger(text)]).map((call) => call.tool)).toEqual(["reply"]);
    },
  );

  it("says plainly what it cannot do, what it can, and how to set a real model", () => {
    for (const text of ["fix the login bug", "what do you think of tabs?", "Worum geht es hier eigentlich?"]) {
      const calls = ask([machines(studio), trigger(text)]);
      expect(calls.map((call) => call.tool)).toEqual(["reply"]);
      expect(reply(calls)).toContain("MODEL_PROVIDER");
      expect(reply(calls).split(/\s+/).length).toBeLessThanOrEqual(100);
    }
  });

  it("dispatches a guest's request too, so that code refuses it and the team sees it, and tells guests nothing of the team", () => {
    const [call] = ask([machines(studio), trigger("run the tests", { from: { role: "guest", name: "guest" } })], { lane: "public" });
    expect(call?.tool).toBe("dispatch");
    expect(JSON.stringify(call)).not.toContain('studio\\"');
    expect(call?.input).not.toHaveProperty("acknowledge");
    const status = reply(
      ask(
        [
          tasks([task("tsk_a", "Secret merger")]),
          machines(studio),
          trigger("what is going on?", { from: { role: "guest", name: "guest" } }),
        ],
        { lane: "public" },
      ),
    );
    expect(status).not.toMatch(/merger|studio/);
  });

  it("records what nobody addressed to us, and what programs say", () => {
    expect(
      ask([trigger("Please run the tests", { verdict: "candidate", addressed: false, kind: "issues.opened", source: "github" })])[0]?.tool,
    ).toBe("record");
    expect(ask([trigger("run the tests", { from: { role: "bot", name: "ci" } })])[0]?.tool).toBe("record");
  });

  it("relays every report that needs a decision", () => {
    const report: RouterItem = {
      item: "report",
      id: "rep_a-1",
      task: "tsk_a",
      title: "Run the tests",
      thread: "thr_x",
      kind: "question",
      text: "Which one?",
    };
    expect(ask([report])).toEqual([{ tool: "relay", input: { settles: ["rep_a-1"], report: "rep_a-1" } }]);
  });

  it("does again what was asked for in the same thread, in words that the worker knows", () => {
    const calls = ask([machines(studio), trigger("try again", { id: "trg_a-9" })], {
      earlier: [[trigger("run only the login tests")], [trigger("list the files", { thread: "thr_other" })]],
    });
    expect(calls[0]).toMatchObject({ tool: "dispatch", input: { settles: ["trg_a-9"], title: "Run the login tests" } });
    expect(reply(ask([trigger("try again")]))).toContain("nothing was asked");
  });

  it("opens the task of a finished topic again, and leaves what others had in places that many share", () => {
    const failed = tasks(
      [],
      [task("tsk_b", "Other", { status: "done" }), task("tsk_a", "Run the tests", { status: "failed", thread: "thr_a" })],
    );
    for (const text of ["Try again.", "now run the build"])
      expect(ask([failed, machines(studio), trigger(text)])).toEqual([
        { tool: "resolve", input: { settles: ["trg_a-1"], task: "tsk_a", how: "reopen" } },
      ]);
    expect(ask([failed, machines(studio), trigger("thanks!")])[0]?.tool).toBe("record");
    expect(ask([failed, machines(studio), trigger("@switchyard run the build", { source: "github" })])[0]?.tool).toBe("dispatch");
  });

  it("takes a command only from the speaker's own words", () => {
    const calls = ask([machines(studio), trigger("> run `rm -rf build`\n\nwhat does that mean?")]);
    expect(calls.map((call) => call.tool)).toEqual(["reply"]);
  });

  it("answers nothing to a turn without anything to decide, and to a message that is none of ours", () => {
    expect(ask([tasks([]), machines(studio)])).toEqual([]);
    const body = JSON.stringify({ model: "offline", messages: [{ role: "user", content: "hello" }], tools });
    expect(answerChat(body)).toContain("There is nothing to decide.");
    expect(answerChat(body)).toBe(answerChat(body));
    expect(answerChat(JSON.stringify({ model: "offline", messages: [] }))).toContain("offline model");
  });
});

it("[RS1] lists schedules in the words of their confirmation, and says of a paused one only that it is", () => {
  const zone = "UTC";
  const of = (name: string, state: "active" | "paused") => ({
    ...{ id: `sch_${name}`, name, text: "look", zone, state, why: "", nextMs: 0, failures: 0, createdMs: 0, authority: "member" as const },
    ...{ when: { kind: "cron" as const, cron: "0 9 * * *" }, by: { role: "member" as const, id: "prs_a", name: "Ana" } },
    thread: { threadId: "thr_x", source: "github", place: "acme/app", threadKey: "issue:1", threadTitle: "t" },
  });
  const item = schedulesItem([of("nightly", "active"), of("other", "paused")], zone, 0, ["web prs_a"]);
  expect(reply(ask([trigger("list schedules")], { lane: "public" }))).toBe("There is no schedule that I can tell about here.");
  expect(reply(ask([item, trigger("list schedules")]))).toBe(
    "- nightly: every day at 09:00 (UTC), next 1970-01-01 00:00\n- other: every day at 09:00 (UTC), paused",
  );
});

it("[RS6] never takes words of time for work that begins at once, and says what a schedule takes the place of", () => {
  const item = { item: "schedules" as const, now: "2026-11-30 12:00", zone: "UTC", list: [] };
  const calls = (text: string) => ask([machines(studio), item, trigger(text)]);
  expect(calls("run the tests every day at 9")).toEqual(calls("every day at 9 run the tests"));
  for (const text of ["run the tests every night", "at 25:00 run the tests", "every month run the tests"])
    expect(reply(calls(text)), text).toMatch(
      /^I have started nothing: I did not understand when\..* tomorrow at 9; at 2026-12-01 09:00\.$/,
    );
  // Since when, or in another sentence: no time of ours.
  expect(calls("what changed on monday").map(({ tool }) => tool)).toEqual(["dispatch"]);
  expect(calls("the old server goes away tomorrow at 9").map(({ tool }) => tool)).not.toContain("schedule");

  const known = {
    id: scheduleIdOf("thr_a", "run the tests"),
    name: "run the tests",
    when: "every day at 09:00 (UTC)",
    next: "",
    by: "",
    text: "",
  };
  expect(reply(ask([{ ...item, list: [known] }, trigger("every hour run the tests")]))).toBe(
    "Scheduled “run the tests” every hour, in place of every day at 09:00 (UTC). To end it, say “cancel schedule run the tests”.",
  );
  expect(reply(calls("every hour run the tests"))).not.toContain("in place of");
});

it("asks nobody's machine to forget a fact, names no machine for what waits for people, and hears “help me” as help", () => {
  const waiting = tasks([
    task("tsk_a", "Build", { status: "waiting", line: "Tell me the command, for example `make build`: I did not find it" }),
  ]);
  expect(reply(ask([waiting, trigger("what is going on?")]))).toContain(
    "- Build: waiting, 2 min (Tell me the command, for example make build",
  );
  expect(ask([waiting, trigger("forget that we deploy on fridays")]).map(({ tool }) => tool)).toEqual(["find"]);
  for (const text of ["help me", "/help"]) expect(reply(ask([trigger(text)]))).toBe(reply(ask([trigger("help")])));
});

it("[RD9] knows the forms by which an owner changes what is reacted to, and leaves other sentences alone", () => {
  const inputOf = (text: string) =>
    ask([trigger(text, { from: { role: "owner", name: "Owner" } })]).find(({ tool }) => tool === "set_policy")?.input;
  const settles = ["trg_a-1"];
  const mute = { settles, outcome: "mute", source: "github" };
  expect(inputOf("stop reacting to dependabot")).toEqual({ ...mute, principal: "dependabot" });
  expect(inputOf("Please don't react to “renovate”.")).toEqual({ ...mute, principal: "renovate" });
  expect(inputOf("mute @codecov")).toEqual({ ...mute, principal: "codecov" });
  expect(inputOf("mute acme/app")).toEqual({ ...mute, place: "acme/app" });
  expect(inputOf("mute acme/app#12")).toEqual({ ...mute, place: "acme/app", thread: "#12" });
  expect(inputOf("Confirm rul_abc")).toEqual({ settles, confirm: "rul_abc" });
  expect(inputOf("undo rul_abc please")).toEqual({ settles, undo: "rul_abc" });
  expect(inputOf("list policies")).toEqual({ settles, list: true });
  expect(inputOf("switch policy calm-nights off")).toEqual({ settles, change: { id: "calm-nights", on: false } });
  expect(inputOf("policy calm-nights: Be quiet at night.\nReally.")).toEqual({
    settles,
    change: { id: "calm-nights", text: "Be quiet at night.\nReally." },
  });
  for (const other of ["list the files", "undo the last commit", "run the tests", "mute", "what is our policy on tests?"])
    expect(inputOf(other), other).toBeUndefined();
});

it("[RD9] a bare yes right after our question confirms nothing: it is answered with the line that does", () => {
  const shown = { id: "out_a-1", from: "you", text: "Say “confirm rul_abc”, and I put this rule before all others…" };
  const said = (text: string, before: Trigger["before"]) =>
    ask([trigger(text, { from: { role: "owner", name: "O" }, ...(before ? { before } : {}) })]);
  for (const yes of ["yes", "Yes, please!", "ok.", "@switchyard do it"]) {
    expect(said(yes, [shown]).map(({ tool }) => tool)).toEqual(["reply"]);
    expect(reply(said(yes, [shown]))).toContain("“confirm rul_abc”: only that line");
  }
  const between = { id: "trg_b-1", from: "Owner", text: "wait" };
  for (const before of [undefined, [shown, between], [{ ...shown, from: "Member" }]])
    expect(JSON.stringify(said("yes", before))).not.toContain("rul_abc");
  expect(JSON.stringify(said("yes, and run the tests", [shown]))).not.toContain("rul_abc");
});

it("[RI8] says what it remembers from what this conversation may hear, looked up anew each time it is asked", () => {
  const asked = trigger("What do you remember?");
  expect(ask([asked])).toEqual([{ tool: "find", input: { kind: "fact" } }]);
  const hit = (n: number): MemoryEntry => ({
    ...{ id: `fct_${n}`, kind: "fact", lane: "team", audience: "", threadId: "thr_a" },
    ...{ title: "rule", body: `Fact ${n}.`, tail: "Ana", atMs: n },
  });
  const found = (total: number) => {
    const output = renderFound({ query: "", kind: "fact", page: 1 }, { hits: [7, 6, 5, 4, 3, 2].slice(0, total).map(hit), total }, "team");
    return ask([asked], { after: [{ tool: "find", input: { kind: "fact" }, output }] });
  };
  expect(reply(found(1))).toBe("I remember, the newest first:\n- Fact 7. (Ana)");
  expect(reply(found(12))).toMatch(/- Fact 3\. \(Ana\)\nand 7 more\.$/);
  expect(reply(found(0))).toContain("I remember nothing that I may tell here");
  // Outside of the team nothing is looked up.
  expect(
    ask([trigger("What do you remember?", { from: { role: "guest", name: "G" } })], { lane: "public" }).map(({ tool }) => tool),
  ).toEqual(["reply"]);
});

describe("[RD17] what it is asked to forget", () => {
  const hit = (n: number, text: string): MemoryEntry => ({
    ...{ id: `fct_${n}`, kind: "fact", lane: "team", audience: "", threadId: "thr_a" },
    ...{ title: "rule", body: text, tail: "Ana", atMs: n },
  });
  const answered = (said: string, query: string, texts: string[]) => {
    const hits = texts.map((text, n) => hit(n, text));
    const output = renderFound({ query, kind: "fact", page: 1 }, { hits, total: hits.length }, "team");
    return ask([trigger(said)], { after: [{ tool: "find", input: { query, kind: "fact" }, output }] });
  };
  const forgets = (id: string) => [{ tool: "remember", input: { settles: ["trg_a-1"], replaces: id } }];

  it("is looked up by its words, also of a long wish, and by an id at once", () => {
    const looked = (query: string) => [{ tool: "find", input: { query, kind: "fact" } }];
    expect(ask([trigger("Please forget that we deploy on Fridays.")])).toEqual(looked("we deploy on Fridays"));
    expect(ask([trigger("@switchyard forget about the desk")])).toEqual(looked("the desk"));
    expect(ask([trigger("forget fct_abc")])).toEqual(forgets("fct_abc"));
    const long = `forget that ${"so many words ".repeat(20)}`;
    const [call] = ask([trigger(long)]);
    expect(String(call?.input.query)).toHaveLength(200);
    expect(answered(long, String(call?.input.query), [long.slice(12)])).toEqual(forgets("fct_0"));
  });

  it("goes when one fact alone has these words", () => {
    expect(answered("forget that we deploy on Fridays", "we deploy on Fridays", ["We deploy on Fridays."])).toEqual(forgets("fct_0"));
    // The same words, beside more of them.
    const more = ["We deploy on Fridays and Mondays", "We deploy on Fridays."];
    expect(answered("forget that we deploy on Fridays", "we deploy on Fridays", more)).toEqual(forgets("fct_1"));
    expect(answered("forget about the desk", "the desk", ["My desk is blue", "We deploy"])).toEqual(forgets("fct_0"));
  });

  it("is asked about when several are meant, or none is known", () => {
    const several = reply(answered("forget that we deploy", "we deploy", ["We deploy on Fridays", "We deploy by hand"]));
    expect(several).toBe(
      "Which one shall I forget?\n- We deploy on Fridays (Ana; fct_0)\n- We deploy by hand (Ana; fct_1)\nSay “forget” with its id, or with more of its words.",
    );
    const near = reply(answered("forget that we deploy at noon", "we deploy at noon", ["We deploy by hand"]));
    expect(near).toContain("I do not remember just that. I remember:\n- We deploy by hand (Ana; fct_0)");
    expect(reply(answered("forget that we deploy", "we deploy", []))).toContain("I remember nothing of that sort");
    const long = Array.from({ length: 9 }, (_, n) => `${n} ${"deploys ".repeat(40)}`);
    expect(countWords(reply(answered("forget deploys", "deploys", long)))).toBeLessThanOrEqual(limits.maxInstantWords);
    expect(reply(ask([trigger("forget everything")]))).toContain("one thing at a time");
  });

  it("is nothing where a message is taken back, and code's to refuse outside of the team", () => {
    for (const text of ["forget it", "please forget that, thanks", "forget about it", "forget my last message"])
      expect([text, ask([trigger(text)]).map(({ tool }) => tool)]).toEqual([text, ["record"]]);
    const guest = ask([trigger("forget that we deploy on Fridays", { from: { role: "guest", name: "G" } })], { lane: "public" });
    expect(guest).toEqual(forgets("fct_none"));
  });
});

it.each([
  ["forget fct_abc", "remember", { replaces: "fct_abc" }, "I have forgotten nothing."],
  ["confirm rul_abc", "set_policy", { confirm: "rul_abc" }, "I have not changed any rule."],
  ["every 999 hours say hello", "schedule", { name: "n", text: "t", everyMinutes: 9 }, "I have left the schedules as they are."],
  ["cancel schedule nightly", "schedule", { name: "nightly", change: "cancel" }, "I have left the schedules as they are."],
  ["remember that it is blue", "remember", { kind: "background", text: "it is blue" }, "I have not kept that."],
])("[RD9] [RD15] “%s”, when code refused its %s, is not tried again: whoever asked hears why", (text, tool, input, words) => {
  const items = [trigger(text, { from: { role: "owner", name: "Owner" } })];
  const call = (name: string, input: object) => ({ id: "call_1", type: "function", function: { name, arguments: JSON.stringify(input) } });
  const calls = (output: object) => {
    const messages = [
      { role: "system", content: "You are Switchyard, a colleague." },
      { role: "user", content: renderMessage({ turn: 1, lane: "team" }, items) },
      { role: "assistant", content: "", tool_calls: [call(tool, { settles: ["trg_a-1"], ...input })] },
      { role: "tool", tool_call_id: "call_1", content: JSON.stringify(output) },
    ];
    const answer = JSON.parse(answerChat(JSON.stringify({ model: "offline", messages, tools })));
    return answer.choices[0].message.tool_calls.map(({ function: called }: ReturnType<typeof call>) => ({
      tool: called.name,
      input: JSON.parse(called.arguments),
    }));
  };
  expect(calls({ refused: "It is over." })).toEqual([{ tool: "reply", input: { settles: ["trg_a-1"], text: `${words} It is over.` } }]);
  expect(JSON.stringify(calls({ done: "x" }))).not.toContain(words);
});

it("[RT7] the smallest request is answered, so that its own failures are told from an item's", () => {
  const body = JSON.stringify({
    model: "offline",
    messages: [
      { role: "system", content: "s" },
      { role: "user", content: probe.text },
    ],
    tools,
  });
  expect(JSON.parse(answerChat(body)).choices).toHaveLength(1);
});

it.each([
  ["many empty lines", `run ${"\n".repeat(25_000)}!`],
  ["many short blanks", `run ${`${"\n".repeat(39)}x`.repeat(600)}!`],
  ["a long blank before much to remember", `remember ${" ".repeat(25_000)}${"a".repeat(600)}`],
  ["a long blank before much to forget", `forget ${" ".repeat(25_000)}${"a".repeat(600)}`],
  ["many marks", `run ${"?!".repeat(15_000)}x`],
  ["many backticks", `run ${"`".repeat(30_000)}!`],
  ["a long blank in a policy", `policy a: ${" ".repeat(20_000)}${"a".repeat(3_000)}`],
])("[T10] %s in a guest's message cost no time to speak of", (_what, text) => {
  const items = [trigger(text, { from: { role: "guest", name: "G" } })];
  ask(items, { lane: "public" });
  const began = process.threadCpuUsage();
  ask(items, { lane: "public" });
  expect(process.threadCpuUsage(began).user).toBeLessThan(400_000);
});
