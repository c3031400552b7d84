package claims

import (
	"context"

	"moorage/ledger"
	"moorage/registry"
)

// endMaintenance returns what removes all that is kept of the maintenance of a pointer which ends:
// its policy, its care with what is due or blocked, its jobs and its runs. The files of a job
// outlast its record for a while, as those of each job whose record is gone. It looks for nothing
// in a store that never had a job, unless the table has a care.
func (c *Claims) endMaintenance(ctx context.Context, id registry.ID, care, policy, format registry.Record) (
	conditions []registry.Condition, writes []registry.Write, err error) {
	present, err := ledger.Decode[registry.Format](format)
	if err != nil {
		return nil, nil, err
	}
	ends := []registry.Record{care, policy}
	hadJobs := present.Version >= registry.FormatMaintenance
	if hadJobs {
		jobs, err := c.ledger.List(ctx, registry.TableJob, registry.JobPrefix(id), "", ledger.ScanPage)
		if err != nil {
			return nil, nil, err
		}
		ends = append(ends, jobs...)
	}
	for _, record := range ends {
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
	if !hadJobs && !care.Exists() {
		return conditions, writes, nil
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
