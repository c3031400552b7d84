package jobs

import (
	"context"
	"errors"
	"strings"
	"time"

	"moorage/catalog/documents"
	"moorage/ledger"
	"moorage/registry"
	"moorage/storage"
)

const (
	// sweepAge is the age at which the sweep deletes the files of a job without a record. A job's
	// files are written before its record, and no commit takes that long.
	sweepAge = 7 * 24 * time.Hour
	// sweepEvery is the mean pause between two sweeps. A sweep lists each warehouse once.
	sweepEvery = 6 * time.Hour
	// sweepMax is the maximum number of files of one warehouse that a sweep remembers. It remembers
	// all files of the last job, even beyond this number.
	sweepMax = 100_000
	// sweepName is the name of the assignment of the sweep.
	sweepName = "sweep/jobs"
)

// jobsFolder returns the folder in a warehouse for the own files of this store's jobs. Other stores
// that use the warehouse have other folders.
func jobsFolder(ctx context.Context, l *ledger.Ledger, warehouse string) (string, error) {
	id, err := l.StoreID(ctx)
	return storage.Join(warehouse, Folder, "jobs", id.String()), err
}

// Sweep deletes files that jobs left more than a week ago: files of jobs that never began, and
// lists that were replaced by new ones. It visits all warehouses, and returns all their errors. In
// a store that never had a job, Sweep does nothing.
func (j *Jobs) Sweep(ctx context.Context) error {
	had, err := hadJobs(ctx, j.ledger)
	if err != nil || !had {
		return err
	}
	if why, err := j.doubt(ctx); err != nil || why != "" {
		return err
	}
	err = j.assigner.Assign(ctx, sweepName, jobLife, func(ctx context.Context) error {
		var failures []error
		err := j.ledger.Scan(ctx, registry.TableWarehouse, "", "", func(record registry.Record) (bool, error) {
			failures = append(failures, sweepWarehouse(ctx, j, record.Key.ID))
			return ctx.Err() == nil, nil
		})
		return errors.Join(append(failures, err)...)
	})
	if errors.Is(err, ledger.ErrAssigned) {
		return nil
	}
	return err
}

// hadJobs reports whether the store ever had a job with files. The first such job creates the id of
// the store.
func hadJobs(ctx context.Context, l *ledger.Ledger) (bool, error) {
	records, err := l.Get(ctx, registry.StoreIDKey())
	return err == nil && records[0].Exists(), err
}

// sweepWarehouse is Sweep for one warehouse.
func sweepWarehouse(ctx context.Context, j *Jobs, name string) error {
	warehouse, store, err := j.tables.WarehouseLocation(ctx, name)
	if err != nil {
		return err
	}
	folder, err := jobsFolder(ctx, j.ledger, warehouse)
	if err != nil {
		return err
	}
	lister, ok := store.(storage.Lister)
	if !ok {
		return nil
	}
	old := make(map[string][]string) // by the id of the job
	young, count := make(map[string]bool), 0
	for after := ""; ; {
		page, err := lister.List(ctx, folder, after, listPage)
		if err != nil {
			return err
		}
		for _, file := range page.Files {
			job, _, found := strings.Cut(strings.TrimPrefix(file.Location, folder+"/"), "/")
			if !found {
				continue
			}
			if file.Modified.IsZero() || page.Now.Sub(file.Modified) < sweepAge {
				young[job] = true
			}
			if count++; count > sweepMax && old[job] == nil {
				continue // the next sweep finds these files
			}
			old[job] = append(old[job], file.Location)
		}
		if after = page.Next; after == "" {
			break
		}
	}
	// Jobs with a record keep their files. The records are read after the files were listed. That
	// is safe because a job that began in between has only young files.
	err = j.ledger.Scan(ctx, registry.TableJob, "", "", func(record registry.Record) (bool, error) {
		value, err := ledger.Decode[registry.Job](record)
		delete(old, value.ID.String())
		return true, err // an unreadable record could belong to any job
	})
	if err != nil {
		return err
	}
	var failures []error
	for job, files := range old {
		if young[job] {
			continue
		}
		failures = append(failures, documents.DeleteJobFiles(ctx, store, storage.Join(folder, job), files))
	}
	return errors.Join(failures...)
}
