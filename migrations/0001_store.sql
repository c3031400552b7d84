-- Why: the tables of a store. One table for each kind of record, all alike: the store never looks into a value.
-- Oldest binary: step 1; it is the first.

CREATE TABLE moorage_warehouse   (key bytea PRIMARY KEY, etag uuid NOT NULL, state smallint NOT NULL, value bytea NOT NULL);
CREATE TABLE moorage_namespace   (key bytea PRIMARY KEY, etag uuid NOT NULL, state smallint NOT NULL, value bytea NOT NULL);
CREATE TABLE moorage_entry       (key bytea PRIMARY KEY, etag uuid NOT NULL, state smallint NOT NULL, value bytea NOT NULL);
CREATE TABLE moorage_table_uuid  (key bytea PRIMARY KEY, etag uuid NOT NULL, state smallint NOT NULL, value bytea NOT NULL);
CREATE TABLE moorage_location    (key bytea PRIMARY KEY, etag uuid NOT NULL, state smallint NOT NULL, value bytea NOT NULL);
CREATE TABLE moorage_tombstone   (key bytea PRIMARY KEY, etag uuid NOT NULL, state smallint NOT NULL, value bytea NOT NULL);
CREATE TABLE moorage_transaction (key bytea PRIMARY KEY, etag uuid NOT NULL, state smallint NOT NULL, value bytea NOT NULL);
CREATE TABLE moorage_task        (key bytea PRIMARY KEY, etag uuid NOT NULL, state smallint NOT NULL, value bytea NOT NULL);
CREATE TABLE moorage_format      (key bytea PRIMARY KEY, etag uuid NOT NULL, state smallint NOT NULL, value bytea NOT NULL);

-- These records are rewritten often: room in each page keeps the new row beside the old one, so that the index is not
-- touched. A pointer is rewritten by each commit of its table, an assignment as long as its node works, and a cursor by the
-- sweep, which notes how far it has deleted the order of changes.
CREATE TABLE moorage_pointer (key bytea PRIMARY KEY, etag uuid NOT NULL, state smallint NOT NULL, value bytea NOT NULL) WITH (fillfactor = 50);
CREATE TABLE moorage_assignment   (key bytea PRIMARY KEY, etag uuid NOT NULL, state smallint NOT NULL, value bytea NOT NULL) WITH (fillfactor = 50);
CREATE TABLE moorage_cursor  (key bytea PRIMARY KEY, etag uuid NOT NULL, state smallint NOT NULL, value bytea NOT NULL) WITH (fillfactor = 50);

-- The outcomes of idempotency keys. The sweep finds those that have expired without reading the others.
CREATE TABLE moorage_idempotency (
    key     bytea PRIMARY KEY,
    etag    uuid NOT NULL,
    state   smallint NOT NULL,
    value   bytea NOT NULL,
    expires timestamptz
);
CREATE INDEX moorage_idempotency_expires ON moorage_idempotency (expires) WHERE expires IS NOT NULL;
CREATE INDEX moorage_idempotency_undated ON moorage_idempotency (key) WHERE expires IS NULL;

-- A change is written without a place in the order of changes ("awaits" is true) and is given one by the node that
-- reads changes. seq is drawn when a change is written, with all rows of its batch held. A batch that saw another one is
-- written after that has committed, so it draws the greater number, whatever the clocks say. at is when that was.
--
-- Each change is rewritten once, to get its place, and deleted after days. So its old rows are cleared away soon. By
-- default that begins when a fifth of a table has changed, which of millions of changes is late, and it rests on its way.
CREATE TABLE moorage_change (
    key      bytea PRIMARY KEY,
    etag     uuid NOT NULL,
    state    smallint NOT NULL,
    value    bytea NOT NULL,
    awaits   boolean NOT NULL DEFAULT false,
    position bigint,
    at       timestamptz,
    seq      bigint NOT NULL
) WITH (autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_cost_delay = 0);
CREATE SEQUENCE moorage_change_seq OWNED BY moorage_change.seq;
ALTER TABLE moorage_change ALTER COLUMN seq SET DEFAULT nextval('moorage_change_seq');
CREATE INDEX moorage_change_waiting ON moorage_change (seq) WHERE awaits;
CREATE UNIQUE INDEX moorage_change_position ON moorage_change (position) WHERE position IS NOT NULL;

-- The place that was given away last; one row. Commits do not touch it.
CREATE TABLE moorage_change_head (one boolean PRIMARY KEY CHECK (one), last bigint NOT NULL);

