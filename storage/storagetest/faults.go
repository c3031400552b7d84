package storagetest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"moorage/internal/cloudtest"
	"moorage/storage"
)

const (
	// requestsMax is more than any call of the suite sends.
	requestsMax = 10
	// triesMax is how often a store sends a request that fails each time.
	triesMax = 5
	// shortStall is the patience of a store whose server is silent. It is more than a server needs
	// that works.
	shortStall = time.Second
	// contentBytes is the length of the suite's files: several reads of a connection.
	contentBytes = 16 << 10
)

// Cloud says how the suite of faults reaches stores that ask a server over HTTP, and what the
// service behind them answers. The stores implement storage.Lister too.
type Cloud struct {
	// Open returns a store for one test, as Open does, and the proxy through which it asks.
	Open func(t *testing.T, patience Patience) (proxy *cloudtest.Proxy, store storage.Store, root string)
	// Throttles are the answers by which the service asks for fewer requests, by what they are.
	Throttles map[string]cloudtest.Fault
	// Failures are its other answers that are worth another try.
	Failures map[string]cloudtest.Fault
	// Settles are the methods of the requests of a Create whose first answer is lost.
	Settles string
}

// Patience says how long a store waits.
type Patience struct {
	// Stall is how long its server may be silent before the store gives a try up.
	Stall time.Duration
	// Pause bounds the pause between two tries.
	Pause time.Duration
}

// hurry is the patience of stores that are to try again at once. A slow machine must not look like
// a server that is silent.
func hurry() Patience { return Patience{Stall: time.Minute, Pause: time.Millisecond} }

// RunFaults checks that the stores of a cloud do what they are to do in spite of faults that pass,
// and say what they know after those that last.
func RunFaults(t *testing.T, cloud Cloud) {
	t.Helper()
	for name, run := range map[string]func(*testing.T, Cloud){
		"PassingFaults":   testPassingFaults,
		"LastingThrottle": testLastingThrottle,
		"LastingFailure":  testLastingFailure,
		"Deadline":        testDeadline,
		"LostAnswer":      testLostAnswer,
		"LostToAnother":   testLostToAnother,
		"AllAnswersLost":  testAllAnswersLost,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			run(t, cloud)
		})
	}
}

// call is one call of a method, on a file that has a folder of its own.
type call struct {
	name string
	make func(ctx context.Context, store storage.Store, location string) error
	// before and after are whether there is a file before the call, and after it.
	before, after bool
	// reads is whether the call reads the body of its answer.
	reads bool
}

// content is what the files of the suite hold.
func content() []byte { return bytes.Repeat([]byte("0123456789abcdef"), contentBytes/16) }

func calls() []call {
	return []call{
		{name: "Create", after: true, make: createContent},
		{name: "Open", before: true, after: true, reads: true, make: readContent},
		{name: "Stat", before: true, after: true, make: statContent},
		{name: "List", before: true, after: true, reads: true, make: listContent},
		{name: "Delete", before: true, make: func(ctx context.Context, store storage.Store, location string) error {
			return store.Delete(ctx, location)
		}},
		{name: "DeleteMany", before: true, make: func(ctx context.Context, store storage.Store, location string) error {
			return store.Delete(ctx, location, location+".missing")
		}},
	}
}

func createContent(ctx context.Context, store storage.Store, location string) error {
	return store.Create(ctx, location, content())
}

// statContent asks for a file, which must be as long as those that the suite writes.
func statContent(ctx context.Context, store storage.Store, location string) error {
	info, err := store.Stat(ctx, location)
	if err == nil && info.Bytes != contentBytes {
		err = fmt.Errorf("%d bytes, want %d", info.Bytes, contentBytes)
	}
	return err
}

// listContent lists the folder of a file, which must have that one alone.
func listContent(ctx context.Context, store storage.Store, location string) error {
	page, err := store.(storage.Lister).List(ctx, location[:strings.LastIndexByte(location, '/')], "", 10)
	if err == nil && (len(page.Files) != 1 || page.Files[0].Location != location) {
		err = fmt.Errorf("listed %v", page.Files)
	}
	return err
}

// readContent reads a file, which must have what the suite writes.
func readContent(ctx context.Context, store storage.Store, location string) error {
	body, err := storage.ReadAll(ctx, store, location, 2*contentBytes)
	if err == nil && !bytes.Equal(body, content()) {
		err = fmt.Errorf("read %d bytes that are not those of the file", len(body))
	}
	return err
}

