package postgres

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"moorage/registry"
	"moorage/testkit/pgserver"
	"moorage/testkit/scale"
)

// newProxy returns a proxy in front of server.
func newProxy(t testing.TB, server *pgserver.Server) *Proxy {
	t.Helper()
	proxy, err := NewProxy(server)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		proxy.Watch(nil)
		if err := proxy.Close(); err != nil {
			t.Error(err)
		}
	})
	return proxy
}

// migrated returns connection string options that select a new schema with tables.
func migrated(t testing.TB) string {
	t.Helper()
	dsn := newSchema(t)
	if _, err := Migrate(t.Context(), dsn); err != nil {
		t.Fatal(err)
	}
	return strings.TrimPrefix(dsn, server.DSN())
}

// openStore opens a store that the test closes. By default, its calls wait so long for a connection
// that only a hanging server makes them fail.
func openStore(t testing.TB, dsn string, options Options) *Store {
	t.Helper()
	options.AcquireTimeout = cmp.Or(options.AcquireTimeout, time.Minute)
	store, err := Open(t.Context(), dsn, options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	})
	return store
}

// step is a point of the protocol: the n-th message from one side, counted from 0.
type step struct {
	fromServer bool
	n          int
}

// watchAt returns a watch function for a proxy, which calls the function do once, for the message
// of the step. reached reports whether that has happened.
func watchAt(s step, do func() Verdict) (watch func(Message) Verdict, reached func() bool) {
	var mu sync.Mutex // guards seen and done
	seen, done := 0, false
	watch = func(m Message) Verdict {
		mu.Lock()
		hit := m.FromServer == s.fromServer && seen == s.n && !done
		if m.FromServer == s.fromServer {
			seen++
		}
		done = done || hit
		mu.Unlock()
		if hit {
			return do()
		}
		return Forward
	}
	return watch, func() bool {
		mu.Lock()
		defer mu.Unlock()
		return done
	}
}

// faultID returns the n-th ID of a test.
func faultID(n int) registry.ID { return registry.ID{0xfa, byte(n >> 16), byte(n >> 8), byte(n)} }

// faultKeys returns the keys that faultBatch n writes.
func faultKeys(n int) []registry.Key {
	return []registry.Key{
		registry.PointerKey(faultID(n)), registry.LocationKey(fmt.Sprintf("file:/%d", n)), registry.ChangeKey(faultID(n)),
	}
}

// faultBatch returns a batch that creates one pointer, one location and a change, and overwrites a
// record shared by all batches.
func faultBatch(n int, refused bool) registry.Batch {
	keys, state := faultKeys(n), registry.StateLive
	if refused {
		state = registry.StateDropping
	}
	return registry.Batch{
		Conditions: []registry.Condition{registry.StateIs(registry.WarehouseKey("w"), state), registry.Absent(keys[0])},
		Writes: []registry.Write{
			registry.Put(keys[0], registry.StateLive, []byte("value")), registry.Put(keys[1], registry.StateOwner, nil),
			registry.Put(registry.LocationKey("shared"), registry.StateOwner, nil),
		},
		Change: &registry.Change{ID: faultID(n)},
	}
}

// outcomes counts how Applies ended.
type outcomes struct{ done, refused, unavailable, unknownDone, unknownUndone, ended int }

// judge fails the test unless the result of Apply n agrees with the database. The server must have
// finished its work.
func (o *outcomes) judge(t *testing.T, direct *Store, n int, at string, etags []registry.ETag, err error) {
	t.Helper()
	records, getErr := direct.Get(t.Context(), faultKeys(n)...)
	if getErr != nil {
		t.Fatal(getErr)
	}
	applied := records[0].Exists()
	for _, r := range records {
		if r.Exists() != applied {
			t.Fatalf("%s: half of a batch is there: %v", at, records)
		}
	}
	_, refused := registry.FailedCondition(err)
	switch {
	case err == nil:
		o.done++
		if !applied || records[0].ETag != etags[0] {
			t.Fatalf("%s: acknowledged with etag %s, but the record is %v", at, etags[0], records[0])
		}
		return
	case errors.Is(err, registry.ErrUnknown) && applied:
		o.unknownDone++
		return
	case errors.Is(err, registry.ErrUnknown):
		o.unknownUndone++
		return
	case refused:
		o.refused++
	case errors.Is(err, registry.ErrUnavailable):
		o.unavailable++
	case errors.Is(err, context.Canceled):
		o.ended++
	default:
		t.Fatalf("%s: %v, which is no outcome", at, err)
	}
	if applied {
		t.Fatalf("%s: told %v, but it was applied", at, err)
	}
}

// situation is the state of the connection of an Apply.
type situation struct {
	name    string
	options string
	prepare func(t *testing.T, store *Store, n int)
}

