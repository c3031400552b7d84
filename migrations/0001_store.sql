-- Why: the tables of a store, one for each kind of record, with equal columns: the store never reads into a value.
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

-- These records are rewritten often. Free room in each page lets the new row stay in the page of the old row, so that
-- the index need not change. Each commit of a table rewrites its pointer. A node rewrites an assignment while it
-- works. The sweep rewrites a cursor, the position up to which it has deleted changes.
CREATE TABLE moorage_pointer (key bytea PRIMARY KEY, etag uuid NOT NULL, state smallint NOT NULL, value bytea NOT NULL) WITH (fillfactor = 50);
CREATE TABLE moorage_assignment   (key bytea PRIMARY KEY, etag uuid NOT NULL, state smallint NOT NULL, value bytea NOT NULL) WITH (fillfactor = 50);
CREATE TABLE moorage_cursor  (key bytea PRIMARY KEY, etag uuid NOT NULL, state smallint NOT NULL, value bytea NOT NULL) WITH (fillfactor = 50);

-- The outcomes of idempotency keys. The sweep finds expired outcomes without reading other outcomes.
CREATE TABLE moorage_idempotency (
    key     bytea PRIMARY KEY,
    etag    uuid NOT NULL,
    state   smallint NOT NULL,
    value   bytea NOT NULL,
    expires timestamptz
);
CREATE INDEX moorage_idempotency_expires ON moorage_idempotency (expires) WHERE expires IS NOT NULL;
CREATE INDEX moorage_idempotency_undated ON moorage_idempotency (key) WHERE expires IS NULL;

-- A change is written without a place in the order of changes ("awaits" is true). A later step gives it a place. seq
-- is drawn when the change is written, while its batch holds all of its rows. If a batch saw another batch, it draws
-- seq after the other batch has committed. So it draws the greater number, whatever the clocks show. at is the time at
-- which the change was written.
--
-- Each change is rewritten once, to get its place, and deleted after days. So autovacuum should remove old rows soon.
-- By default it begins only when a fifth of the table has changed, which is late for millions of changes, and it
-- pauses while it works.
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

-- The last place that was given to a change. The table has one row, which commits neither read nor write.
CREATE TABLE moorage_change_head (one boolean PRIMARY KEY CHECK (one), last bigint NOT NULL);

-- Access policy: principals, roles, grants, policies, secrets, and the order of all changes of these records. Each
-- change of access policy rewrites the epoch in moorage_access, and each request reads it.
CREATE TABLE moorage_principal     (key bytea PRIMARY KEY, etag uuid NOT NULL, state smallint NOT NULL, value bytea NOT NULL);
CREATE TABLE moorage_role          (key bytea PRIMARY KEY, etag uuid NOT NULL, state smallint NOT NULL, value bytea NOT NULL);
CREATE TABLE moorage_grants        (key bytea PRIMARY KEY, etag uuid NOT NULL, state smallint NOT NULL, value bytea NOT NULL);
CREATE TABLE moorage_access_policy (key bytea PRIMARY KEY, etag uuid NOT NULL, state smallint NOT NULL, value bytea NOT NULL);
CREATE TABLE moorage_secret        (key bytea PRIMARY KEY, etag uuid NOT NULL, state smallint NOT NULL, value bytea NOT NULL);
CREATE TABLE moorage_access        (key bytea PRIMARY KEY, etag uuid NOT NULL, state smallint NOT NULL, value bytea NOT NULL) WITH (fillfactor = 50);

-- Maintenance of tables: policies, schedules, due records, jobs in progress, runs of jobs that have ended, and leases
-- of workers outside the server. Some of these records are rewritten again and again while there is work.
CREATE TABLE moorage_maintenance_policy (key bytea PRIMARY KEY, etag uuid NOT NULL, state smallint NOT NULL, value bytea NOT NULL);
CREATE TABLE moorage_run                (key bytea PRIMARY KEY, etag uuid NOT NULL, state smallint NOT NULL, value bytea NOT NULL);
CREATE TABLE moorage_due                (key bytea PRIMARY KEY, etag uuid NOT NULL, state smallint NOT NULL, value bytea NOT NULL);
CREATE TABLE moorage_schedule           (key bytea PRIMARY KEY, etag uuid NOT NULL, state smallint NOT NULL, value bytea NOT NULL) WITH (fillfactor = 50);
CREATE TABLE moorage_job                (key bytea PRIMARY KEY, etag uuid NOT NULL, state smallint NOT NULL, value bytea NOT NULL) WITH (fillfactor = 50);
CREATE TABLE moorage_table_lease        (key bytea PRIMARY KEY, etag uuid NOT NULL, state smallint NOT NULL, value bytea NOT NULL) WITH (fillfactor = 50);

-- Locks that nodes share. These tables need not survive a crash: a lost lock only costs a conflict. They have few rows,
-- which are rewritten all the time.

-- A session is one run of a node. renewed is its last heartbeat. address is where the node listens, for people and
-- other nodes. A node that begins to listen at an address ends the other sessions with the same address and host. host
-- identifies one machine, and one network on it. silence is how long the session may be silent before other nodes
-- ignore it. If it is NULL, each node uses its own limit. peer is the HOST:PORT at which the node answers other nodes.
CREATE TABLE moorage_lease_session (
    session text PRIMARY KEY,
    renewed timestamptz NOT NULL,
    version text,
    address text,
    host    text,
    silence interval,
    peer    text
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_cost_delay = 0);

-- The leases that sessions hold. place is the SHA-256 of path. path is for people, and may have any length. A lease
-- whose session does not exist is void.
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

-- The leases for which tickets of sessions wait. All rows of a ticket have the time of its first row.
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

-- A stripe is a row to which some of the places belong. A node that takes leases locks the stripes of their places, so
-- that no other node takes the same leases at the same time.
CREATE TABLE moorage_lease_stripe (stripe smallint PRIMARY KEY);

-- The view of the members: the sessions with a peer. number increases when a member joins or leaves. members is the
-- SHA-256 of the members at that number.
CREATE TABLE moorage_lease_view (id smallint PRIMARY KEY, number bigint NOT NULL, members bytea NOT NULL);

INSERT INTO moorage_change_head VALUES (true, 0);
INSERT INTO moorage_lease_stripe SELECT generate_series(0, 1023);
INSERT INTO moorage_lease_view (id, number, members) VALUES (1, 0, '');
INSERT INTO moorage_format VALUES ('format', gen_random_uuid(), 0, '{"version":1}');
