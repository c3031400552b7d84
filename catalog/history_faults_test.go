package catalog_test

import (
	"bytes"
	"context"
	"maps"
	"math/rand/v2"
	"sync"

	"moorage/registry"
	"moorage/storage"
)

// createdFiles holds every file that was ever created. It is safe for concurrent use.
type createdFiles struct {
	mu     sync.Mutex // guards bodies; a leaf
	bodies map[string][]byte
}

func newCreatedFiles() *createdFiles { return &createdFiles{bodies: map[string][]byte{}} }

// all returns the files by their location.
func (f *createdFiles) all() map[string][]byte {
	f.mu.Lock()
	defer f.mu.Unlock()
	return maps.Clone(f.bodies)
}

// recordingStorage adds each new file to created.
type recordingStorage struct {
	storage.Store
	created *createdFiles
}

func (s recordingStorage) Create(ctx context.Context, location string, body []byte) error {
	err := s.Store.Create(ctx, location, body)
	if err == nil {
		s.created.mu.Lock()
		defer s.created.mu.Unlock()
		s.created.bodies[location] = bytes.Clone(body)
	}
	return err
}

// MayBeGone answers as the storage itself does.
func (s recordingStorage) MayBeGone(location string) bool {
	local, ok := s.Store.(storage.Local)
	return ok && local.MayBeGone(location)
}

// unansweredStore loses the answers of some Applies for good. A call that asks for their outcome
// gets an error. Some of them have happened, some never will, and some happen later.
type unansweredStore struct {
	registry.Store

	mu     sync.Mutex // guards the fields below; not held over calls of Store
	chance *rand.Rand
	silent map[registry.Key]bool // the change records that cannot be read
	late   []registry.Batch
	drawn  int
}

// unansweredFirst is the number of the first Apply that is never answered. In a short history, it
// may be the only one.
const unansweredFirst = 20

func newUnansweredStore(store registry.Store, chance *rand.Rand) *unansweredStore {
	return &unansweredStore{Store: store, chance: chance, silent: map[registry.Key]bool{}}
}

// isSilent reports whether reads of a key fail.
func (s *unansweredStore) isSilent(key registry.Key) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.silent[key]
}

func (s *unansweredStore) Get(ctx context.Context, keys ...registry.Key) ([]registry.Record, error) {
	for _, key := range keys {
		if s.isSilent(key) {
			return nil, registry.ErrFailed
		}
	}
	return s.Store.Get(ctx, keys...)
}

func (s *unansweredStore) Apply(ctx context.Context, batch registry.Batch) ([]registry.ETag, error) {
	for _, write := range batch.Writes {
		if s.isSilent(write.Key) {
			return nil, registry.ErrFailed
		}
	}
	if batch.Change == nil {
		return s.Store.Apply(ctx, batch)
	}
	switch s.fate(batch) {
	case happens:
		_, _ = s.Store.Apply(ctx, batch) // the answer is lost
		return nil, registry.ErrUnknown
	case neverHappens, happensLater:
		return nil, registry.ErrUnknown
	}
	return s.Store.Apply(ctx, batch)
}

// fate is the fate of an Apply.
type fate uint8

const (
	isAnswered fate = iota
	happens
	neverHappens
	happensLater
)

// fate draws the fate of batch, and records it.
func (s *unansweredStore) fate(batch registry.Batch) fate {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.drawn++
	if s.chance.IntN(100) > 0 && s.drawn != unansweredFirst {
		return isAnswered
	}
	s.silent[registry.ChangeKey(batch.Change.ID)] = true
	drawn := fate(1 + s.chance.IntN(3))
	if drawn == happensLater {
		change := *batch.Change
		batch.Change = &change
		s.late = append(s.late, batch)
	}
	return drawn
}

// release lets those late writes happen that still can.
func (s *unansweredStore) release(ctx context.Context) error {
	s.mu.Lock()
	late := s.late
	s.late = nil
	s.mu.Unlock()
	var answers []error
	for _, batch := range late {
		if _, err := s.Store.Apply(ctx, batch); err != nil {
			answers = append(answers, err)
		}
	}
	return lateAnswers(answers)
}
