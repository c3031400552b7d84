-- Why: maintenance of tables: policies, what is due, jobs under way and ended, and leases for jobs of others.
-- Oldest binary: step 2; it does not read the tables, does no such job, and lets a commit pass whose lease was lost.

CREATE TABLE moorage_maintenance_policy (key bytea PRIMARY KEY, etag uuid NOT NULL, state smallint NOT NULL, value bytea NOT NULL);
CREATE TABLE moorage_run                (key bytea PRIMARY KEY, etag uuid NOT NULL, state smallint NOT NULL, value bytea NOT NULL);

-- These are rewritten as long as there is work.
CREATE TABLE moorage_care        (key bytea PRIMARY KEY, etag uuid NOT NULL, state smallint NOT NULL, value bytea NOT NULL) WITH (fillfactor = 50);
CREATE TABLE moorage_due         (key bytea PRIMARY KEY, etag uuid NOT NULL, state smallint NOT NULL, value bytea NOT NULL);
CREATE TABLE moorage_job         (key bytea PRIMARY KEY, etag uuid NOT NULL, state smallint NOT NULL, value bytea NOT NULL) WITH (fillfactor = 50);
CREATE TABLE moorage_table_lease (key bytea PRIMARY KEY, etag uuid NOT NULL, state smallint NOT NULL, value bytea NOT NULL) WITH (fillfactor = 50);
