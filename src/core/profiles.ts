// The profiles that are shipped, and what a profile lets a worker do. A team's own versions come from D1 and win over these.
import { defaultProfile, type Profile } from "../protocol/profile.ts";
import { machineTools, type WorkerTool, workerTools } from "../protocol/worker-tools.ts";

const readers: readonly WorkerTool[] = ["read_file", "list_files", "search_files"];
const commands: readonly WorkerTool[] = ["run_command", "stop_command", "read_output"];
const family: readonly WorkerTool[] = ["spawn", "tell_child", "stop_child"];

/** What a profile must name to have it. All else every worker has: without it, it could neither speak nor wait, nor give its work away. */
const granted: readonly WorkerTool[] = [...new Set([...machineTools, ...commands, ...family])];

/** Tools that a profile may name, each with what it does. */
export const grantable = granted.map((name) => ({ name, does: workerTools[name].description }));

/** Shipped profiles, version 0: whatever a team saves is newer. */
export const shippedProfiles: readonly Profile[] = [
  {
    name: defaultProfile,
    version: 0,
    purpose: "Any work; what is chosen when no other profile fits better.",
    tools: [...readers, "write_file", "edit_file", "push", ...commands, ...family],
    prompt: "",
    model: null,
    modelCalls: 15,
  },
  {
    name: "coder",
    version: 0,
    purpose: "Changes to a code base: read, edit, build and test.",
    tools: [...readers, "write_file", "edit_file", "push", ...commands, ...family],
    prompt:
      "You change code. Read before you edit, keep the change as small as the goal allows, and follow the style that you find. Run the project's own tests after your last edit; a report of `done` names the files that you changed and what the tests said.",
    model: null,
    modelCalls: 30,
  },
  {
    name: "researcher",
    version: 0,
    purpose: "Questions about a code base or its history: it reads, compares and explains, and changes nothing.",
    tools: [...readers, ...family],
    prompt:
      "You find things out and change nothing. Say where you read each thing that you state, and keep what you saw apart from what you conclude. When sources disagree, say so.",
    model: null,
    modelCalls: 20,
  },
  {
    name: "triager",
    version: 0,
    purpose: "New issues and reports: what they are about, whether they can be reproduced, whom they concern.",
    tools: [...readers],
    prompt:
      "You sort what comes in. Say in a few lines what it is about, which part of the project it concerns, whether it was reported before, and what is missing to act on it. You do not fix anything.",
    model: null,
    modelCalls: 8,
  },
];

/** The profile of this name: a saved one before a shipped one; `general` when there is none. */
export function profileNamed(name: string, saved: readonly Profile[] = []): Profile {
  const find = (list: readonly Profile[], wanted: string): Profile | undefined => list.find((each) => each.name === wanted);
  const found = find(saved, name) ?? find(shippedProfiles, name) ?? find(saved, defaultProfile) ?? shippedProfiles[0];
  if (found === undefined) throw new Error("no profile is shipped");
  return found;
}

/** [WP1] What a worker of this profile may call; everything else is refused, whatever its model believes. */
export const mayUse = (profile: Profile, tool: string): boolean =>
  Object.hasOwn(workerTools, tool) && (!granted.some((name) => name === tool) || profile.tools.includes(tool));

/** The tools of a profile as they are shown to its model, always in the same order. */
export const toolsOf = (profile: Profile): Partial<typeof workerTools> =>
  Object.fromEntries(Object.entries(workerTools).filter(([name]) => mayUse(profile, name)));
