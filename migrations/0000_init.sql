CREATE TABLE `accounts` (
	`source` text NOT NULL,
	`login` text NOT NULL,
	`person_id` text NOT NULL,
	PRIMARY KEY(`source`, `login`)
);
--> statement-breakpoint
CREATE TABLE `endpoints` (
	`id` text PRIMARY KEY NOT NULL,
	`name` text NOT NULL,
	`platform` text NOT NULL,
	`created_ms` integer NOT NULL,
	`revoked_ms` integer
);
--> statement-breakpoint
CREATE TABLE `facts` (
	`name` text PRIMARY KEY NOT NULL,
	`value` text NOT NULL,
	`at_ms` integer NOT NULL
);
--> statement-breakpoint
CREATE TABLE `gate_rules` (
	`version` integer PRIMARY KEY NOT NULL,
	`rules` text NOT NULL,
	`saved_by` text NOT NULL,
	`saved_ms` integer NOT NULL
);
--> statement-breakpoint
CREATE TABLE `grants` (
	`hash` text PRIMARY KEY NOT NULL,
	`kind` text NOT NULL,
	`person_id` text,
	`expires_ms` integer NOT NULL,
	`used_ms` integer
);
--> statement-breakpoint
CREATE TABLE `people` (
	`id` text PRIMARY KEY NOT NULL,
	`name` text NOT NULL,
	`role` text NOT NULL,
	`created_ms` integer NOT NULL,
	`revoked_ms` integer
);
--> statement-breakpoint
CREATE TABLE `tasks` (
	`id` text PRIMARY KEY NOT NULL,
	`thread_id` text NOT NULL,
	`endpoint_id` text,
	`decision_id` text NOT NULL,
	`source` text NOT NULL,
	`place` text NOT NULL,
	`asked_by` text NOT NULL,
	`card` text NOT NULL,
	`revision` integer NOT NULL,
	`updated_ms` integer NOT NULL
);
--> statement-breakpoint
CREATE INDEX `tasks_updated` ON `tasks` (`updated_ms`);--> statement-breakpoint
CREATE TABLE `threads` (
	`id` text PRIMARY KEY NOT NULL,
	`source` text NOT NULL,
	`place` text NOT NULL,
	`thread_key` text NOT NULL,
	`title` text NOT NULL,
	`url` text,
	`head_seq` integer NOT NULL,
	`updated_ms` integer NOT NULL
);
--> statement-breakpoint
CREATE TABLE `wake_list` (
	`object_id` text PRIMARY KEY NOT NULL,
	`kind` text NOT NULL,
	`due_ms` integer NOT NULL
);