func situations() []situation {
	warm := func(t *testing.T, store *Store, n int) {
		if _, err := store.Apply(t.Context(), faultBatch(n, false)); err != nil {
			t.Fatal(err)
		}
	}
	return []situation{
		{"no connection", "", func(_ *testing.T, store *Store, _ int) { store.pool.Reset() }},
		{"statements not prepared", "", func(*testing.T, *Store, int) {}},
		{"statements prepared", "", warm},
		{"no prepared statements", "&default_query_exec_mode=exec", warm},
	}
}

// eachStep calls the function try for every point of the protocol of an Apply, until an Apply
// completes without a fault. Without -every, it skips some points, and begins at a random one.
func eachStep(t *testing.T, try func(t *testing.T, proxy *Proxy, store *Store, n int, s step) (reached bool)) {
	seed := time.Now().UnixNano()
	t.Logf("seed %d", seed)
	chance := rand.New(rand.NewPCG(uint64(seed), 0))
	stride := 3 // no larger, because each outcome must occur
	if scale.Every() {
		stride = 1
	}
	for _, situation := range situations() {
		first := chance.IntN(stride)
		t.Run(situation.name, func(t *testing.T) {
			t.Parallel()
			schema := migrated(t)
			proxy := newProxy(t, server)
			n := 0
			for _, fromServer := range []bool{false, true} {
				for k := first; ; k += stride {
					store := openStore(t, proxy.DSN()+schema+situation.options+"&pool_max_conns=1", Options{})
					if n == 0 {
						if _, err := store.Apply(t.Context(), registry.Batch{Writes: []registry.Write{registry.Put(registry.WarehouseKey("w"), registry.StateLive, nil)}}); err != nil {
							t.Fatal(err)
						}
					}
					situation.prepare(t, store, n+1)
					n += 2
					reached := try(t, proxy, store, n, step{fromServer, k})
					proxy.Watch(nil)
					_ = store.Close()
					if !reached {
						break
					}
				}
			}
			if n < 20 {
				t.Errorf("only %d steps", n/2)
			}
		})
	}
}

// TestCutAtEachStep cuts the connection before each message of an Apply, from either side.
func TestCutAtEachStep(t *testing.T) {
	t.Parallel()
	direct := map[*Proxy]*Store{}
	var mu sync.Mutex // guards direct and all
	var all outcomes
	t.Run("steps", func(t *testing.T) {
		eachStep(t, func(t *testing.T, proxy *Proxy, store *Store, n int, s step) bool {
			mu.Lock()
			if direct[proxy] == nil {
				direct[proxy] = openDirect(t, store)
			}
			mine := direct[proxy]
			mu.Unlock()
			var got outcomes
			for i, refused := range []bool{false, true} {
				watch, reached := watchAt(s, func() Verdict { return Cut })
				proxy.Watch(watch)
				m := n + i*100_000
				etags, err := store.Apply(t.Context(), faultBatch(m, refused))
				proxy.Watch(nil)
				proxy.CutAll()
				proxy.Settled()
				got.judge(t, mine, m, fmt.Sprintf("cut at %+v, refused %t", s, refused), etags, err)
				if !refused && !reached() {
					if err != nil {
						t.Fatalf("not cut at %+v: %v", s, err)
					}
					return false
				}
			}
			mu.Lock()
			all.done, all.refused, all.unavailable = all.done+got.done, all.refused+got.refused, all.unavailable+got.unavailable
			all.unknownDone, all.unknownUndone = all.unknownDone+got.unknownDone, all.unknownUndone+got.unknownUndone
			mu.Unlock()
			return true
		})
	})
	t.Logf("outcomes: %+v", all)
	// Check that each outcome has occurred.
	if all.refused == 0 || all.unavailable == 0 || all.unknownDone == 0 || all.unknownUndone == 0 {
		t.Errorf("outcomes: %+v, want some of each", all)
	}
}

// TestContextEndsAtEachStep ends the context while each message of an Apply is held back. The
// message is then forwarded.
func TestContextEndsAtEachStep(t *testing.T) {
	t.Parallel()
	direct := map[*Proxy]*Store{}
	var mu sync.Mutex // guards direct and all
	var all outcomes
	t.Run("steps", func(t *testing.T) {
		eachStep(t, func(t *testing.T, proxy *Proxy, store *Store, n int, s step) bool {
			mu.Lock()
			if direct[proxy] == nil {
				direct[proxy] = openDirect(t, store)
			}
			mine := direct[proxy]
			mu.Unlock()
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			released := make(chan struct{})
			watch, reached := watchAt(s, func() Verdict {
				cancel()
				<-released
				return Forward
			})
			proxy.Watch(watch)
			etags, err := store.Apply(ctx, faultBatch(n, false))
			close(released)
			proxy.Watch(nil)
			awaitKept(t, store) // Close would cut a write off that takes longer than closePatience
			_ = store.Close()   // waits until the driver has ended the connection
			proxy.CutAll()
			proxy.Settled()
			if reached() && !errors.Is(err, context.Canceled) && err != nil {
				t.Fatalf("context ended at %+v: %v", s, err)
			}
			mu.Lock()
			defer mu.Unlock()
			all.judge(t, mine, n, fmt.Sprintf("context ended at %+v", s), etags, err)
			return reached()
		})
	})
	// A batch that was sent continues after its caller has gone, so it is done as soon as the
	// server answers.
	if all.ended == 0 || all.unknownDone == 0 || all.unknownUndone > 0 {
		t.Errorf("outcomes: %+v, want some that ended and some that were done, and none that stopped halfway", all)
	}
}

