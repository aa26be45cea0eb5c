import { execFileSync } from "node:child_process";
import { parseEnv } from "node:util";
import { expect, test } from "vitest";
import { type GitHubState, gitHubSteps } from "../../src/core/github-set-up.ts";

const nothing: GitHubState = {
  origin: "https://switchyard.test",
  secret: false,
  token: false,
  appId: false,
  appKey: false,
  login: null,
  heardMs: null,
  hooks: [],
};
const hook = { of: "repository", place: "acme/app", sweptMs: 1, redelivered: 3, givenUp: 0, problem: null };

test("a fresh deployment has five steps before it, each with what to do and most with what to paste", () => {
  const steps = gitHubSteps(nothing);
  expect(steps.map(({ done }) => done)).toEqual([false, false, false, false, false]);
  for (const { text } of steps) expect(text.length).toBeGreaterThan(20);
  expect(steps.flatMap(({ paste }) => paste.map(({ text }) => text))).toContain("https://switchyard.test/hooks/github");
});

test.each(["http://127.0.0.1:8787", "http://localhost:8787", "http://[::1]:8787"])(
  "at %s what is to be pasted is for this machine: lines of its file, and an address that GitHub can reach",
  (origin) => {
    const steps = gitHubSteps({ ...nothing, origin });
    expect(JSON.stringify(steps)).not.toMatch(/wrangler/);
    const lines = steps.flatMap(({ paste }) => paste.map(({ text }) => text));
    expect(lines).toEqual(
      expect.arrayContaining(["GITHUB_WEBHOOK_SECRET=…", "GITHUB_APP_ID=…", "GITHUB_TOKEN=…", "GITHUB_LOGIN=your-app-name"]),
    );
    expect(steps[3]?.text).toContain("a tunnel");
    // What the pasted command writes is read back whole, line by line.
    const key = "-----BEGIN RSA PRIVATE KEY-----\nAAAA\nBBBB\n-----END RSA PRIVATE KEY-----";
    const command = lines.find((line) => line.startsWith("printf")) ?? "";
    const written = execFileSync("sh", ["-c", command.replace(/cat \S+\)/, 'printf "%s" "$KEY")').replace(/ >> .*/, "")], {
      env: { KEY: key },
      encoding: "utf8",
    });
    expect(parseEnv(written)).toEqual({ GITHUB_APP_PRIVATE_KEY: key });
  },
);

test("a name that only begins like this machine's is a deployment", () => {
  expect(JSON.stringify(gitHubSteps({ ...nothing, origin: "https://localhost.example" }))).toContain("wrangler secret put");
});

test("a complete one has none, and shows nothing to paste", () => {
  const steps = gitHubSteps({ ...nothing, secret: true, appId: true, appKey: true, login: "acme[bot]", heardMs: 1, hooks: [hook] });
  expect(steps.every(({ done, paste }) => done && paste.length === 0)).toBe(true);
  expect(steps[2]?.text).toContain("@acme ");
  expect(steps[4]?.text).toContain("3 failed deliveries");
});

test("half an App names its missing half, and whether a token speaks meanwhile", () => {
  const half = gitHubSteps({ ...nothing, appId: true })[1];
  expect(half).toMatchObject({
    done: false,
    paste: [{ text: "npx wrangler secret put GITHUB_APP_PRIVATE_KEY < your-app.private-key.pem" }],
  });
  expect(gitHubSteps({ ...nothing, appKey: true, token: true })[1]).toMatchObject({
    done: true,
    text: expect.stringContaining("GITHUB_APP_ID"),
  });
});

test("a webhook that may not be listed says what it needs; what was given up is counted", () => {
  expect(gitHubSteps({ ...nothing, hooks: [{ ...hook, problem: "It may not do this." }] })[4]).toMatchObject({
    done: false,
    text: expect.stringMatching(/Webhooks/),
  });
  expect(gitHubSteps({ ...nothing, hooks: [{ ...hook, givenUp: 1 }] })[4]?.text).toContain("is given up");
});
