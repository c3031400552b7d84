-- Why: the sweep finds the outcomes that have expired without reading the others.
-- Oldest binary: step 2; what it writes has no expiry here, and is found by its key.

ALTER TABLE moorage_idempotency ADD COLUMN expires timestamptz;
