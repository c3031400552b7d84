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

// steppedStore blocks each call of a race's client until the schedule lets the client continue. It
// is safe for concurrent use.
type steppedStore struct {
	registry.Store

	mu      sync.Mutex // guards the fields below; a leaf
	waiting map[string]chan struct{}
	fates   []fate           // of the next Applies of clients; later Applies are answered
	late    []registry.Batch // batches to be applied later
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
		_, _ = s.Store.Apply(ctx, batch) // the answer is lost
		return nil, registry.ErrUnknown
	case neverHappens, happensLater:
		return nil, registry.ErrUnknown
	}
	return s.Store.Apply(ctx, batch)
}

// fate returns the fate of a batch. It keeps a batch that will be applied later.
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

// release applies those late batches that can still take effect.
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

// clientOf returns the name of the client that makes the call, or "" if the caller is not a client
// of a race.
func clientOf(ctx context.Context) string {
	name, _ := ctx.Value(clientKey{}).(string)
	return name
}

// isClient reports whether a client of a race makes the call.
func isClient(ctx context.Context) bool {
	return clientOf(ctx) != ""
}

// step waits until the client named in ctx may continue, or until ctx ends. A client makes one call
// at a time.
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

// ready returns the clients that wait for their next call, sorted.
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

// resume lets a waiting client make its call.
func (s *steppedStore) resume(client string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	close(s.waiting[client])
	delete(s.waiting, client)
}

// schedule chooses, from the clients that are ready, the one that makes the next call. If it
// returns "", time passes instead.
type schedule func(ready []string) string

// runSchedule runs clients, each in a goroutine. They make one call of the store at a time, in the
// order chosen by the schedule next. It returns when all clients have ended. It must run in a
// bubble of synctest: a client that waits for a lock is not ready, and time passes when no client
// is.
func runSchedule(t *testing.T, store *steppedStore, next schedule, clients map[string]func(context.Context)) {
	t.Helper()
	var group sync.WaitGroup
	ended := make(chan struct{})
	for name, client := range clients {
		group.Go(func() {
			ctx := context.WithValue(t.Context(), clientKey{}, name)
			store.step(ctx) // its first call may be made while it holds locks
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
			store.resume(client)
		} else {
			time.Sleep(directory.DroppingStale + time.Second)
		}
	}
}

// inTurn is the schedule for a single client.
func inTurn(ready []string) string { return ready[0] }

// twoSwitches returns a schedule with two switches: the client first makes firstCalls calls, then
// second makes secondCalls, then first makes the rest, then second. It skips a client that is not
// ready. reached reports whether both clients made these numbers of calls.
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

// anyOrder chooses clients at random.
func anyOrder(random *rand.Rand) schedule {
	return func(ready []string) string { return ready[random.IntN(len(ready))] }
}

// withBreaks is the schedule next, but now and then it lets time pass. After that, unfinished work
// of a client looks like that of a dead process.
func withBreaks(random *rand.Rand, next schedule) schedule {
	return func(ready []string) string {
		if random.IntN(40) == 0 {
			return ""
		}
		return next(ready)
	}
}
