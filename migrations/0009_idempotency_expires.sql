-- Why: the sweep finds the outcomes that have expired without reading the others.
-- Oldest binary: step 2; it does not use the index.

CREATE INDEX CONCURRENTLY moorage_idempotency_expires ON moorage_idempotency (expires) WHERE expires IS NOT NULL;
