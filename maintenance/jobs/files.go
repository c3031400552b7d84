package jobs

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"moorage/catalog/documents"
	"moorage/ledger"
	"moorage/manifests"
	"moorage/metadata"
	"moorage/registry"
	"moorage/storage"
)

const (
	// Folder is the folder in a warehouse for the server's own files. No table can be in it.
	Folder = "~moorage"
	// fileBytesMax is the maximum size of one of a job's own files. Once a list reaches listBytes,
	// a new list begins.
	fileBytesMax = 256 << 20
	listBytes    = 8 << 20
	// listsMax is the maximum number of lists of a job. The job's record names all of them.
	// Together they hold up to 20 million files.
	listsMax = 1000
)

// input is the stored input of a job.
type input struct {
	Version int             `json:"version"`
	Expired []expired       `json:"expired,omitempty"`
	Stats   []string        `json:"statistics,omitempty"`
	Orphans *OrphanSettings `json:"orphans,omitempty"`
}

// expired describes an expired snapshot in the input of a job.
type expired struct {
	ID        int64    `json:"snapshot-id"`
	List      string   `json:"manifest-list,omitempty"`
	Manifests []string `json:"manifests,omitempty"`
	Encrypted bool     `json:"encrypted,omitempty"`
}

// inputVersion is the version of the inputs that this package writes and reads.
const inputVersion = 1

func (in input) ids() map[int64]bool {
	ids := make(map[int64]bool, len(in.Expired))
	for _, e := range in.Expired {
		ids[e.ID] = true
	}
	return ids
}

func (in input) reach() expiredParts {
	snapshots := make([]metadata.Snapshot, len(in.Expired))
	for i, e := range in.Expired {
		snapshots[i] = metadata.Snapshot{ID: e.ID, ManifestList: e.List, Manifests: e.Manifests, Encrypted: e.Encrypted}
	}
	return expiredParts{Snapshots: snapshots, Statistics: in.Stats}
}

// Listed is a file in a list of a job.
type Listed struct {
	Path string `json:"path"`
	// Bytes and Modified describe an orphan as the storage listed it. They are zero for files of
	// expired snapshots.
	Bytes    int64     `json:"bytes,omitempty"`
	Modified time.Time `json:"modified,omitzero"`
}

// DamagedError means that a job's own file is missing, or differs from the job's record.
type DamagedError struct {
	Location string
	Why      string
}

// Error returns the text of the error.
func (e *DamagedError) Error() string { return fmt.Sprintf("the job's file %s %s", e.Location, e.Why) }

// writeFile writes a job's own file under a new name.
func writeFile(ctx context.Context, l *ledger.Ledger, store storage.Store, folder, name, what string, count int64,
	body []byte) (registry.JobFile, error) {
	unique, err := l.NewUUID()
	if err != nil {
		return registry.JobFile{}, err
	}
	location := storage.Join(folder, name+"-"+unique+".json")
	file := registry.JobFile{Location: location, What: what, Count: count, SHA256: sha256.Sum256(body)}
	if err := store.Create(ctx, location, body); err != nil {
		return registry.JobFile{}, fmt.Errorf("write %s: %w", location, err)
	}
	return file, nil
}

// readFile reads a job's own file, which must match the job's record.
func (j *Jobs) readFile(ctx context.Context, store storage.Store, file registry.JobFile) ([]byte, error) {
	body, err := storage.ReadAll(ctx, store, file.Location, fileBytesMax)
	switch {
	case errors.Is(err, storage.ErrNotFound):
		return nil, &DamagedError{file.Location, "is gone"}
	case err != nil:
		return nil, err
	case sha256.Sum256(body) != file.SHA256:
		return nil, &DamagedError{file.Location, "has changed"}
	}
	return body, nil
}

func (j *Jobs) readInput(ctx context.Context, store storage.Store, at *job) (in input, err error) {
	if at.value.Input == nil {
		return input{}, &DamagedError{at.value.Folder, "has no input"}
	}
	body, err := j.readFile(ctx, store, *at.value.Input)
	if err != nil {
		return input{}, err
	}
	if err := json.Unmarshal(body, &in); err != nil || in.Version != inputVersion {
		return input{}, &DamagedError{at.value.Input.Location, "is of another version"}
	}
	return in, nil
}

// readList reads a list of a job.
func (j *Jobs) readList(ctx context.Context, store storage.Store, file registry.JobFile) ([]Listed, error) {
	body, err := j.readFile(ctx, store, file)
	if err != nil {
		return nil, err
	}
	var all []Listed
	decoder := json.NewDecoder(bytes.NewReader(body))
	for decoder.More() {
		var one Listed
		if err := decoder.Decode(&one); err != nil {
			return nil, &DamagedError{file.Location, "cannot be read"}
		}
		all = append(all, one)
	}
	if int64(len(all)) != file.Count {
		return nil, &DamagedError{file.Location, "has another number of files"}
	}
	return all, nil
}

// sink receives the files to delete.
type sink interface {
	add(ctx context.Context, what string, file Listed) error
}

// lists is the sink that writes a job's lists. All files in a list are of the same kind.
type lists struct {
	jobs   *Jobs
	store  storage.Store
	folder string

	what    string
	body    bytes.Buffer
	count   int64
	written []registry.JobFile
}

func (l *lists) add(ctx context.Context, what string, file Listed) error {
	if l.count >= listMax || l.body.Len() >= listBytes || l.count > 0 && l.what != what {
		if err := l.flush(ctx); err != nil {
			return err
		}
	}
	l.what = what
	l.count++
	return json.NewEncoder(&l.body).Encode(file)
}

func (l *lists) flush(ctx context.Context) error {
	if l.count == 0 {
		return nil
	}
	if len(l.written) == listsMax {
		return fmt.Errorf("%w: over %d lists of files that nothing reaches; remove most of them by another tool, "+
			"or expire fewer snapshots at a time", manifests.ErrTooMuch, listsMax)
	}
	body := bytes.Clone(l.body.Bytes())
	file, err := writeFile(ctx, l.jobs.ledger, l.store, l.folder, "list", l.what, l.count, body)
	if err != nil {
		return err
	}
	l.written = append(l.written, file)
	l.body.Reset()
	l.count = 0
	return nil
}

// deleteOwn deletes a job's own files after its record is gone. The sweep deletes any that remain.
func deleteOwn(ctx context.Context, j *Jobs, store storage.Store, value registry.Job) {
	deleteFiles(ctx, j, store, value.Folder, ownFiles(value))
}

// ownFiles returns a job's own files.
func ownFiles(value registry.Job) (files []string) {
	if value.Input != nil {
		files = append(files, value.Input.Location)
	}
	for _, list := range value.Lists {
		files = append(files, list.Location)
	}
	return files
}

func deleteFiles(ctx context.Context, j *Jobs, store storage.Store, folder string, files []string) {
	if len(files) == 0 {
		return
	}
	if err := documents.DeleteJobFiles(ctx, store, folder, files); err != nil {
		j.log.WarnContext(ctx, "could not delete the files of a maintenance job that has ended",
			"folder", folder, "error", err)
	}
}
