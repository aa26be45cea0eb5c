// Limits belong to the receiver. Each is defined once, here, with its reason.

import { maxMessageChars } from "./widget-wire.ts";

const KiB = 1024;
const secondMs = 1000;
const minuteMs = 60 * secondMs;
const hourMs = 60 * minuteMs;
const dayMs = 24 * hourMs;

export const limits = {
  /** GitHub caps its own payloads at 25 MB; past it the sender is not GitHub. */
  maxHookBodyBytes: 25 * 1024 * KiB,
  /** A trigger is read by models: more than this is spilled, the raw body kept in R2. */
  maxTriggerBytes: 32 * KiB,
  maxMessageChars,
  /** Threads that one delivery may concern, the newest: each is an object, a row and a call, and the platform bounds the calls of one request. */
  maxThreadsPerDelivery: 32,
  /** One socket frame, either way: far below what workerd accepts, so that one frame never stalls the others. */
  maxFrameBytes: 256 * KiB,
  /** Bytes of command output in one frame: base64 and envelope stay under `maxFrameBytes`. */
  maxOutputChunkBytes: 128 * KiB,
  /** Output sent but not yet acknowledged: `ws` gives no back-pressure of its own. */
  outputWindowBytes: 1024 * KiB,
  /** Output kept of one command; what is beyond is cut in the middle and said so. */
  maxCommandOutputBytes: 16 * 1024 * KiB,
  /** One file read or written by a file tool in one call. */
  maxFileBytes: 128 * KiB,
  /** Output of one result that is inlined into a model's context; the rest is spilled to an artifact. */
  inlineResultChars: 8_000,
  /** Sum of all results inlined in one step. */
  inlineStepChars: 24_000,
  /** One value in an object's SQLite: the platform's own cap is 2 MB. */
  maxCellBytes: 1024 * KiB,
  /** A subscriber gets the history of a thread only while it is small; older rows come by recall. */
  maxInlineHistoryBytes: 32 * KiB,
  /** Rows handed over in one delivery. */
  maxDeliveryRows: 50,
  /** A router decision that stays undecided this often goes to a human. */
  maxDecisionAttempts: 3,
  /** Tool calls that are taken of one answer of a model; the rest is dropped and the model is told. */
  maxCallsPerReply: 32,
  /** Characters of one answer of a model. It goes into a cell of a transcript: also where each becomes six in JSON, it stays within `maxCellBytes`. */
  maxReplyChars: 160_000,
  /** Steps (model calls) of one router turn, reads included. */
  maxRouterStepsPerTurn: 4,
  /** Model calls of a routine task. */
  maxModelCallsPerTask: 15,
  /** Tasks at once that nobody asked for: people's work has the machines and the models first. */
  maxRunningSpeculations: 4,
  /** Commands at once, on one machine, of tasks that nobody asked for. */
  maxSpeculativePerMachine: 1,
  /** Derived messages carry a hop count; more than this goes to a human. */
  maxHops: 4,
  /** Words in one reply on an instant-messaging channel. */
  maxInstantWords: 100,
  /** A reply that is being written is shown this often at most. */
  draftEveryMs: 120,
  /** Its writer says at least this often that it is still there; who is silent for longer than the second is gone. */
  draftBeatMs: 3 * secondMs,
  draftSilentMs: 8 * secondMs,
  /** Inbox rows that one worker step takes; the others follow in the next. */
  maxStepRows: 100,
  /** Attempts at one model call of a worker, about 25 minutes of them, before it pauses and asks. */
  maxModelAttempts: 14,
  /** Folders that one machine grants: their names stand in each decision of the team. */
  maxWorkspaces: 64,
  /** Commands that run at once on one machine; more wait for their turn. */
  maxRunningPerMachine: 16,
  /** Commands of one task that may run or wait at once. */
  maxOpenCommandsPerTask: 8,
  /** Messages that may wait in a task's backlog: more is a plan, and belongs into one message. */
  maxBacklog: 20,
  /** Unread rows of one task; a flood past it is refused with a notice. */
  maxPendingRows: 500,
  /** Tokens of a worker's request, as its provider counts them, at which the older part of its transcript is put aside. */
  compactWorkerTokens: 80_000,
  /** The same of the router's request; its transcript then begins anew with its last decisions. */
  compactRouterTokens: 60_000,
  /** Items of one turn of the router, and their tokens as its provider counts them, about; the rest waits for the next. */
  maxTurnItems: 40,
  maxTurnTokens: 15_000,
  /** Notes of one task over its life. */
  maxNotes: 200,
  /** Commands of one task over its life: a runaway loop ends here, not at the machine. */
  maxCommandsPerTask: 200,
  /** Children of one task over its life, and how deep a family may be. */
  maxChildrenPerTask: 8,
  maxFamilyDepth: 2,
  /** Hand-offs of one task; then a human decides. */
  maxHandOffs: 4,
  /** A child that has not reported this long after its deadline counts as lost. */
  childLostMs: 15 * minuteMs,
  /** A child without a deadline of its own. */
  childDeadlineMs: 7 * dayMs,
  /** Dedupe keys live at least this long (R3 asks for seven days). */
  dedupeMs: 8 * dayMs,

  /** A heartbeat alarm keeps an object awake: without an event workerd kills it after 70 to 140 s. */
  heartbeatMs: 20 * secondMs,
  /** What is to begin at once has this time to begin before the alarm begins it; so has a model call before its first heartbeat: nobody else would miss one that died. */
  takeOverMs: 3 * secondMs,
  /** A lease of a model loop; whoever wakes the object takes over an expired one. */
  leaseMs: 60 * secondMs,
  /** One model call. */
  modelCallTimeoutMs: 120 * secondMs,
  /** One read of another object's row (recall, more of an output): a mind waits for it. */
  recallTimeoutMs: 10 * secondMs,
  /** A command's own time, counted from its start on the machine. */
  commandTimeoutMs: 10 * minuteMs,
  maxCommandTimeoutMs: 60 * minuteMs,
  /** A command for a machine that is offline waits this long. */
  commandNotAfterMs: 7 * dayMs,
  /** Between the polite signal and the kill. */
  stopGraceMs: 5 * secondMs,
  /** Outbound messages older than this are not sent after a restart, but reported. */
  outboundMaxAgeInstantMs: 10 * minuteMs,
  outboundMaxAgeStructuredMs: 24 * hourMs,
  /** An original that is older than this when its edit comes was delivered, or is not on its way any more. */
  originalDelayMs: 2 * minuteMs,
  /** So long an edit waits for an original that may be on its way: sources deliver out of order by seconds. */
  originalWaitMs: 10 * secondMs,
  /** Text of one proposal: the largest body that a provider of ours takes. */
  maxOfferChars: 60_000,
  /** Text of one proposal on a card; what is longer is read, and released, in the console. */
  cardOfferChars: 6_000,
  /** Proposals of one task over its life. */
  maxOffersPerTask: 20,
  /** A push whose checks have not begun after this long has none; one whose checks have not ended after the second is not waited for. */
  checksBeginMs: 2 * minuteMs,
  checksMs: hourMs,
  /** After an outcome was said somewhere where people react: when it is looked whether they did. Most do soon, or never. */
  reactionLooksMs: [5 * minuteMs, hourMs, 6 * hourMs, dayMs, 3 * dayMs],
  /** What could not be read by then is not looked at any more. */
  reactionMs: 4 * dayMs,
  /** Messages of one thread in one look. */
  maxReactionLooks: 5,
  /** What waits for a release longer than this is not sent any more. */
  offerMs: 7 * dayMs,
  enrolmentCodeMs: 10 * minuteMs,
  ticketMs: 30 * secondMs,
  inviteMs: 7 * dayMs,
  sessionMs: 30 * dayMs,
  consoleSessionMs: 12 * hourMs,
  /** The shortest interval of a schedule: more often is a loop, not a schedule. */
  minScheduleMs: 30 * secondMs,
  /** Beyond this a time is a slip, and far beyond it there is no calendar. */
  maxScheduleAheadMs: 10 * 366 * dayMs,
  /** Runs in a row that may fail before a schedule is paused and people are told. */
  maxScheduleFailures: 3,
  /** A deadline: a year, what lies beyond is a slip of the model. */
  maxDeadlineMinutes: 366 * 24 * 60,
  /** Schedules that hold at once: each costs model calls by itself. */
  maxSchedules: 100,
  /** Who works without being asked and is not done by then has nothing to offer. */
  speculationMs: 2 * hourMs,
  /** How often it is looked whether anybody still needs it. */
  speculationWatchMs: minuteMs,
  /** How often, while nothing of it is at work, it is looked what people made of its offers. */
  offerWatchMs: 10 * minuteMs,
  /** Objects on the wake list that are overdue by this are poked by the cron. */
  wakeOverdueMs: 90 * secondMs,
  /** Daemon reconnect: full jitter between 0 and min(cap, base * 2^n). */
  reconnectBaseMs: 1 * secondMs,
  reconnectCapMs: 60 * secondMs,
  /** A daemon that was superseded waits at least this long before it tries again. */
  supersededBackoffMs: 30 * secondMs,
  daemonPingMs: 30 * secondMs,
} as const;
