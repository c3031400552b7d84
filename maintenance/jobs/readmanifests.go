package jobs

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"

	"moorage/manifests"
	"moorage/metadata"
	"moorage/storage"
)

// opener opens the files of a table. storage.Store implements it.
type opener interface {
	Open(ctx context.Context, location string) (io.ReadCloser, storage.Info, error)
}

// unreadableError means that a list or manifest is permanently unreadable: it is missing, damaged,
// encrypted or unreachable. Any other error may be temporary.
type unreadableError struct {
	Path string
	Err  error
}

// Error returns the text of the error.
func (e *unreadableError) Error() string { return fmt.Sprintf("cannot read %s: %v", e.Path, e.Err) }

// Unwrap returns why the file cannot be read.
func (e *unreadableError) Unwrap() error { return e.Err }

// seenManifests remembers manifests by name. Two spellings of a name count as two manifests. It has
// no more names than one manifest list may have.
type seenManifests struct {
	names map[[sha256.Size / 2]byte]struct{}
	bytes int
}

func newSeenManifests() *seenManifests {
	return &seenManifests{names: make(map[[sha256.Size / 2]byte]struct{})}
}

// add adds a name, and reports whether it is new. The error is manifests.ErrTooMuch.
func (m *seenManifests) add(name string) (isNew bool, err error) {
	sum := sha256.Sum256([]byte(name))
	key := [sha256.Size / 2]byte(sum[:])
	if _, again := m.names[key]; again {
		return false, nil
	}
	if m.bytes += len(name); len(m.names) == manifests.ListedMax || m.bytes > manifests.NamesBytesMax {
		return false, fmt.Errorf("%w: the snapshots together name over %d manifests, or %d bytes of their names; "+
			"rewrite the manifests, or expire fewer snapshots at a time",
			manifests.ErrTooMuch, manifests.ListedMax, manifests.NamesBytesMax)
	}
	m.names[key] = struct{}{}
	return true, nil
}

var (
	errEncrypted = errors.New("it is encrypted")
	errCut       = errors.New("it yields fewer bytes than it has")
	errFewer     = errors.New("it names fewer live files than its manifest list says")
)

// eachManifest calls do for each manifest of a snapshot, in the order of its list.
func eachManifest(ctx context.Context, files opener, snapshot metadata.Snapshot,
	do func(manifests.Listed) error) error {
	if snapshot.Encrypted {
		return &unreadableError{snapshot.ManifestList, errEncrypted}
	}
	if snapshot.ManifestList == "" {
		for _, path := range snapshot.Manifests {
			listed := manifests.Listed{
				Manifest: manifests.Unlisted(path),
				Added:    manifests.UnknownCount, Existing: manifests.UnknownCount, Deleted: manifests.UnknownCount,
			}
			if err := do(listed); err != nil {
				return err
			}
		}
		return nil
	}
	return readToEnd(ctx, files, snapshot.ManifestList, func(body io.Reader) error {
		for listed, err := range manifests.EachListed(body) {
			if err != nil {
				return &unreadableError{snapshot.ManifestList, err}
			}
			if err := do(listed); err != nil {
				return &callerError{err}
			}
		}
		return nil
	})
}

// eachEntry calls do for each entry of a manifest. If the manifest has fewer live files than its
// list states, eachEntry returns an error after the last entry.
func eachEntry(ctx context.Context, files opener, m manifests.Listed, do func(manifests.NamedFile) error) error {
	if m.Encrypted {
		return &unreadableError{m.Path(), errEncrypted}
	}
	return readToEnd(ctx, files, m.Path(), func(body io.Reader) error {
		live := int64(0)
		for entry, err := range m.Entries(body) {
			if err != nil {
				return &unreadableError{m.Path(), err}
			}
			if !entry.Removed {
				live++
			}
			if err := do(entry); err != nil {
				return &callerError{err}
			}
		}
		if live < m.Live() {
			return &unreadableError{m.Path(), errFewer}
		}
		return nil
	})
}

// callerError wraps an error returned by do, to distinguish it from a fault of the file.
type callerError struct{ error }

// readToEnd opens the file at path, passes it to decode, and reads it to its end. A fault of the
// file is reported as an unreadableError. Other errors come from the storage or from the caller.
func readToEnd(ctx context.Context, files opener, path string, decode func(io.Reader) error) error {
	body, info, err := files.Open(ctx, path)
	switch {
	case errors.Is(err, storage.ErrNotFound), errors.Is(err, storage.ErrOutside), errors.Is(err, storage.ErrLocation):
		return &unreadableError{path, err}
	case err != nil:
		return fmt.Errorf("open %s: %w", path, err)
	}
	defer body.Close()
	watched := &watchedReader{from: body}
	err = decode(watched)
	if caller, ok := errors.AsType[*callerError](err); ok {
		return caller.error
	}
	if err == nil {
		_, err = io.Copy(io.Discard, watched) // reads what the decoder did not read, and so checks the checksum
	}
	switch {
	case watched.err != nil: // a storage error may be temporary, and the decoder may have hidden it
		return fmt.Errorf("read %s: %w", path, watched.err)
	case err == nil && watched.bytes != info.Bytes:
		return &unreadableError{path, errCut}
	}
	return err
}

// watchedReader counts the bytes read, and remembers an error of the storage.
type watchedReader struct {
	from  io.Reader
	bytes int64
	err   error
}

// Read implements io.Reader.
func (r *watchedReader) Read(into []byte) (int, error) {
	n, err := r.from.Read(into)
	r.bytes += int64(n)
	if err != nil && !errors.Is(err, io.EOF) {
		r.err = err
	}
	return n, err
}
