-- Why: a table for the names of dropped objects, by which they are found.
-- Oldest binary: step 1; it leaves the table as it is, and a daily walk adds what it dropped.

CREATE TABLE moorage_dropped (key bytea PRIMARY KEY, etag uuid NOT NULL, state smallint NOT NULL, value bytea NOT NULL);
