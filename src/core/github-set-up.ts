// The way to a working GitHub connection, step by step: what is done, what is missing, and what to paste where.
import type { GitHubSetUpAnswer, SetUpStep } from "../protocol/console.ts";

export type GitHubState = {
  origin: string;
  secret: boolean;
  token: boolean;
  appId: boolean;
  appKey: boolean;
  /** Null while it is not set. */
  login: string | null;
  heardMs: number | null;
  hooks: GitHubSetUpAnswer["hooks"];
};

const permissions =
  "Issues: read and write · Pull requests: read and write · Contents: read · Checks: read · Actions: read · Metadata: read · Webhooks: read and write";
const events =
  "Issues, Issue comments, Pull requests, Pull request reviews, Pull request review comments, Check runs, Check suites, Workflow runs, Pushes";

/** At a loopback address the settings come from a file, and GitHub cannot come. */
const isLocal = ({ origin }: GitHubState): boolean => /^https?:\/\/(?:localhost|127(?:\.\d+){3}|\[::1\])(?::|$)/.test(origin);

/** What sets a value here: a line of the local file, or a secret of the deployment. */
const setsIt = (state: GitHubState, name: string, of = name): SetUpStep["paste"][number] =>
  isLocal(state)
    ? { label: `line for .dev.vars that sets ${of}`, text: `${name}=…` }
    : { label: `command that sets ${of}`, text: `npx wrangler secret put ${name}` };

/** The steps in the order in which a person takes them. */
export function gitHubSteps(state: GitHubState): SetUpStep[] {
  const local = isLocal(state);
  return [
    {
      title: "A secret for the webhook",
      done: state.secret,
      text: state.secret
        ? "GITHUB_WEBHOOK_SECRET is set: what is not signed with it is refused."
        : "Make a value, set it here, and keep it for the webhook below.",
      paste: state.secret
        ? []
        : [{ label: "command that makes a value", text: "openssl rand -hex 32" }, setsIt(state, "GITHUB_WEBHOOK_SECRET", "it")],
    },
    credential(state),
    {
      title: "The name that people mention",
      done: state.login !== null,
      text:
        state.login === null
          ? `Set GITHUB_LOGIN in ${local ? ".dev.vars" : "wrangler.toml"}: the login of the account, or the App's name as it stands in its address (without [bot]).`
          : `People write @${state.login.replace(/\[bot\]$/i, "")} to ask us.`,
      paste:
        state.login !== null
          ? []
          : local
            ? [{ label: "line for .dev.vars", text: "GITHUB_LOGIN=your-app-name" }]
            : [{ label: "line for wrangler.toml, under [vars]", text: 'GITHUB_LOGIN = "your-app-name"' }],
    },
    {
      title: "The webhook",
      done: state.heardMs !== null,
      text:
        state.heardMs === null
          ? `In the App, the repository or the organisation at GitHub: Webhooks, content type application/json, the secret from above, and these events. GitHub sends a ping at once; then this step is done.${local ? " GitHub cannot reach this machine by that address: put that of a tunnel to it in its place." : ""}`
          : "Signed deliveries arrive.",
      paste:
        state.heardMs === null
          ? [
              { label: "payload URL", text: `${state.origin}/hooks/github` },
              { label: "events to choose", text: events },
            ]
          : [],
    },
    redelivery(state),
  ];
}

function credential(state: GitHubState): SetUpStep {
  const { token, appId, appKey } = state;
  const title = "Who speaks at GitHub";
  if (appId && appKey)
    return { title, done: true, text: `A GitHub App${token ? ", and the personal token where it is not installed" : ""}.`, paste: [] };
  if (appId !== appKey) {
    const missing = appId ? "GITHUB_APP_PRIVATE_KEY" : "GITHUB_APP_ID";
    const text = `The App is half set up: ${missing} is missing.${token ? " Until then the personal token speaks." : ""}`;
    return { title, done: token, text, paste: [missing === "GITHUB_APP_ID" ? setsIt(state, missing) : setsKey(state)] };
  }
  if (token)
    return {
      title,
      done: true,
      text: "A personal token (GITHUB_TOKEN). A GitHub App of the team would have a name of its own.",
      paste: [],
    };
  return {
    title,
    done: false,
    text: "Make a GitHub App with these permissions, install it on your repositories, and set its number and its private key. Or set a token with the same permissions.",
    paste: [
      { label: "permissions of the App", text: permissions },
      setsIt(state, "GITHUB_APP_ID", "the App's number"),
      setsKey(state),
      setsIt(state, "GITHUB_TOKEN", "a token instead"),
    ],
  };
}

/** A key has many lines. */
const setsKey = (state: GitHubState): SetUpStep["paste"][number] => ({
  label: "command that sets the App's key",
  text: isLocal(state)
    ? `printf 'GITHUB_APP_PRIVATE_KEY="%s"\\n' "$(cat your-app.private-key.pem)" >> .dev.vars`
    : "npx wrangler secret put GITHUB_APP_PRIVATE_KEY < your-app.private-key.pem",
});

function redelivery({ hooks }: GitHubState): SetUpStep {
  const title = "What was missed is asked for again";
  const problem = hooks.find((hook) => hook.problem !== null);
  if (problem) return { title, done: false, text: `${problem.problem} The credential needs the permission “Webhooks”.`, paste: [] };
  const swept = hooks.filter((hook) => hook.sweptMs !== null);
  if (swept.length === 0)
    return { title, done: false, text: "Begins by itself, some minutes after the first delivery of a webhook.", paste: [] };
  const redelivered = swept.reduce((sum, hook) => sum + hook.redelivered, 0);
  const givenUp = swept.reduce((sum, hook) => sum + hook.givenUp, 0);
  const lost = givenUp === 0 ? "" : ` ${givenUp} failed six times and ${givenUp === 1 ? "is" : "are"} given up.`;
  return { title, done: true, text: `${redelivered} failed deliveries were asked for again so far.${lost}`, paste: [] };
}
