-- Why: the sweep finds the outcomes that binaries from before step 6 wrote.
-- Oldest binary: step 2; it does not use the index.

CREATE INDEX CONCURRENTLY moorage_idempotency_undated ON moorage_idempotency (key) WHERE expires IS NULL;