-- Who may do what: principals, roles, grants, policies, secrets, and the order of all changes of these. The epoch in
-- moorage_access is rewritten by each change of policy, and read by each request.
CREATE TABLE moorage_principal     (key bytea PRIMARY KEY, etag uuid NOT NULL, state smallint NOT NULL, value bytea NOT NULL);
CREATE TABLE moorage_role          (key bytea PRIMARY KEY, etag uuid NOT NULL, state smallint NOT NULL, value bytea NOT NULL);
CREATE TABLE moorage_grants        (key bytea PRIMARY KEY, etag uuid NOT NULL, state smallint NOT NULL, value bytea NOT NULL);
CREATE TABLE moorage_access_policy (key bytea PRIMARY KEY, etag uuid NOT NULL, state smallint NOT NULL, value bytea NOT NULL);
CREATE TABLE moorage_secret        (key bytea PRIMARY KEY, etag uuid NOT NULL, state smallint NOT NULL, value bytea NOT NULL);
CREATE TABLE moorage_access        (key bytea PRIMARY KEY, etag uuid NOT NULL, state smallint NOT NULL, value bytea NOT NULL) WITH (fillfactor = 50);

-- Maintenance of tables: policies, what is due, jobs under way and ended, and leases for jobs of others. Some are
-- rewritten as long as there is work.
CREATE TABLE moorage_maintenance_policy (key bytea PRIMARY KEY, etag uuid NOT NULL, state smallint NOT NULL, value bytea NOT NULL);
CREATE TABLE moorage_run                (key bytea PRIMARY KEY, etag uuid NOT NULL, state smallint NOT NULL, value bytea NOT NULL);
CREATE TABLE moorage_due                (key bytea PRIMARY KEY, etag uuid NOT NULL, state smallint NOT NULL, value bytea NOT NULL);
CREATE TABLE moorage_schedule           (key bytea PRIMARY KEY, etag uuid NOT NULL, state smallint NOT NULL, value bytea NOT NULL) WITH (fillfactor = 50);
CREATE TABLE moorage_job                (key bytea PRIMARY KEY, etag uuid NOT NULL, state smallint NOT NULL, value bytea NOT NULL) WITH (fillfactor = 50);
CREATE TABLE moorage_table_lease        (key bytea PRIMARY KEY, etag uuid NOT NULL, state smallint NOT NULL, value bytea NOT NULL) WITH (fillfactor = 50);

-- Locks that nodes share. None of it needs to outlive a crash: a lock that is lost costs a conflict. There are few rows,
-- which are rewritten all the time.

-- A life of a node. renewed is its last heartbeat. address is for people and other nodes. A node that listens there ends
-- the other sessions of the same address and host: host is what is certainly one machine and one network in it. silence
-- is after how long others pass over the session; NULL is as they like. peer is HOST:PORT at which the node answers other
-- nodes.
CREATE TABLE moorage_lease_session (
    session text PRIMARY KEY,
    renewed timestamptz NOT NULL,
    version text,
    address text,
    host    text,
    silence interval,
    peer    text
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_cost_delay = 0);

-- What is held. place is the SHA-256 of path, which is there for people and may be of any length. A lease whose session
-- is gone is none.
CREATE TABLE moorage_lease (
    session text NOT NULL,
    id      bigint NOT NULL,
    place   bytea NOT NULL,
    path    text NOT NULL,
    mode    smallint NOT NULL,
    since   timestamptz NOT NULL,
    PRIMARY KEY (session, id)
) WITH (autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_cost_delay = 0);
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
) WITH (autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_cost_delay = 0);
CREATE INDEX moorage_lease_want_place ON moorage_lease_want (place);

-- A node that takes leases locks the rows on which their places fall, so that no other takes these at the same time.
CREATE TABLE moorage_lease_stripe (stripe smallint PRIMARY KEY);

-- The view of the members. number rises with each join and leave; members is the SHA-256 of the sessions with a peer at
-- that number.
CREATE TABLE moorage_lease_view (id smallint PRIMARY KEY, number bigint NOT NULL, members bytea NOT NULL);

INSERT INTO moorage_change_head VALUES (true, 0);
INSERT INTO moorage_lease_stripe SELECT generate_series(0, 1023);
INSERT INTO moorage_lease_view (id, number, members) VALUES (1, 0, '');
INSERT INTO moorage_format VALUES ('format', gen_random_uuid(), 0, '{"version":1}');
