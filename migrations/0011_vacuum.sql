-- Why: rows that are rewritten or deleted soon are cleared away soon. By default that begins when a fifth of a table has changed,
-- which of millions of changes is late, and it rests on its way.
-- Oldest binary: step 2; nothing changes for it.

-- Changes: each is rewritten once, to get its place, and deleted after days. Leases: few rows, rewritten all the time.
ALTER TABLE moorage_change SET (autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_cost_delay = 0);
ALTER TABLE moorage_lease SET (autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_cost_delay = 0);
ALTER TABLE moorage_lease_session SET (autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_cost_delay = 0);
ALTER TABLE moorage_lease_want SET (autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_cost_delay = 0);
