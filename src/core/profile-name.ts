// The name of a profile as a model says it: the router's, or a worker's.
import { defaultProfile, type Profile } from "../protocol/profile.ts";
import { excerpt } from "./context.ts";

/** [WP2] The profile that a model named, or a sentence for it when there is none of that name. */
export function chooseProfile(
  profiles: readonly Pick<Profile, "name">[],
  named: string | undefined,
): { name: string } | { problem: string } {
  const name = named?.trim().toLowerCase() || defaultProfile;
  const names = [...new Set(profiles.map((each) => each.name))];
  return names.includes(name) ? { name } : { problem: `There is no profile "${excerpt(name, 40)}"; there are ${names.join(", ")}.` };
}
