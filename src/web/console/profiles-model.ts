// The profiles page without a page: a profile as the fields of a form, and back.
import { grantable } from "../../core/profiles.ts";
import { firstIssue } from "../../protocol/issue.ts";
import { type Profile, profile } from "../../protocol/profile.ts";

/** The fields as a person types them. */
export type ProfileForm = { name: string; purpose: string; tools: string[]; prompt: string; model: string; modelCalls: string };

export const emptyForm: ProfileForm = { name: "", purpose: "", tools: [], prompt: "", model: "", modelCalls: "15" };

export const toProfileForm = ({ name, purpose, tools, prompt, model, modelCalls }: Profile): ProfileForm => ({
  name,
  purpose,
  tools: [...tools],
  prompt,
  model: model ?? "",
  modelCalls: String(modelCalls),
});

/** The profile that a form says, as the next of `version`; or what is wrong with it, in a sentence that says what to do. */
export function fromProfileForm(form: ProfileForm, version: number, others: readonly string[]): Profile | string {
  const name = form.name.trim();
  if (name === "") return "Give the profile a short name, such as release-notes: dispatches speak of it.";
  if (!/^[a-z][a-z0-9-]{0,38}$/.test(name))
    return "Write the name in lower-case letters, digits and dashes, at most 39, beginning with a letter.";
  if (others.includes(name)) return `There is a profile ${name} already: edit that one, or choose another name.`;
  if (form.purpose.trim() === "") return "Say in a sentence when it should be chosen: the router reads nothing else of it.";
  const modelCalls = Number(form.modelCalls);
  if (!Number.isInteger(modelCalls) || modelCalls < 1 || modelCalls > 60) return "Model calls: write a whole number from 1 to 60.";
  const parsed = profile.safeParse({
    name,
    version,
    purpose: form.purpose.trim(),
    // Always in the same order: the same choice is the same profile.
    tools: grantable.map((tool) => tool.name).filter((tool) => form.tools.includes(tool)),
    prompt: form.prompt.trim(),
    model: form.model.trim() === "" ? null : form.model.trim(),
    modelCalls,
  });
  return parsed.success ? parsed.data : firstIssue(parsed.error, "profile");
}
