CREATE TABLE `profiles` (
	`name` text NOT NULL,
	`version` integer NOT NULL,
	`body` text NOT NULL,
	`saved_by` text NOT NULL,
	`saved_ms` integer NOT NULL,
	PRIMARY KEY(`name`, `version`)
);