// openDirect opens the database of store without a proxy.
func openDirect(t *testing.T, store *Store) *Store {
	t.Helper()
	schema := store.pool.Config().ConnConfig.RuntimeParams["search_path"]
	return openStore(t, server.DSN()+"&search_path="+schema, Options{})
}

// TestLateError: the end of a read's own time limit is not mistaken for the end of its caller's
// context.
func TestLateError(t *testing.T) {
	t.Parallel()
	late := fmt.Errorf("read: %w", context.DeadlineExceeded)
	if err := lateError(t.Context(), late); !errors.Is(err, registry.ErrUnavailable) || errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%v, want only ErrUnavailable", err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if err := lateError(ended, late); !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, registry.ErrUnavailable) {
		t.Errorf("%v, want only the context's error", err)
	}
}

func TestUnavailableBeforeAnythingIsSent(t *testing.T) {
	t.Parallel()
	proxy := newProxy(t, server)
	store := openStore(t, proxy.DSN()+migrated(t)+"&pool_max_conns=1", Options{})
	store.acquireTimeout = 50 * time.Millisecond
	everyCall := func(t *testing.T) {
		t.Helper()
		began := time.Now()
		_, applyErr := store.Apply(t.Context(), faultBatch(1, false))
		_, getErr := store.Get(t.Context(), registry.WarehouseKey("w"))
		_, listErr := store.List(t.Context(), registry.TableWarehouse, "", "", 1)
		_, changesErr := store.Changes(t.Context(), 0, 1)
		for name, err := range map[string]error{"apply": applyErr, "get": getErr, "list": listErr, "changes": changesErr, "healthy": store.Healthy(t.Context())} {
			if !errors.Is(err, registry.ErrUnavailable) || errors.Is(err, registry.ErrUnknown) || errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("%s: %v, want only ErrUnavailable", name, err)
			}
		}
		if took := time.Since(began); took > time.Minute {
			t.Errorf("five calls took %v", took)
		}
	}
	t.Run("pool exhausted", func(t *testing.T) {
		for _, pool := range []*pgxpool.Pool{store.pool, store.reads} {
			conn, err := pool.Acquire(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Release()
		}
		everyCall(t)
	})
	t.Run("server does not answer", func(t *testing.T) {
		store.pool.Reset()
		store.reads.Reset()
		released := make(chan struct{})
		proxy.Watch(func(Message) Verdict { <-released; return Cut })
		everyCall(t)
		proxy.Watch(nil)
		close(released)
	})
	t.Run("connection refused", func(t *testing.T) {
		if err := proxy.Refuse(); err != nil {
			t.Fatal(err)
		}
		store.pool.Reset()
		store.reads.Reset()
		everyCall(t)
	})
}

// TestHostsAreTriedInTurn opens a store with two hosts. The first refuses connections, and the
// second accepts no writes.
func TestHostsAreTriedInTurn(t *testing.T) {
	t.Parallel()
	const refusing = "127.0.0.1:1" // no server listens there
	dsn := strings.Replace(server.DSN(), "moorage@", "moorage@"+refusing+",", 1) + "&target_session_attrs=any" + migrated(t)
	store := openStore(t, dsn, Options{})
	if err := store.Healthy(t.Context()); err != nil {
		t.Error(err)
	}
	// A server that accepts no writes is not used, whatever the connection string requests.
	for _, attrs := range []string{"any", "read-only", "prefer-standby"} {
		if s, err := Open(t.Context(), server.DSN()+"&default_transaction_read_only=on&target_session_attrs="+attrs, Options{}); err == nil {
			t.Errorf("a server that accepts no writes was taken with target_session_attrs=%s", attrs)
			_ = s.Close()
		}
	}
}

func TestPasswordsAreNotTold(t *testing.T) {
	t.Parallel()
	const password = "hush-hush"
	for _, dsn := range []string{
		"postgres://moorage:" + password + "@127.0.0.1:1/postgres?sslmode=disable",
		"postgres://moorage:" + password + "@127.0.0.1:port/postgres",
		"postgres://moorage:" + password + "@127.0.0.1:1/postgres?sslmode=none&password=" + password,
		"postgres://moorage:" + password + "%zz@127.0.0.1/postgres",
		"host=127.0.0.1 port=x password = " + password,
		"host=127.0.0.1 port=1 sslmode=disable password='" + password,
	} {
		_, openErr := Open(t.Context(), dsn, Options{})
		_, migrateErr := Migrate(t.Context(), dsn)
		for _, err := range []error{openErr, migrateErr} {
			if err == nil || strings.Contains(fmt.Sprintf("%v %+v %#v", err, err, err), password) {
				t.Errorf("%s: %v", dsn, err)
			}
		}
	}
}
