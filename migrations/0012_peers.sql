-- Why: nodes send commits that race between them to one of them, so they know each other.
-- Oldest binary: step 2; its sessions have no peer, and when it ends another's session, the next reader of the members notices.

-- peer is HOST:PORT at which the node of a session answers other nodes.
ALTER TABLE moorage_lease_session ADD COLUMN peer text;

-- The view of the members. number rises with every join and leave; members is the SHA-256 of the sessions with a peer at that number.
CREATE TABLE moorage_lease_view (id smallint PRIMARY KEY, number bigint NOT NULL, members bytea NOT NULL);
INSERT INTO moorage_lease_view (id, number, members) VALUES (1, 0, '');
