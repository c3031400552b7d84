-- Why: the sweep notes how far it has deleted the order of changes, and for how long changes have been there.
-- Oldest binary: step 2; it deletes changes by their own times and notes nothing.

CREATE TABLE moorage_cursor (key bytea PRIMARY KEY, etag uuid NOT NULL, state smallint NOT NULL, value bytea NOT NULL) WITH (fillfactor = 50);
