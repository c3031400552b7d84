package catalog

import (
	"context"
	"errors"
	"sync"
	"time"

	"moorage/storage"
)

// stagedFolderAge is the age at which the folder made for a staged table is removed, if
// nothing was written into it.
const stagedFolderAge = 24 * time.Hour

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
	store    storage.Folders
	location string
	at       time.Time
}

func newStagedFolders() *stagedFolders { return &stagedFolders{} }

// make creates the folder at location, where the storage has folders: some engines write
// there before they commit, and do not create it.
func (s *stagedFolders) make(ctx context.Context, store storage.Store, location string, now time.Time) error {
	folders, ok := store.(storage.Folders)
	if !ok {
		return nil
	}
	if err := folders.MakeFolder(ctx, location); err != nil {
		return createError(location, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.made) == stagedFoldersMax {
		s.made = append([]stagedFolder(nil), s.made[stagedFoldersMax/2:]...)
	}
	s.made = append(s.made, stagedFolder{folders, location, now})
	return nil
}

// sweep removes the folders that were made before now minus stagedFolderAge and are still empty. One that it cannot
// remove does not keep it from the others, and stays.
func (s *stagedFolders) sweep(ctx context.Context, now time.Time) error {
	var failures []error
	for _, folder := range s.takeOlder(now.Add(-stagedFolderAge)) {
		_, err := folder.store.RemoveEmptyFolder(ctx, folder.location, stagedFolderAge)
		failures = append(failures, err)
	}
	return errors.Join(failures...)
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
