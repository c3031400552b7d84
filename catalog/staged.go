package catalog

import (
	"context"
	"errors"
	"sync"
	"time"

	"moorage/catalog/documents"
	"moorage/storage"
)

// stagedFolderAge is the age at which the folder made for a staged table is removed, if
// nothing was written into it.
const stagedFolderAge = 24 * time.Hour

// stagedRemoveMax bounds how long the removal of one folder is waited for.
const stagedRemoveMax = 10 * time.Second

// stagedFoldersMax bounds how many folders are remembered, the youngest; about 20 MB.
const stagedFoldersMax = 100_000

// stagedFolders remembers the folders that were made for staged tables. Staging stores nothing, so a
// restart forgets them, as does more staging than anybody does; what is left behind then is an empty folder.
type stagedFolders struct {
	// mu guards made, which is in the order of the times; a leaf, never held over I/O.
	mu   sync.Mutex
	made []stagedFolder
}

type stagedFolder struct {
	warehouse string
	store     storage.Folders
	location  string
	at        time.Time
}

func newStagedFolders() *stagedFolders { return &stagedFolders{} }

// make creates the folder at location, in the storage of a warehouse, where that has folders: some engines write
// there before they commit, and do not create it.
func (s *stagedFolders) make(ctx context.Context, warehouse string, store storage.Store, location string, now time.Time) error {
	folders, ok := store.(storage.Folders)
	if !ok {
		return nil
	}
	if err := folders.MakeFolder(ctx, location); err != nil {
		return documents.CreateError(location, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.made) == stagedFoldersMax {
		s.made = append([]stagedFolder(nil), s.made[stagedFoldersMax/2:]...)
	}
	s.made = append(s.made, stagedFolder{warehouse, folders, location, now})
	return nil
}

// sweep removes the folders that were made before now minus stagedFolderAge and are still empty. One that it cannot
// remove does not keep it from the others, and stays. Those of a warehouse whose storage does not answer are for a later round.
func (s *stagedFolders) sweep(ctx context.Context, now time.Time) error {
	var failures []error
	var left []stagedFolder
	silent := make(map[string]bool) // warehouses
	for _, folder := range s.takeOlder(now.Add(-stagedFolderAge)) {
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
	_, err := f.store.RemoveEmptyFolder(ctx, f.location, stagedFolderAge)
	return err
}

// putBack remembers folders again that takeOlder has returned.
func (s *stagedFolders) putBack(older []stagedFolder) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(older)+len(s.made) <= stagedFoldersMax { // else there is more staging than anybody does
		s.made = append(older, s.made...)
	}
}

// takeOlder forgets, and returns, the folders made before limit.
func (s *stagedFolders) takeOlder(limit time.Time) []stagedFolder {
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
