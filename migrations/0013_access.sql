-- Why: who may do what: principals, roles, grants, policies, secrets, and the order of all changes of these.
-- Oldest binary: step 2; it does not read the tables. A store in which access is on has a format that such a binary refuses.

CREATE TABLE moorage_principal     (key bytea PRIMARY KEY, etag uuid NOT NULL, state smallint NOT NULL, value bytea NOT NULL);
CREATE TABLE moorage_role          (key bytea PRIMARY KEY, etag uuid NOT NULL, state smallint NOT NULL, value bytea NOT NULL);
CREATE TABLE moorage_grants        (key bytea PRIMARY KEY, etag uuid NOT NULL, state smallint NOT NULL, value bytea NOT NULL);
CREATE TABLE moorage_access_policy (key bytea PRIMARY KEY, etag uuid NOT NULL, state smallint NOT NULL, value bytea NOT NULL);
CREATE TABLE moorage_secret        (key bytea PRIMARY KEY, etag uuid NOT NULL, state smallint NOT NULL, value bytea NOT NULL);

-- The epoch is rewritten by each change of policy, and read by each request.
CREATE TABLE moorage_access (key bytea PRIMARY KEY, etag uuid NOT NULL, state smallint NOT NULL, value bytea NOT NULL) WITH (fillfactor = 50);
