CREATE TABLE `decision_marks` (
	`decision_id` text PRIMARY KEY NOT NULL,
	`policy_id` text,
	`wrong` integer NOT NULL,
	`note` text NOT NULL,
	`marked_by` text NOT NULL,
	`at_ms` integer NOT NULL
);
--> statement-breakpoint
CREATE TABLE `policies` (
	`id` text NOT NULL,
	`version` integer NOT NULL,
	`text` text NOT NULL,
	`enabled` integer NOT NULL,
	`saved_by` text NOT NULL,
	`saved_ms` integer NOT NULL,
	PRIMARY KEY(`id`, `version`)
);
--> statement-breakpoint
CREATE TABLE `rate_limits` (
	`key` text PRIMARY KEY NOT NULL,
	`tokens` real NOT NULL,
	`at_ms` integer NOT NULL,
	`refused` integer NOT NULL,
	`refused_ms` integer
);
--> statement-breakpoint
CREATE TABLE `recent_triggers` (
	`id` integer PRIMARY KEY NOT NULL,
	`at_ms` integer NOT NULL,
	`triggers` text NOT NULL
);
