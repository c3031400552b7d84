-- Why: a table for the labels of tables and views, which engines get with each load.
-- Oldest binary: step 1; it keeps the labels of what it does not end, and shows none.

CREATE TABLE moorage_label (key bytea PRIMARY KEY, etag uuid NOT NULL, state smallint NOT NULL, value bytea NOT NULL);
