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

	"moorage/storage"
	"moorage/testkit/fakecloud"
)

const (
	// requestsMax is more requests than any call of the suite sends.
	requestsMax = 10
	// triesMax is the number of times that a store sends a request that always fails.
	triesMax = 5
	// shortStall is the StallTimeout in some tests. A working server answers sooner.
	shortStall = time.Second
	// contentBytes is the length of the suite's files. Reading such a file takes several reads from
	// the connection.
	contentBytes = 16 << 10
)

// Cloud describes stores for RunFaults. The stores use a server over HTTP, and implement
// storage.Lister. Cloud also holds the error answers of the service that the server imitates.
type Cloud struct {
	// Open returns a store for one test, as Open does, and the proxy that it uses.
	Open func(t *testing.T, patience Patience) (proxy *fakecloud.Proxy, store storage.Store, root string)
	// Throttles holds the answers that demand fewer requests, by name.
	Throttles map[string]fakecloud.Fault
	// Failures holds the other answers of the service after which a retry makes sense.
	Failures map[string]fakecloud.Fault
	// Settles lists the methods of the requests that Create sends if the answer to its first
	// request is lost.
	Settles string
}

// Patience holds the time limits of a store.
type Patience struct {
	// Stall is the longest silence of a server before the store abandons a request.
	Stall time.Duration
	// Pause is the maximum pause between two requests.
	Pause time.Duration
}

// hurry returns the time limits of stores that must retry at once. Its Stall is long, so that a
// slow machine does not look like a silent server.
func hurry() Patience { return Patience{Stall: time.Minute, Pause: time.Millisecond} }

// RunFaults checks the stores of a cloud under faults. After temporary faults their calls must
// succeed. After permanent faults they must return errors that do not claim more than the store
// knows.
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

// call is one call of a method, on a file in its own folder.
type call struct {
	name string
	make func(ctx context.Context, store storage.Store, location string) error
	// before reports whether the file exists before the call, and after whether it exists after the
	// call.
	before, after bool
	// reads is true if the call reads the body of the server's answer.
	reads bool
}

// content is the content of the suite's files.
func content() []byte { return bytes.Repeat([]byte("0123456789abcdef"), contentBytes/16) }

