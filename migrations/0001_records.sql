-- Why: the first layout. One table for each kind of record, all alike: the store never looks into a value.
-- Previous binary: there is none.

CREATE TABLE moorage_warehouse   (key bytea PRIMARY KEY, etag uuid NOT NULL, state smallint NOT NULL, value bytea NOT NULL);
CREATE TABLE moorage_namespace   (key bytea PRIMARY KEY, etag uuid NOT NULL, state smallint NOT NULL, value bytea NOT NULL);
CREATE TABLE moorage_entry       (key bytea PRIMARY KEY, etag uuid NOT NULL, state smallint NOT NULL, value bytea NOT NULL);
-- A pointer is rewritten by every commit of its table: room in each page keeps the new row beside the old one, so
-- that the index is not touched.
CREATE TABLE moorage_pointer     (key bytea PRIMARY KEY, etag uuid NOT NULL, state smallint NOT NULL, value bytea NOT NULL) WITH (fillfactor = 50);
CREATE TABLE moorage_table_uuid  (key bytea PRIMARY KEY, etag uuid NOT NULL, state smallint NOT NULL, value bytea NOT NULL);
CREATE TABLE moorage_location    (key bytea PRIMARY KEY, etag uuid NOT NULL, state smallint NOT NULL, value bytea NOT NULL);
CREATE TABLE moorage_transaction (key bytea PRIMARY KEY, etag uuid NOT NULL, state smallint NOT NULL, value bytea NOT NULL);
CREATE TABLE moorage_idempotency (key bytea PRIMARY KEY, etag uuid NOT NULL, state smallint NOT NULL, value bytea NOT NULL);
CREATE TABLE moorage_task        (key bytea PRIMARY KEY, etag uuid NOT NULL, state smallint NOT NULL, value bytea NOT NULL);
CREATE TABLE moorage_format      (key bytea PRIMARY KEY, etag uuid NOT NULL, state smallint NOT NULL, value bytea NOT NULL);

-- A change is written without a place in the order of changes ("awaits" is true) and is given one by whoever reads
-- changes. reads and wrote are the versions that its batch found and made: a batch that found what
-- another one made stands after it. at breaks the ties that versions leave.
CREATE TABLE moorage_change (
    key      bytea PRIMARY KEY,
    etag     uuid NOT NULL,
    state    smallint NOT NULL,
    value    bytea NOT NULL,
    awaits   boolean NOT NULL DEFAULT false,
    position bigint,
    reads    uuid[],
    wrote    uuid[],
    at       timestamptz
);
CREATE INDEX moorage_change_awaits ON moorage_change (at) WHERE awaits;
CREATE UNIQUE INDEX moorage_change_position ON moorage_change (position) WHERE position IS NOT NULL;

-- The place that was given away last; one row. Commits do not touch it.
CREATE TABLE moorage_change_head (one boolean PRIMARY KEY CHECK (one), last bigint NOT NULL);
INSERT INTO moorage_change_head VALUES (true, 0);

INSERT INTO moorage_format VALUES ('format', gen_random_uuid(), 0, '{"version":5}');
