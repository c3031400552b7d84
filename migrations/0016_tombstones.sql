-- Why: what a location was to a table or view that is gone.
-- Oldest binary: step 2; it does not know the layout that the store has by now, and does not open it.

CREATE TABLE moorage_tombstone (key bytea PRIMARY KEY, etag uuid NOT NULL, state smallint NOT NULL, value bytea NOT NULL);
