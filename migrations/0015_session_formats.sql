-- Why: access is not switched on while nodes run that would let everybody in.
-- Oldest binary: step 2; its sessions have no format, and count as of the first.

-- format is the newest format of the store that the node of a session knows.
ALTER TABLE moorage_lease_session ADD COLUMN format integer;