func calls() []call {
	return []call{
		{name: "Create", after: true, make: createContent},
		{name: "Open", before: true, after: true, reads: true, make: readContent},
		{name: "ReadRange", before: true, after: true, reads: true, make: rangeContent},
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

// statContent stats a file, which must have the length of the suite's files.
func statContent(ctx context.Context, store storage.Store, location string) error {
	info, err := store.Stat(ctx, location)
	if err == nil && info.Bytes != contentBytes {
		err = fmt.Errorf("%d bytes, want %d", info.Bytes, contentBytes)
	}
	return err
}

// listContent lists the folder of a file, which must contain only that file.
func listContent(ctx context.Context, store storage.Store, location string) error {
	page, err := store.(storage.Lister).List(ctx, location[:strings.LastIndexByte(location, '/')], "", 10)
	if err == nil && (len(page.Files) != 1 || page.Files[0].Location != location) {
		err = fmt.Errorf("listed %v", page.Files)
	}
	return err
}

// readContent reads a file, which must have the content of the suite's files.
func readContent(ctx context.Context, store storage.Store, location string) error {
	body, err := storage.ReadAll(ctx, store, location, 2*contentBytes)
	if err == nil && !bytes.Equal(body, content()) {
		err = fmt.Errorf("read %d bytes that are not those of the file", len(body))
	}
	return err
}

// rangeContent reads most of a file, which must have the content of the suite's files.
func rangeContent(ctx context.Context, store storage.Store, location string) error {
	part, err := store.ReadRange(ctx, location, 5, contentBytes-8)
	if err == nil && !bytes.Equal(part, content()[5:contentBytes-3]) {
		err = fmt.Errorf("read %d bytes that are not those of the file", len(part))
	}
	return err
}

// cloudStore is a store in one run of the suite, and the proxy in front of its server.
type cloudStore struct {
	storage.Store
	proxy *fakecloud.Proxy
	root  string
}

// open returns a store that has detected its server's features.
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

// prepare creates the file for a call if it must exist before, in a new folder called folder, and
// returns its location.
func (s cloudStore) prepare(t *testing.T, c call, folder string) (location string) {
	t.Helper()
	s.proxy.Follow(nil)
	location = storage.Join(s.root, c.name, folder, "a")
	if c.before {
		if err := s.Create(t.Context(), location, content()); err != nil {
			t.Fatal(err)
		}
	}
	s.proxy.Follow(nil) // the proxy counts requests from here on
	return location
}

// check checks the effect of a call. No faults are injected from then on.
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

// forEachCall runs a test for each call of the suite, all with one store and one named fault.
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

// testPassingFaults injects each fault into the first request of each call, then into the second,
// and so on until a call sends fewer requests. Every call must succeed and have its effect.
func testPassingFaults(t *testing.T, cloud Cloud) {
	faults := map[string]fakecloud.Fault{
		"cut":              fakecloud.Cut,
		"cut in request":   fakecloud.CutInRequest,
		"lost answer":      fakecloud.Lose,
		"cut in answer":    fakecloud.CutInAnswer,
		"silent":           fakecloud.Silent,
		"silent in answer": fakecloud.SilentInAnswer,
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
				s.proxy.Follow(fakecloud.Nth(k, do))
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

// testLastingThrottle uses a server that always demands fewer requests. A call must give up and
// return storage.ErrSlowDown, so that its caller can slow down.
func testLastingThrottle(t *testing.T, cloud Cloud) {
	for name, do := range cloud.Throttles {
		cloud.forEachCall(t, name, hurry(), func(t *testing.T, s cloudStore, c call) {
			if err := s.callWithLastingFault(t, c, do); !errors.Is(err, storage.ErrSlowDown) {
				t.Errorf("%s = %v, want ErrSlowDown", c.name, err)
			}
		})
	}
}

// testLastingFailure uses a server that answers every request with one of the other failures.
func testLastingFailure(t *testing.T, cloud Cloud) {
	for name, do := range cloud.Failures {
		cloud.forEachCall(t, name, hurry(), func(t *testing.T, s cloudStore, c call) {
			if err := s.callWithLastingFault(t, c, do); errors.Is(err, storage.ErrSlowDown) {
				t.Errorf("%s = %v, which nobody asked for", c.name, err)
			}
		})
	}
}

// callWithLastingFault makes a call to a server with one constant answer. It returns the error. The
// call must end after triesMax requests, with an error that leaves open whether the file exists.
func (s cloudStore) callWithLastingFault(t *testing.T, c call, do fakecloud.Fault) error {
	t.Helper()
	location := s.prepare(t, c, "usual")
	if err := c.make(t.Context(), s.Store, location); err != nil {
		t.Fatal(err)
	}
	usual := s.requests()
	location = s.prepare(t, c, "failing")
	s.proxy.Follow(fakecloud.Always(do))
	err := c.make(t.Context(), s.Store, location)
	saysNothing(t, err)
	if got := s.requests(); got != triesMax*usual {
		t.Errorf("%d requests, want %d", got, triesMax*usual)
	}
	return err
}

// saysNothing fails the test unless err leaves open whether the file exists.
func saysNothing(t *testing.T, err error) {
	t.Helper()
	if err == nil || errors.Is(err, storage.ErrExists) || errors.Is(err, storage.ErrNotFound) {
		t.Errorf("%v, want an error that says nothing about the file", err)
	}
}

// testDeadline uses servers that throttle or are silent, with a deadline. The call must end at the
// deadline, in the middle of a pause or of an answer.
func testDeadline(t *testing.T, cloud Cloud) {
	endless := Patience{Stall: time.Hour, Pause: time.Hour}
	faults := map[string]fakecloud.Fault{"silent": fakecloud.Silent, "silent in answer": fakecloud.SilentInAnswer}
	maps.Copy(faults, cloud.Throttles)
	for name, do := range faults {
		cloud.forEachCall(t, name, endless, func(t *testing.T, s cloudStore, c call) {
			if name == "silent in answer" && !c.reads {
				return
			}
			location := s.prepare(t, c, "0")
			s.proxy.Follow(fakecloud.Always(do))
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

// testLostAnswer loses the answer to a write, so that the server refuses the repeated write. Create
// must report that the caller made the file.
func testLostAnswer(t *testing.T, cloud Cloud) {
	s := cloud.open(t, hurry())
	location := storage.Join(s.root, "a")
	s.proxy.Follow(fakecloud.Nth(0, fakecloud.Lose))
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

// testLostToAnother cuts off a write while another writer makes the same file with the same bytes.
// The server refuses the repeated write, and Create must report that the file belongs to another
// writer.
func testLostToAnother(t *testing.T, cloud Cloud) {
	s := cloud.open(t, hurry())
	location := storage.Join(s.root, "a")
	s.proxy.Follow(fakecloud.Nth(0, fakecloud.CutAfter(func() {
		if err := s.Create(t.Context(), location, content()); err != nil {
			t.Errorf("the other's Create: %v", err)
		}
	})))
	if err := s.Create(t.Context(), location, content()); !errors.Is(err, storage.ErrExists) {
		t.Errorf("Create = %v, want ErrExists", err)
	}
}

// testAllAnswersLost loses every answer to a write. The file exists, so Create must not report it
// as another writer's.
func testAllAnswersLost(t *testing.T, cloud Cloud) {
	s := cloud.open(t, hurry())
	create := calls()[0]
	location := s.prepare(t, create, "0")
	s.proxy.Follow(fakecloud.Always(fakecloud.Lose))
	saysNothing(t, create.make(t.Context(), s.Store, location))
	s.check(t, create, location)
}
