CREATE TABLE `held_offers` (
	`id` text PRIMARY KEY NOT NULL,
	`thread_id` text NOT NULL,
	`task_id` text NOT NULL,
	`title` text NOT NULL,
	`at_ms` integer NOT NULL,
	`until_ms` integer NOT NULL
);
--> statement-breakpoint
CREATE INDEX `held_offers_thread` ON `held_offers` (`thread_id`);