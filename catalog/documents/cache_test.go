package documents

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"moorage/registry"
)

// weighedDocument is a document that has only a cost.
type weighedDocument struct {
	Document
	bytes   int64
	onceDue func() // called once, when the document is weighed; may be nil
}

func (d *weighedDocument) CostBytes() int64 {
	if due := d.onceDue; due != nil {
		d.onceDue = nil
		due()
	}
	return d.bytes
}

var onePointer = registry.ID{1}

// wantKept fails the test unless the document cached for location is want. A nil want means none.
func wantKept(t *testing.T, d *cache, location string, want Document) {
	t.Helper()
	kept, ok := d.get(onePointer, location)
	if kept != want || ok != (want != nil) {
		t.Errorf("at %s %v is kept (%t), want %v", location, kept, ok, want)
	}
}

// The two latest documents are cached, each at its location.
func TestDocumentsKeepTheLastTwo(t *testing.T) {
	t.Parallel()
	d := newCache(1 << 20)
	a, b, c, again := &weighedDocument{bytes: 1}, &weighedDocument{bytes: 2}, &weighedDocument{bytes: 3}, &weighedDocument{bytes: 4}
	wantKept(t, d, "a", nil)
	d.set(onePointer, "a", a)
	wantKept(t, d, "a", a)
	wantKept(t, d, "", nil)
	d.set(onePointer, "b", b)
	wantKept(t, d, "a", a)
	wantKept(t, d, "b", b)
	d.set(onePointer, "c", c)
	wantKept(t, d, "a", nil)
	wantKept(t, d, "b", b)
	wantKept(t, d, "c", c)
	d.set(onePointer, "c", again)
	wantKept(t, d, "b", b)
	wantKept(t, d, "c", again)
	d.set(onePointer, "b", a)
	wantKept(t, d, "b", a)
	wantKept(t, d, "c", again)
	if _, ok := d.get(registry.ID{2}, "c"); ok {
		t.Error("a document of one pointer is another's")
	}
	d.forget(onePointer, "c")
	wantKept(t, d, "b", nil)
	wantKept(t, d, "c", nil)
}

// heldRead begins to read location in a goroutine. It returns when the read is in progress. finish
// ends the read with found, and returns the result of readOnce.
func heldRead(t *testing.T, d *cache, location string) (finish func(found Document, failure error) (Document, error)) {
	type result struct {
		document Document
		err      error
	}
	begun, end, ended := make(chan struct{}), make(chan result), make(chan result)
	go func() {
		read, err := d.readOnce(t.Context(), onePointer, location, func() (Document, error) {
			close(begun)
			r := <-end
			return r.document, r.err
		})
		ended <- result{read, err}
	}()
	<-begun
	return func(found Document, failure error) (Document, error) {
		end <- result{found, failure}
		r := <-ended
		return r.document, r.err
	}
}

// readsTwice is a read that must not happen.
func readsTwice() (Document, error) { return nil, errors.New("read twice") }

func TestDocumentsAreReadOnce(t *testing.T) {
	t.Parallel()
	d := newCache(1 << 20)
	found := &weighedDocument{bytes: 1}
	synctest.Test(t, func(t *testing.T) {
		finish := heldRead(t, d, "a")
		for range 8 {
			go func() {
				if read, err := d.readOnce(t.Context(), onePointer, "a", readsTwice); read != found || err != nil {
					t.Errorf("read %v, %v", read, err)
				}
			}()
		}
		synctest.Wait() // until they wait for the first read
		if read, err := finish(found, nil); read != found || err != nil {
			t.Errorf("read %v, %v", read, err)
		}
	})
	wantKept(t, d, "a", found)
	if read, err := d.readOnce(t.Context(), onePointer, "a", readsTwice); read != found || err != nil {
		t.Errorf("read %v, %v, after another read had ended", read, err)
	}

	failure := errors.New("disk on fire")
	if read, err := heldRead(t, d, "b")(nil, failure); read != nil || !errors.Is(err, failure) {
		t.Errorf("read %v, %v", read, err)
	}
	wantKept(t, d, "b", nil)
	if other, err := heldRead(t, d, "b")(found, nil); other != found || err != nil {
		t.Errorf("read %v, %v, after a read that failed", other, err)
	}
}

// A caller that waits for another's read can stop waiting at any time. A caller whose context has
// ended reads nothing.
func TestDocumentsAreReadForThoseWhoWait(t *testing.T) {
	t.Parallel()
	d := newCache(1 << 20)
	found := &weighedDocument{bytes: 1}
	synctest.Test(t, func(t *testing.T) {
		finish := heldRead(t, d, "a")
		ctx, cancel := context.WithCancel(t.Context())
		gone := make(chan error)
		go func() {
			_, err := d.readOnce(ctx, onePointer, "a", readsTwice)
			gone <- err
		}()
		synctest.Wait()
		cancel()
		if err := <-gone; !errors.Is(err, context.Canceled) {
			t.Errorf("who went away was told %v", err)
		}
		if _, err := d.readOnce(ctx, onePointer, "b", readsTwice); !errors.Is(err, context.Canceled) {
			t.Errorf("who had gone away was told %v", err)
		}
		if read, err := finish(found, nil); read != found || err != nil {
			t.Errorf("read %v, %v", read, err)
		}
	})
}

