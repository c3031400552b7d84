package purge

import (
	"context"
	"errors"
	"iter"
	"log/slog"

	"moorage/ledger"
	"moorage/maintenance/jobs"
	"moorage/metadata"
	"moorage/registry"
	"moorage/storage"
)

// owed holds the files that jobs of a table had yet to delete: files of expired snapshots, and
// orphans in quarantine. The table's metadata does not list these files. The purge deletes them
// with the other files.
type owed []jobs.Promise

// jobsOf returns the jobs of a table, and the folders in which they keep their files.
func (w *Worker) jobsOf(ctx context.Context, table registry.ID) (all []registry.Job, folders []string, err error) {
	prefix := registry.JobPrefix(table)
	err = w.ledger.Scan(ctx, registry.TableJob, prefix, "", func(record registry.Record) (bool, error) {
		job, err := ledger.Decode[registry.Job](record)
		if err == nil && job.Input != nil {
			all, folders = append(all, job), append(folders, job.Folder)
		}
		return true, err
	})
	return all, folders, err
}

// readOwed reads the files that jobs had yet to delete. If a job's own files are missing or
// damaged, readOwed logs the job. The files that only this job knows then stay.
func readOwed(ctx context.Context, log *slog.Logger, files storage.Store, all []registry.Job) (o owed, err error) {
	for _, job := range all {
		promise, err := jobs.ReadPromise(ctx, files, job)
		if err = skipDamaged(ctx, log, err); err != nil {
			return nil, err
		}
		o = append(o, promise)
	}
	return o, nil
}

// skipDamaged logs a job whose own files are missing or damaged, and returns other errors.
func skipDamaged(ctx context.Context, log *slog.Logger, err error) error {
	damaged, ok := errors.AsType[*jobs.DamagedError](err)
	if !ok {
		return err
	}
	log.WarnContext(ctx, "purge: the list of a maintenance job cannot be read; "+
		"files that only it names are left behind", "file", damaged.Location, "error", damaged)
	return nil
}

// snapshots returns the snapshots of document and the expired snapshots whose files jobs had yet to
// delete.
func (o owed) snapshots(document *metadata.Document) iter.Seq[metadata.Snapshot] {
	return func(yield func(metadata.Snapshot) bool) {
		for snapshot := range document.Snapshots() {
			if !yield(snapshot) {
				return
			}
		}
		for _, promise := range o {
			for _, snapshot := range promise.Expired {
				if !yield(snapshot) {
					return
				}
			}
		}
	}
}

// statistics returns the statistics files of document and of those expired snapshots.
func (o owed) statistics(document *metadata.Document) []string {
	all := document.StatisticsFiles()
	for _, promise := range o {
		all = append(all[:len(all):len(all)], promise.Statistics...)
	}
	return all
}

// owedFiles adds the files that the jobs of the table have listed.
func (w *walk) owedFiles(ctx context.Context) error {
	if !w.document.Collects() {
		return nil
	}
	for _, promise := range w.owed {
		if err := skipDamaged(ctx, w.log, promise.EachListed(ctx, w.files, w.add)); err != nil {
			return err
		}
	}
	return nil
}

// forget deletes the jobs' own files, after the jobs' records are gone. If some files remain, the
// sweep of package jobs deletes them a week later.
func (o owed) forget(ctx context.Context, log *slog.Logger, files storage.Store) {
	for _, promise := range o {
		if err := promise.Forget(ctx, files); err != nil {
			log.WarnContext(ctx, "could not delete the files of a maintenance job that has ended", "error", err)
		}
	}
}
