package retention

import (
	"context"
	"errors"
	"sync"
	"time"

	"moorage/storage"
)

const (
	// stagedAge is the age at which the folder of a staged table is removed, if it is still empty.
	stagedAge = 24 * time.Hour
	// stagedRemoveMax is the maximum wait for the removal of one folder.
	stagedRemoveMax = 10 * time.Second
	// stagedMax is the maximum number of remembered folders, about 20 MB. The youngest ones are
	// remembered.
	stagedMax = 100_000
)

// staged removes the empty folders that were created for staged tables. The store has no record of
// staging. So folders are forgotten after a restart, or if very many tables are staged. Forgotten
// folders remain, but they are empty.
type staged struct {
	now func() time.Time

	mu   sync.Mutex     // guards the field below; no lock is taken, and no I/O done, under it
	made []stagedFolder // ordered by time
}

type stagedFolder struct {
	warehouse string
	store     storage.Folders
	location  string
	at        time.Time
}

// RememberStaged remembers a folder that was created for a staged table, in the storage of a
// warehouse.
func (r *Retention) RememberStaged(warehouse string, store storage.Folders, location string) {
	s := r.staged
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.made) == stagedMax {
		s.made = append([]stagedFolder(nil), s.made[stagedMax/2:]...)
	}
	s.made = append(s.made, stagedFolder{warehouse, store, location, s.now()})
}

// run removes the folders that are older than stagedAge and still empty. If it cannot remove a
// folder, it continues with the others. If the storage of a warehouse does not answer, the
// warehouse's folders wait for a later round.
func (s *staged) run(ctx context.Context) error {
	var failures []error
	var left []stagedFolder
	silent := make(map[string]bool) // warehouses whose storage does not answer
	for _, folder := range s.takeOlder(s.now().Add(-stagedAge)) {
		if silent[folder.warehouse] || ctx.Err() != nil {
			left = append(left, folder)
			continue
		}
		err := folder.remove(ctx)
		if errors.Is(err, storage.ErrUnavailable) {
			silent[folder.warehouse] = true
			left = append(left, folder)
		}
		failures = append(failures, err)
	}
	s.putBack(left)
	return errors.Join(append(failures, ctx.Err())...)
}

// remove removes the folder if it is still empty.
func (f stagedFolder) remove(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, stagedRemoveMax)
	defer cancel()
	_, err := f.store.RemoveEmptyFolder(ctx, f.location, stagedAge)
	return err
}

// putBack remembers folders again that takeOlder has returned.
func (s *staged) putBack(older []stagedFolder) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(older)+len(s.made) <= stagedMax { // otherwise far more tables are staged than usual
		s.made = append(older, s.made...)
	}
}

// takeOlder removes and returns the remembered folders created before limit.
func (s *staged) takeOlder(limit time.Time) []stagedFolder {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	for n < len(s.made) && s.made[n].at.Before(limit) {
		n++
	}
	older := s.made[:n:n]
	s.made = s.made[n:]
	return older
}