// If a read panics, its waiting callers get an error, and the next caller reads again.
func TestDocumentsReadPanics(t *testing.T) {
	t.Parallel()
	d := newCache(1 << 20)
	found := &weighedDocument{bytes: 1}
	synctest.Test(t, func(t *testing.T) {
		begun, end := make(chan struct{}), make(chan struct{})
		panicked, told := make(chan any), make(chan error)
		go func() {
			defer func() { panicked <- recover() }()
			d.readOnce(t.Context(), onePointer, "a", func() (Document, error) {
				close(begun)
				<-end
				panic("out of range")
			})
		}()
		<-begun
		go func() {
			_, err := d.readOnce(t.Context(), onePointer, "a", readsTwice)
			told <- err
		}()
		synctest.Wait()
		close(end)
		if got := fmt.Sprint(<-panicked); !strings.HasPrefix(got, "out of range\n") {
			t.Errorf("who read panicked with %s", got)
		}
		if err := <-told; err == nil || !strings.HasPrefix(err.Error(), "out of range\n") {
			t.Errorf("who waited was told %v", err)
		}
	})
	if read, err := heldRead(t, d, "a")(found, nil); read != found || err != nil {
		t.Errorf("read %v, %v, after a read that panicked", read, err)
	}
}

// If a location is set or forgotten during a read, the result of the read may be old. It is neither
// cached nor returned.
func TestDocumentsReadIsOutdated(t *testing.T) {
	t.Parallel()
	d := newCache(1 << 20)
	old, newer := &weighedDocument{bytes: 1}, &weighedDocument{bytes: 2}
	finish := heldRead(t, d, "a")
	d.set(onePointer, "a", newer)
	d.set(onePointer, "b", newer)
	if read, err := finish(old, nil); read != newer || err != nil {
		t.Errorf("read %v, %v, from where a newer one was put", read, err)
	}
	wantKept(t, d, "a", newer)

	synctest.Test(t, func(t *testing.T) {
		finish := heldRead(t, d, "c")
		d.forget(onePointer, "c")
		finishAgain := heldRead(t, d, "c") // does not wait for the first read
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			if read, err := finish(old, nil); read != newer || err != nil {
				t.Errorf("read %v, %v, what was forgotten", read, err)
			}
		}()
		synctest.Wait() // until it waits for the second read
		wantKept(t, d, "c", nil)
		if read, err := finishAgain(newer, nil); read != newer || err != nil {
			t.Errorf("read %v, %v", read, err)
		}
		<-ended
	})
	wantKept(t, d, "c", newer)

	finish = heldRead(t, d, "d")
	d.forget(onePointer, "e") // reads of other locations stay valid
	d.set(onePointer, "e", old)
	if read, err := finish(newer, nil); read != newer || err != nil {
		t.Errorf("read %v, %v", read, err)
	}
	wantKept(t, d, "d", newer)

	failure := errors.New("disk on fire")
	finish = heldRead(t, d, "f")
	d.forget(onePointer, "f")
	if _, err := finish(nil, failure); !errors.Is(err, failure) {
		t.Errorf("a read that failed, of what was forgotten: %v", err)
	}
}

// The same holds if that happens just before the result is cached, whether or not other documents
// are cached.
func TestDocumentsReadIsOutdatedAtLast(t *testing.T) {
	t.Parallel()
	newer := &weighedDocument{bytes: 1001}
	for beside, bytes := range map[string]int64{"nothing": 0, "a light one": 10, "a heavy one": 10_000} {
		for name, rewrite := range map[string]func(*cache){
			"set":    func(d *cache) { d.set(onePointer, "a", newer) },
			"forget": func(d *cache) { d.forget(onePointer, "a") },
		} {
			t.Run(name+" beside "+beside, func(t *testing.T) {
				t.Parallel()
				d := newCache(1 << 20)
				if bytes > 0 {
					d.set(onePointer, "b", &weighedDocument{bytes: bytes})
				}
				var rewriting sync.WaitGroup
				first := &weighedDocument{bytes: 1000, onceDue: func() {
					rewriting.Go(func() { rewrite(d) }) // it may have to wait until first is cached
					for isBeingRead(d, "a") {
						runtime.Gosched()
					}
				}}
				found := []Document{first, newer}
				_, err := d.readOnce(t.Context(), onePointer, "a", func() (next Document, err error) {
					next, found = found[0], found[1:]
					return next, nil
				})
				if err != nil {
					t.Error(err)
				}
				rewriting.Wait()
				if kept, ok := d.get(onePointer, "a"); ok && kept != newer {
					t.Error("what was read before is kept")
				}
			})
		}
	}
}

