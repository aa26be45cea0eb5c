import { env } from "cloudflare:workers";
import { describe, expect, test, vi } from "vitest";
import { callGitHub } from "../../src/channels/github/api.ts";
import { github } from "../../src/channels/github/index.ts";
import { type Config, type Env, readConfig } from "../../src/env.ts";
import { faultOf } from "./fault-of.ts";
import { newApp } from "./github-app.ts";
import { control } from "./github-deliveries.ts";

const config = readConfig(env as unknown as Env);
type Seen = { method: string; path: string; headers: Record<string, string> };
const seen = async (contains: string): Promise<Seen[]> => (await control(`requests?contains=${encodeURIComponent(contains)}`)).json();
const say = (place: string, name: string) => ({
  outbound: { id: `out_abc-${name}`, threadId: "thr_abc", kind: "reply" as const, text: "hello", hops: 0 },
  place,
  threadKey: "issue:12",
});
const withApp = (app: { id: string; privateKey: string }, token: string | null = null): Config => ({
  ...config,
  github: { ...config.github, token, app },
});
describe("a GitHub App", () => {
  test("speaks by the token of its installation, asked for once, with the key as GitHub gives it", async () => {
    const app = await newApp({ "app/one": 11 });
    for (const name of ["a", "b", "c"]) await github.send(say("app/one", name), withApp(app));
    const comments = await seen("POST /repos/app/one/issues/12/comments");
    expect(comments).toHaveLength(3);
    for (const { headers } of comments) expect(headers.authorization).toMatch(/^Bearer ghs_\d+$/);
    expect(await seen("/repos/app/one/installation")).toHaveLength(1);
    expect(await seen("/app/installations/11/access_tokens")).toHaveLength(1);
  });

  test.each(["pkcs8", "one line"])("takes its key also as %s", async (form) => {
    const app = await newApp({ "app/forms": 12 });
    const privateKey = form === "pkcs8" ? app.pkcs8 : app.privateKey.replaceAll("\n", "\\n");
    await github.send(say("app/forms", form.replace(" ", "-")), withApp({ id: app.id, privateKey }));
  });

  test("asks for a new token shortly before the old one ends", async () => {
    vi.useFakeTimers({ toFake: ["Date"] });
    const app = await newApp({ "app/renew": 13 }, 10 * 60_000);
    await github.send(say("app/renew", "a"), withApp(app));
    vi.setSystemTime(Date.now() + 4 * 60_000);
    await github.send(say("app/renew", "b"), withApp(app));
    expect(await seen("/app/installations/13/access_tokens")).toHaveLength(1);
    vi.setSystemTime(Date.now() + 2 * 60_000);
    vi.useRealTimers();
    vi.useFakeTimers({ toFake: ["Date"], now: Date.now() + 6 * 60_000 });
    await callGitHub(withApp(app).github, { method: "GET", path: "/repos/app/renew/collaborators/x/permission", timeoutMs: 5_000 }).catch(
      () => null,
    );
    expect(await seen("/app/installations/13/access_tokens")).toHaveLength(2);
    vi.useRealTimers();
  });

  test("replaces a token that was withdrawn before its time, once", async () => {
    const app = await newApp({ "app/revoked": 14 });
    await github.send(say("app/revoked", "a"), withApp(app));
    await control("revoke-tokens", {});
    await github.send(say("app/revoked", "b"), withApp(app));
    expect(await seen("/app/installations/14/access_tokens")).toHaveLength(2);
  });

  test("where it is not installed the personal token speaks; without one the sentence says what to do", async () => {
    const app = await newApp({});
    await github.send(say("app/elsewhere", "a"), withApp(app, "a-person"));
    expect((await seen("POST /repos/app/elsewhere/")).map(({ headers }) => headers.authorization)).toEqual(["Bearer a-person"]);
    const error = await faultOf(github.send(say("app/nowhere", "a"), withApp(app)));
    expect(error).toMatchObject({ kind: "forbidden", retry: "never", message: expect.stringContaining("install it there") });
  });

  test("a key that is none is named, and a wrong one is refused by GitHub", async () => {
    const app = await newApp({ "app/keys": 15 });
    const none = await faultOf(github.send(say("app/keys", "a"), withApp({ id: app.id, privateKey: "nonsense" })));
    expect(none).toMatchObject({ retry: "never", message: expect.stringContaining("GITHUB_APP_PRIVATE_KEY") });
    const other = await newApp({ "app/keys": 15 });
    const wrong = await faultOf(github.send(say("app/keys", "b"), withApp({ id: other.id, privateKey: app.privateKey })));
    expect(wrong).toMatchObject({ kind: "unauthorised", retry: "never" });
  });

  test("[R9] a fault while the token is fetched means that nothing was said", async () => {
    const app = await newApp({ "app/faults": 16 });
    for (const on of ["/repos/app/faults/installation", "/app/installations/16/access_tokens"])
      for (const fault of ["500", "lost"]) {
        await control("faults", { on, faults: [fault] });
        expect(await faultOf(github.send(say("app/faults", "a"), withApp(app)))).toMatchObject({ retry: "later" });
      }
    expect(await seen("POST /repos/app/faults/")).toEqual([]);
  });
});
