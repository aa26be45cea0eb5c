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
