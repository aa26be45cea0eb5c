// Calls to GitHub with the right credential: an App's installation where one is set up, else the personal token.
import type { Config } from "../../env.ts";
import { Fault } from "../../protocol/fault.ts";
import { appJwt, forgetInstallation, installationToken } from "./app.ts";
import { type GitHubCall, type GitHubPage, sendToGitHub } from "./http.ts";

const noCredential =
  "GITHUB_TOKEN is missing: without it, or a GitHub App (GITHUB_APP_ID and GITHUB_APP_PRIVATE_KEY), nothing can be said on GitHub (see /health).";

/** Whether GitHub can be called at all. */
export const canCallGitHub = (config: Config["github"]): boolean => config.token !== null || config.app !== null;

/** Calls GitHub and returns the JSON of a success. Throws `Fault`; a write that may have happened has `retry: "unknown"`. */
export async function callGitHub(config: Config["github"], call: GitHubCall): Promise<unknown> {
  return (await callGitHubPage(config, call)).body;
}

/** The same with the cursor of the next page. */
export async function callGitHubPage(config: Config["github"], call: GitHubCall): Promise<GitHubPage> {
  if (config.app !== null) {
    // What is the App's own is asked by the App itself.
    if (call.path.startsWith("/app/")) return sendToGitHub(config.apiUrl, await appJwt(config.app, Date.now()), call);
    const place = /^\/repos\/([^/]+\/[^/]+)\//.exec(call.path)?.[1];
    const token = place === undefined ? null : await installationToken(config.apiUrl, config.app, place, Date.now());
    if (place !== undefined && token !== null) return asInstallation(config.apiUrl, config.app, place, token, call);
    if (config.token === null)
      throw new Fault("forbidden", `The GitHub App is not installed on ${place ?? "this place"}: install it there, or add GITHUB_TOKEN.`);
  }
  if (config.token === null) throw new Fault("unauthorised", noCredential);
  return sendToGitHub(config.apiUrl, config.token, call);
}

/** A token that was withdrawn before its time is replaced once: 401 means that nothing was done. */
async function asInstallation(
  apiUrl: string,
  app: NonNullable<Config["github"]["app"]>,
  place: string,
  token: string,
  call: GitHubCall,
): Promise<GitHubPage> {
  try {
    return await sendToGitHub(apiUrl, token, call);
  } catch (error) {
    if (!(error instanceof Fault) || error.kind !== "unauthorised") throw error;
    forgetInstallation(apiUrl, app, place);
    const fresh = await installationToken(apiUrl, app, place, Date.now());
    if (fresh === null || fresh === token) throw error;
    return sendToGitHub(apiUrl, fresh, call);
  }
}
