// What a mind does, in words for people. Behind each the tool keeps its name, by which it is found in logs and in the search.
import { refusedByCode } from "../../protocol/board.ts";
import type { RouterTool } from "../../protocol/router-tools.ts";
import type { WorkerTool } from "../../protocol/worker-tools.ts";

const words: Record<RouterTool | WorkerTool, string> = {
  // The router decides to …
  reply: "answer",
  relay: "pass a report on",
  dispatch: "start a task",
  deliver: "tell a task",
  record: "keep it, and do nothing",
  ignore: "leave it aside",
  cancel: "stop a task",
  resolve: "judge how a task ended",
  release: "let a proposal leave, or not",
  ask_human: "ask the team",
  remember: "remember something",
  set_policy: "change when it acts",
  schedule: "change a schedule",
  find: "look something up",
  // … and a worker to …
  recall: "read something again",
  run_command: "run a command",
  stop_command: "stop a command",
  read_output: "read more output",
  push: "push its branch",
  read_file: "read a file",
  write_file: "write a file",
  edit_file: "edit a file",
  list_files: "list files",
  search_files: "search files",
  report: "report",
  propose: "propose something",
  subscribe: "follow a thread",
  unsubscribe: "no longer follow a thread",
  hand_back: "hand a message back to the router",
  wait: "wait",
  note: "keep a note",
  spawn: "start a child",
  tell_child: "tell a child",
  stop_child: "stop a child",
  hand_off: "hand the task on",
};

/** `start a task`. What no tool of ours is called, as a model may call it, stays as it is. */
export const toolWords = (tool: string): string => (Object.hasOwn(words, tool) ? words[tool as keyof typeof words] : tool);

/** What was decided: `start a task`, and `refuse to start a task` where code did not let that happen. */
export const decisionWords = ({ tool, reason }: { tool: string; reason: string }): string =>
  reason.startsWith(refusedByCode) ? `refuse to ${toolWords(tool)}` : toolWords(tool);

/** `Start a task`, where it begins a line. */
export const asTitle = (words: string): string => words.charAt(0).toUpperCase() + words.slice(1);
