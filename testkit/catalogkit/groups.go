package catalogkit

import (
	"context"
	"fmt"
	"sync"
	"testing/synctest"

	"moorage"
	"moorage/catalog"
	"moorage/registry"
	"moorage/storage"
	"moorage/testkit"
)

// CallCount counts the files and the Applies of a fixture.
type CallCount struct {
	mu             sync.Mutex // guards the fields; a leaf
	files, applies int
	Hold           chan struct{} // if set, the next Apply waits for it
}

// Onto makes c count the calls of a fixture's stores.
func (c *CallCount) Onto(config *catalog.Config) {
	WrapStorage(config, func(inner storage.Store) storage.Store { return &groupFiles{inner, c} })
	config.Store = &groupApplies{config.Store, c}
}

// Reset returns the counts and sets them to zero.
func (c *CallCount) Reset() (files, applies int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	files, applies = c.files, c.applies
	c.files, c.applies = 0, 0
	return files, applies
}

type groupFiles struct {
	storage.Store
	count *CallCount
}

func (f *groupFiles) Create(ctx context.Context, location string, body []byte) error {
	f.count.mu.Lock()
	f.count.files++
	f.count.mu.Unlock()
	return f.Store.Create(ctx, location, body)
}

type groupApplies struct {
	registry.Store
	count *CallCount
}

func (s *groupApplies) Apply(ctx context.Context, batch registry.Batch) ([]registry.ETag, error) {
	s.count.mu.Lock()
	s.count.applies++
	hold := s.count.Hold
	s.count.Hold = nil
	s.count.mu.Unlock()
	if hold != nil {
		<-hold
	}
	return s.Store.Apply(ctx, batch)
}

// Member is a commit that waits behind others.
type Member func(ctx context.Context, c catalog.Verbs) (*catalog.Table, error)

// GroupAnswer is the answer to a member.
type GroupAnswer struct {
	Table *catalog.Table
	Err   error
}

// Together starts members one after another while an earlier commit is held in its Apply. When all
// of them wait, Together calls before and releases the commit. It returns the members' answers. It
// must run in a synctest bubble.
func Together(f *Fixture, count *CallCount, before func(), members ...Member) []GroupAnswer {
	f.T.Helper()
	hold := make(chan struct{})
	count.mu.Lock()
	count.Hold = hold
	count.mu.Unlock()
	var group sync.WaitGroup
	group.Go(func() {
		if _, err := f.Commit(f.Ctx, testkit.Ident("t"), SetProperty(f.T, "in front", "yes")); err != nil {
			f.T.Error(err)
		}
	})
	synctest.Wait()
	answers := make([]GroupAnswer, len(members))
	for i, m := range members {
		group.Go(func() {
			ctx := moorage.WithRequestID(f.Ctx, fmt.Sprintf("request %d", i))
			answers[i].Table, answers[i].Err = m(ctx, f.Instance.Named(fmt.Sprintf("caller %d", i)))
		})
		synctest.Wait()
	}
	count.Reset()
	if before != nil {
		before()
	}
	close(hold)
	group.Wait()
	return answers
}

// Load loads a table.
func (f *Fixture) Load(name string) *catalog.Table {
	f.T.Helper()
	table, err := f.LoadTable(f.Ctx, testkit.Ident(name))
	if err != nil {
		f.T.Fatalf("load %s: %v", name, err)
	}
	return table
}
