package jobs

import (
	"context"

	"moorage/catalog/documents"
	"moorage/metadata"
	"moorage/registry"
	"moorage/storage"
)

// Promise holds the files that a table's job has yet to delete. A purge of the table takes over
// their deletion.
type Promise struct {
	// Expired holds the snapshots with files that the job has yet to delete. Some of their lists
	// and manifests may already be gone.
	Expired []metadata.Snapshot
	// Statistics holds the statistics files of these snapshots.
	Statistics []string

	job registry.Job
}

// ReadPromise returns the promise of a job. files must give access to the folder of the job.
//
// Errors: DamagedError if the job's own files are missing or have changed; the errors of the
// storage.
func ReadPromise(ctx context.Context, files storage.Store, value registry.Job) (Promise, error) {
	p := Promise{job: value}
	if value.Input == nil {
		return p, nil // a job of a program outside the server, or of a kind that deletes nothing
	}
	in, err := new(Jobs).readInput(ctx, files, &job{value: value})
	if err != nil {
		return p, err
	}
	expired := in.reach()
	p.Expired, p.Statistics = expired.Snapshots, expired.Statistics
	return p, nil
}

// EachListed calls do for each file in the lists of the job, in the order of deletion. It holds a
// whole list in memory. Errors: as for ReadPromise, and the errors of do.
func (p Promise) EachListed(ctx context.Context, files storage.Store, do func(path string) error) error {
	for _, list := range p.job.Lists {
		listed, err := new(Jobs).readList(ctx, files, list)
		if err != nil {
			return err
		}
		for _, file := range listed {
			if err := do(file.Path); err != nil {
				return err
			}
		}
	}
	return nil
}

// Forget deletes the job's own files. The job's record must be gone.
func (p Promise) Forget(ctx context.Context, files storage.Store) error {
	own := ownFiles(p.job)
	if len(own) == 0 {
		return nil
	}
	return documents.DeleteJobFiles(ctx, files, p.job.Folder, own)
}
