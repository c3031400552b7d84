-- Why: locks that nodes share. None of it needs to outlive a crash: a lock that is lost costs a conflict.
-- Previous binary: runs beside it, without sharing locks.

-- A life of a node. renewed is its last heartbeat.
CREATE TABLE moorage_lease_session (session text PRIMARY KEY, renewed timestamptz NOT NULL) WITH (fillfactor = 50);

-- What is held. place is the SHA-256 of path, which is there for people and may be of any length. A lease whose session is gone is none.
CREATE TABLE moorage_lease (
    session text NOT NULL,
    id      bigint NOT NULL,
    place   bytea NOT NULL,
    path    text NOT NULL,
    mode    smallint NOT NULL,
    since   timestamptz NOT NULL,
    PRIMARY KEY (session, id)
);
CREATE INDEX moorage_lease_place ON moorage_lease (place);

-- What is waited for. A ticket's rows have one time, that of the first.
CREATE TABLE moorage_lease_want (
    session text NOT NULL,
    ticket  bigint NOT NULL,
    place   bytea NOT NULL,
    mode    smallint NOT NULL,
    path    text NOT NULL,
    since   timestamptz NOT NULL,
    PRIMARY KEY (session, ticket, place, mode)
);
CREATE INDEX moorage_lease_want_place ON moorage_lease_want (place);

-- Whoever takes leases locks the rows on which their places fall, so that nobody else takes these at the same time.
CREATE TABLE moorage_lease_stripe (stripe smallint PRIMARY KEY);
INSERT INTO moorage_lease_stripe SELECT generate_series(0, 1023);