func isBeingRead(d *cache, location string) bool {
	_, isRead := d.reads.GetIfPresent(fileKey(onePointer, location))
	return isRead
}

// The same holds at any time, and whatever other documents are cached and evicted at the same time.
func TestDocumentsOutdatedAreNotKept(t *testing.T) {
	t.Parallel()
	for name, rewritten := range map[string]func(*cache, *weighedDocument){
		"set":    func(d *cache, now *weighedDocument) { d.set(onePointer, "a", now) },
		"forget": func(d *cache, now *weighedDocument) { d.forget(onePointer, "a") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := newCache(20_000)
			var file atomic.Pointer[weighedDocument] // the present content of the location
			file.Store(&weighedDocument{bytes: 1000})
			ctx, cancel := context.WithCancel(t.Context())
			var others sync.WaitGroup
			defer others.Wait()
			defer cancel()
			for range 2 {
				others.Go(func() {
					for ctx.Err() == nil {
						_, err := d.readOnce(ctx, onePointer, "a", func() (Document, error) { return file.Load(), nil })
						if err != nil && ctx.Err() == nil {
							t.Errorf("read: %v", err)
						}
					}
				})
			}
			others.Go(func() {
				for n := 0; ctx.Err() == nil; n++ {
					d.set(onePointer, fmt.Sprint(n), &weighedDocument{bytes: int64(n * 7 % 5000)})
					d.set(registry.ID{2, byte(n)}, "b", &weighedDocument{bytes: 9000})
				}
			})
			for n := range int64(30_000) {
				now := &weighedDocument{bytes: 1001 + n%5000}
				file.Store(now)
				rewritten(d, now)
				if kept, ok := d.get(onePointer, "a"); ok && kept != now {
					t.Fatalf("after %d times what was read before is kept", n+1)
				}
			}
		})
	}
}

// The cached documents of a pointer are weighed by their memory.
func TestDocumentsAreWeighed(t *testing.T) {
	t.Parallel()
	d := newCache(1 << 40)
	var costs [2]int64
	for n, bytes := range []int64{1000, 1000, 1010, 1000, 5000, 20_000, 20_100, 20_200, 20_300, 300, 300, 300, 1 << 20, 10, 10} {
		location := fmt.Sprint(n)
		d.set(onePointer, location, &weighedDocument{bytes: bytes})
		d.entries.CleanUp()
		costs[n%2] = bytes + int64(len(location))
		if cost, weight := uint64(costs[0]+costs[1]), d.entries.WeightedSize(); weight != cost {
			t.Errorf("documents of %d bytes count as %d", cost, weight)
		}
	}
}

// The bound also holds for documents that grow and replace each other.
func TestDocumentsAreBounded(t *testing.T) {
	t.Parallel()
	const bytesMax, pointers = 100_000, 50
	d := newCache(bytesMax)
	for n := range 40 {
		for p := range pointers {
			d.set(registry.ID{byte(p)}, fmt.Sprint(n), &weighedDocument{bytes: int64(100 * n)})
		}
	}
	d.entries.CleanUp()
	var bytes int64
	for _, kept := range d.entries.All() {
		bytes += kept.last.costBytes() + kept.before.costBytes()
	}
	if weight := d.entries.WeightedSize(); weight > bytesMax || bytes > bytesMax || bytes == 0 {
		t.Errorf("documents of %d bytes are kept, and count as %d; at most %d may", bytes, weight, bytesMax)
	}
}

// A document that leaves no room for another one is cached alone, whatever was cached before.
func TestDocumentsWithoutRoomForTwo(t *testing.T) {
	t.Parallel()
	const bytesMax = 100_000
	for _, bytes := range []int64{45_000, 60_000, 90_000, bytesMax - 1} {
		d := newCache(bytesMax)
		for n := range 4 {
			document := &weighedDocument{bytes: bytes}
			d.set(onePointer, fmt.Sprint(n), document)
			d.entries.CleanUp()
			wantKept(t, d, fmt.Sprint(n), document)
		}
		if _, both := d.get(onePointer, "2"); both != (bytes < bytesMax/2) {
			t.Errorf("of documents of %d bytes, where %d may be kept, the one before is: %t", bytes, bytesMax, both)
		}
	}
	d := newCache(bytesMax)
	d.set(onePointer, "a", &weighedDocument{bytes: bytesMax + 1})
	d.entries.CleanUp()
	wantKept(t, d, "a", nil)
}
