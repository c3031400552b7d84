-- Why: a session says where its node listens, which build it runs, and how long it may be silent.
-- Oldest binary: step 2; it leaves the new columns empty.

-- address is for people and other nodes. A node that listens there ends the other sessions of the same address and host: host is
-- what is certainly one machine and one network in it. silence is after how long others pass over the session; NULL is as they like.
ALTER TABLE moorage_lease_session
    ADD COLUMN version text,
    ADD COLUMN address text,
    ADD COLUMN host    text,
    ADD COLUMN silence interval;
