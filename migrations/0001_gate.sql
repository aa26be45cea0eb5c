CREATE TABLE `recent_triggers` (
	`id` integer PRIMARY KEY NOT NULL,
	`at_ms` integer NOT NULL,
	`triggers` text NOT NULL
);
