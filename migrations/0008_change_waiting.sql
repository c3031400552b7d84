-- Why: the changes that wait for their places are read in the order of step 5.
-- Oldest binary: step 2; it does not use the index.

CREATE INDEX CONCURRENTLY moorage_change_waiting ON moorage_change (seq NULLS FIRST, at) WHERE awaits;
