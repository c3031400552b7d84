package claims

import (
	"context"

	"moorage/ledger"
	"moorage/registry"
)

// EndMaintenance returns what removes all that is kept of the maintenance of a pointer which ends
// now: see endMaintenance.
func (c *Claims) EndMaintenance(ctx context.Context, id registry.ID) (
	conditions []registry.Condition, writes []registry.Write, err error) {
	records, err := c.ledger.Get(ctx, registry.CareKey(id), registry.MaintenancePolicyKey(registry.TableScope(id)))
	if err != nil {
		return nil, nil, err
	}
	return c.endMaintenance(ctx, id, records[0], records[1])
}

// endMaintenance returns what removes all that is kept of the maintenance of a pointer which ends:
// its policy, its care with what is due or blocked, its jobs and its runs. The files of a job
// outlast its record for a while, as those of each job whose record is gone.
func (c *Claims) endMaintenance(ctx context.Context, id registry.ID, care, policy registry.Record) (
	conditions []registry.Condition, writes []registry.Write, err error) {
	jobs, err := c.ledger.List(ctx, registry.TableJob, registry.JobPrefix(id), "", ledger.ScanPage)
	if err != nil {
		return nil, nil, err
	}
	for _, record := range append(jobs, care, policy) {
		if record.Exists() {
			conditions = append(conditions, ledger.Unchanged(record))
			writes = append(writes, registry.Delete(record.Key))
		}
	}
	// One that cannot be read keeps no table from ending. The planner removes what it said is due.
	if value, err := ledger.Decode[registry.Care](care); care.Exists() && err == nil {
		for _, job := range value.Jobs {
			if !job.Due.IsZero() {
				writes = append(writes, registry.Delete(registry.DueKey(id, job.Kind, job.Due)))
			}
		}
	}
	for _, of := range []struct {
		table  registry.Table
		prefix string
	}{
		{registry.TableDue, registry.DueBlockedKey(id, "").ID},
		{registry.TableRun, registry.RunPrefix(id)},
	} {
		keys, err := c.ledger.ListKeys(ctx, of.table, of.prefix, "", ledger.ScanPage)
		if err != nil {
			return nil, nil, err
		}
		for _, record := range keys {
			writes = append(writes, registry.Delete(record.Key))
		}
	}
	return conditions, writes, nil
}
