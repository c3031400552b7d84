package catalog_test

import (
	"context"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"moorage/catalog/directory"
	"moorage/registry"
)

// steppedStore holds up the calls that a client of a race makes, until the race lets it make the
// next one. It is safe for concurrent use.
type steppedStore struct {
	registry.Store

	mu      sync.Mutex // guards the fields below; a leaf
	waiting map[string]chan struct{}
	fates   []fate           // of the next Applies of clients; those after them are answered
	late    []registry.Batch // that happen later
}

func (s *steppedStore) Get(ctx context.Context, keys ...registry.Key) ([]registry.Record, error) {
	s.step(ctx)
	return s.Store.Get(ctx, keys...)
}

func (s *steppedStore) List(ctx context.Context, table registry.Table, prefix, after string, limit int) ([]registry.Record, error) {
	s.step(ctx)
	return s.Store.List(ctx, table, prefix, after, limit)
}

func (s *steppedStore) ListKeys(ctx context.Context, table registry.Table, prefix, after string, limit int) ([]registry.Record, error) {
	s.step(ctx)
	return s.Store.ListKeys(ctx, table, prefix, after, limit)
}

func (s *steppedStore) Apply(ctx context.Context, batch registry.Batch) ([]registry.ETag, error) {
	s.step(ctx)
	switch s.fate(ctx, batch) {
	case happens:
		_, _ = s.Store.Apply(ctx, batch) // the answer is what is lost
		return nil, registry.ErrUnknown
	case neverHappens, happensLater:
		return nil, registry.ErrUnknown
	}
	return s.Store.Apply(ctx, batch)
}

// fate returns what happens to a batch, and keeps it if that is later.
func (s *steppedStore) fate(ctx context.Context, batch registry.Batch) fate {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.fates) == 0 || batch.Change == nil || !isClient(ctx) {
		return isAnswered
	}
	next := s.fates[0]
	s.fates = s.fates[1:]
	if next == happensLater {
		change := *batch.Change
		batch.Change = &change
		s.late = append(s.late, batch)
	}
	return next
}

// release lets the late batches happen, as far as they still can.
func (s *steppedStore) release(ctx context.Context) error {
	var answers []error
	for _, batch := range s.late {
		if _, err := s.Store.Apply(ctx, batch); err != nil {
			answers = append(answers, err)
		}
	}
	return lateAnswers(answers)
}

type clientKey struct{}

// clientOf returns the name of the client of a race that makes the call; empty if none does.
func clientOf(ctx context.Context) string {
	name, _ := ctx.Value(clientKey{}).(string)
	return name
}

// isClient reports whether a client of a race makes the call.
func isClient(ctx context.Context) bool {
	return clientOf(ctx) != ""
}

// step waits until the client that ctx names may go on, or ctx ends. A client makes one call at a
// time.
func (s *steppedStore) step(ctx context.Context) {
	if !isClient(ctx) {
		return
	}
	client := clientOf(ctx)
	may := make(chan struct{})
	s.mu.Lock()
	s.waiting[client] = may
	s.mu.Unlock()
	select {
	case <-may:
	case <-ctx.Done():
		s.mu.Lock()
		delete(s.waiting, client)
		s.mu.Unlock()
	}
}

// ready returns the clients that wait for their next call, ordered.
func (s *steppedStore) ready() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	clients := make([]string, 0, len(s.waiting))
	for client := range s.waiting {
		clients = append(clients, client)
	}
	slices.Sort(clients)
	return clients
}

// let lets a client that is ready make its call.
func (s *steppedStore) let(client string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	close(s.waiting[client])
	delete(s.waiting, client)
}

// schedule says who makes the next call, of those who are ready; "" lets time pass instead.
type schedule func(ready []string) string

// runSchedule runs clients, each in a goroutine, one call of the store after the other as next has
// it. It returns when all have ended. It must run in a bubble of synctest: a client that waits for
// a lock is not ready, and time passes when nobody is.
func runSchedule(t *testing.T, store *steppedStore, next schedule, clients map[string]func(context.Context)) {
	t.Helper()
	var group sync.WaitGroup
	ended := make(chan struct{})
	for name, client := range clients {
		group.Go(func() {
			ctx := context.WithValue(t.Context(), clientKey{}, name)
			store.step(ctx) // its first call may be made with locks held
			client(ctx)
		})
	}
	go func() {
		group.Wait()
		close(ended)
	}()
	for {
		synctest.Wait()
		select {
		case <-ended:
			return
		default:
		}
		ready := store.ready()
		if len(ready) == 0 {
			time.Sleep(10 * time.Millisecond)
			continue
		}
		if client := next(ready); client != "" {
			store.let(client)
		} else {
			time.Sleep(directory.DroppingStale + time.Second)
		}
	}
}

// inTurn is the schedule for one client alone.
func inTurn(ready []string) string { return ready[0] }

// twoSwitches lets first make some calls, then second some, then first the rest, then second. It
// passes over a client that is not ready. reached reports whether both made as many as they were to
// make.
func twoSwitches(first, second string, firstCalls, secondCalls int) (next schedule, reached func() bool) {
	next = func(ready []string) string {
		turn := first
		switch {
		case firstCalls > 0:
		case secondCalls > 0:
			turn = second
		}
		if !slices.Contains(ready, turn) {
			return ready[0]
		}
		if turn == second {
			secondCalls--
		} else if firstCalls > 0 {
			firstCalls--
		}
		return turn
	}
	return next, func() bool { return firstCalls == 0 && secondCalls == 0 }
}

// anyOrder lets clients go as chance has it.
func anyOrder(random *rand.Rand) schedule {
	return func(ready []string) string { return ready[random.IntN(len(ready))] }
}

// withBreaks is next, but now and then time passes. Then what clients left half done seems to have
// been left by the dead.
func withBreaks(random *rand.Rand, next schedule) schedule {
	return func(ready []string) string {
		if random.IntN(40) == 0 {
			return ""
		}
		return next(ready)
	}
}
