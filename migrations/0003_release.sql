CREATE TABLE `release_policy` (
	`version` integer PRIMARY KEY NOT NULL,
	`body` text NOT NULL,
	`saved_by` text NOT NULL,
	`saved_ms` integer NOT NULL
);
