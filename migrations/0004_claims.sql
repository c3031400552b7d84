-- Why: claims, by which one node does a piece of work and the others leave it alone.
-- Oldest binary: step 2; it does not look at claims and may do such work at the same time, which wastes work and harms nothing.

-- A claim is rewritten as long as its owner works.
CREATE TABLE moorage_claim (key bytea PRIMARY KEY, etag uuid NOT NULL, state smallint NOT NULL, value bytea NOT NULL) WITH (fillfactor = 50);