// cloudStore is a store in one run of the suite, and the proxy before its server.
type cloudStore struct {
	storage.Store
	proxy *cloudtest.Proxy
	root  string
}

// open returns a store that has found out what its server can do.
func (c Cloud) open(t *testing.T, patience Patience) cloudStore {
	t.Helper()
	proxy, store, root := c.Open(t, patience)
	proxy.Follow(nil)
	if prober, ok := store.(storage.Prober); ok {
		if err := prober.Probe(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	return cloudStore{store, proxy, root}
}

// prepare returns the location of a file that a call begins with, in a folder of its own with that
// name.
func (s cloudStore) prepare(t *testing.T, c call, folder string) (location string) {
	t.Helper()
	s.proxy.Follow(nil)
	location = storage.Join(s.root, c.name, folder, "a")
	if c.before {
		if err := s.Create(t.Context(), location, content()); err != nil {
			t.Fatal(err)
		}
	}
	s.proxy.Follow(nil) // what it counts begins here
	return location
}

// check looks at what a call left. No fault is done from then on.
func (s cloudStore) check(t *testing.T, c call, location string) {
	t.Helper()
	s.proxy.Follow(nil)
	err := readContent(t.Context(), s.Store, location)
	if c.after && err != nil || !c.after && !errors.Is(err, storage.ErrNotFound) {
		t.Errorf("a read after %s = %v; the file is to be there: %t", c.name, err, c.after)
	}
}

// requests returns how many requests the run has sent.
func (s cloudStore) requests() int { return len(strings.Fields(s.proxy.Requests())) }

// forEachCall runs a test for each call of the suite, all with one store and one fault, which has a
// name.
func (c Cloud) forEachCall(t *testing.T, fault string, patience Patience,
	run func(t *testing.T, s cloudStore, c call),
) {
	t.Helper()
	t.Run(fault, func(t *testing.T) {
		t.Parallel()
		s := c.open(t, patience)
		for _, c := range calls() {
			t.Run(c.name, func(t *testing.T) { run(t, s, c) })
		}
	})
}

// testPassingFaults does each fault to each request of each call, until a run has no such request:
// every call succeeds and does what it was to do.
func testPassingFaults(t *testing.T, cloud Cloud) {
	faults := map[string]cloudtest.Fault{
		"cut":              cloudtest.Cut,
		"cut in request":   cloudtest.CutInRequest,
		"lost answer":      cloudtest.Lose,
		"cut in answer":    cloudtest.CutInAnswer,
		"silent":           cloudtest.Silent,
		"silent in answer": cloudtest.SilentInAnswer,
	}
	maps.Copy(faults, cloud.Throttles)
	maps.Copy(faults, cloud.Failures)
	for name, do := range faults {
		patience := hurry()
		if strings.HasPrefix(name, "silent") {
			patience.Stall = shortStall
		}
		cloud.forEachCall(t, name, patience, func(t *testing.T, s cloudStore, c call) {
			for k := range requestsMax {
				location := s.prepare(t, c, fmt.Sprint(k))
				s.proxy.Follow(cloudtest.Nth(k, do))
				if err := c.make(t.Context(), s.Store, location); err != nil {
					t.Errorf("request %d: %v", k, err)
				}
				sent := s.requests()
				s.check(t, c, location)
				if sent <= k {
					return
				}
			}
			t.Fatalf("a call sends more than %d requests", requestsMax)
		})
	}
}

// testLastingThrottle asks a server that always asks for fewer requests: a call gives up, and says
// so to who can heed it.
func testLastingThrottle(t *testing.T, cloud Cloud) {
	for name, do := range cloud.Throttles {
		cloud.forEachCall(t, name, hurry(), func(t *testing.T, s cloudStore, c call) {
			if err := s.lasting(t, c, do); !errors.Is(err, storage.ErrSlowDown) {
				t.Errorf("%s = %v, want ErrSlowDown", c.name, err)
			}
		})
	}
}

// testLastingFailure asks a server that always fails in another way.
func testLastingFailure(t *testing.T, cloud Cloud) {
	for name, do := range cloud.Failures {
		cloud.forEachCall(t, name, hurry(), func(t *testing.T, s cloudStore, c call) {
			if err := s.lasting(t, c, do); errors.Is(err, storage.ErrSlowDown) {
				t.Errorf("%s = %v, which nobody asked for", c.name, err)
			}
		})
	}
}

// lasting makes a call to a server that answers all in one way, and returns its error. It must say
// nothing about the file, after triesMax tries.
func (s cloudStore) lasting(t *testing.T, c call, do cloudtest.Fault) error {
	t.Helper()
	location := s.prepare(t, c, "usual")
	if err := c.make(t.Context(), s.Store, location); err != nil {
		t.Fatal(err)
	}
	usual := s.requests()
	location = s.prepare(t, c, "failing")
	s.proxy.Follow(cloudtest.Always(do))
	err := c.make(t.Context(), s.Store, location)
	saysNothing(t, err)
	if got := s.requests(); got != triesMax*usual {
		t.Errorf("%d requests, want %d", got, triesMax*usual)
	}
	return err
}

// saysNothing fails unless err is one that leaves open whether there is a file.
func saysNothing(t *testing.T, err error) {
	t.Helper()
	if err == nil || errors.Is(err, storage.ErrExists) || errors.Is(err, storage.ErrNotFound) {
		t.Errorf("%v, want an error that says nothing about the file", err)
	}
}

// testDeadline asks servers that throttle or are silent, with a deadline: the call ends with it, in
// the middle of a pause or of an answer.
func testDeadline(t *testing.T, cloud Cloud) {
	endless := Patience{Stall: time.Hour, Pause: time.Hour}
	faults := map[string]cloudtest.Fault{"silent": cloudtest.Silent, "silent in answer": cloudtest.SilentInAnswer}
	maps.Copy(faults, cloud.Throttles)
	for name, do := range faults {
		cloud.forEachCall(t, name, endless, func(t *testing.T, s cloudStore, c call) {
			if name == "silent in answer" && !c.reads {
				return
			}
			location := s.prepare(t, c, "0")
			s.proxy.Follow(cloudtest.Always(do))
			ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
			defer cancel()
			began := time.Now()
			if err := c.make(ctx, s.Store, location); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("%s = %v, want context.DeadlineExceeded", c.name, err)
			}
			if took := time.Since(began); took > time.Minute {
				t.Errorf("it took %v", took)
			}
		})
	}
}

// testLostAnswer loses the answer to a write whose repetition is refused: the file is the caller's
// own.
func testLostAnswer(t *testing.T, cloud Cloud) {
	s := cloud.open(t, hurry())
	location := storage.Join(s.root, "a")
	s.proxy.Follow(cloudtest.Nth(0, cloudtest.Lose))
	if err := s.Create(t.Context(), location, content()); err != nil {
		t.Errorf("Create = %v", err)
	}
	if got := s.proxy.Requests(); got != cloud.Settles {
		t.Errorf("requests %s, want %s", got, cloud.Settles)
	}
	if err := s.Create(t.Context(), location, content()); !errors.Is(err, storage.ErrExists) {
		t.Errorf("a second Create with the same body = %v, want ErrExists", err)
	}
}

// testLostToAnother cuts off a write, while somebody else makes the same file, equal to the last
// byte. The repetition is refused, and the file is not the caller's.
func testLostToAnother(t *testing.T, cloud Cloud) {
	s := cloud.open(t, hurry())
	location := storage.Join(s.root, "a")
	s.proxy.Follow(cloudtest.Nth(0, cloudtest.CutAfter(func() {
		if err := s.Create(t.Context(), location, content()); err != nil {
			t.Errorf("the other's Create: %v", err)
		}
	})))
	if err := s.Create(t.Context(), location, content()); !errors.Is(err, storage.ErrExists) {
		t.Errorf("Create = %v, want ErrExists", err)
	}
}

// testAllAnswersLost loses every answer to a write: the file is there, so Create must not say that
// it is somebody else's.
func testAllAnswersLost(t *testing.T, cloud Cloud) {
	s := cloud.open(t, hurry())
	create := calls()[0]
	location := s.prepare(t, create, "0")
	s.proxy.Follow(cloudtest.Always(cloudtest.Lose))
	saysNothing(t, create.make(t.Context(), s.Store, location))
	s.check(t, create, location)
}
