package claims

import (
	"context"

	"moorage/ledger"
	"moorage/registry"
)

// EndMaintenance returns the conditions and writes that remove all maintenance records of a pointer
// that ends now: see endMaintenance.
func (c *Claims) EndMaintenance(ctx context.Context, id registry.ID) (
	conditions []registry.Condition, writes []registry.Write, err error) {
	records, err := c.ledger.Get(ctx, registry.ScheduleKey(id), registry.MaintenancePolicyKey(registry.TableScope(id)))
	if err != nil {
		return nil, nil, err
	}
	return c.endMaintenance(ctx, id, records[0], records[1])
}

// endMaintenance returns the conditions and writes that remove all maintenance records of a pointer
// that ends: its policy, its schedule with due and blocked entries, its jobs and its runs. The
// files of a job stay for a while after its record is removed.
func (c *Claims) endMaintenance(ctx context.Context, id registry.ID, schedule, policy registry.Record) (
	conditions []registry.Condition, writes []registry.Write, err error) {
	jobs, err := c.ledger.List(ctx, registry.TableJob, registry.JobPrefix(id), "", ledger.ScanPage)
	if err != nil {
		return nil, nil, err
	}
	if !policy.Exists() { // one may be set before the Apply
		writes = append(writes, registry.Delete(registry.MaintenancePolicyKey(registry.TableScope(id))))
	}
	for _, record := range append(jobs, schedule, policy) {
		if record.Exists() {
			conditions = append(conditions, ledger.Unchanged(record))
			writes = append(writes, registry.Delete(record.Key))
		}
	}
	// An unreadable schedule must not prevent the end of its table. The planner removes its due
	// entries.
	if value, err := ledger.Decode[registry.Schedule](schedule); schedule.Exists() && err == nil {
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
