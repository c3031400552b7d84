package catalog

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"

	"moorage/registry"
)

// weighedDocument is a document of which only the cost matters.
type weighedDocument struct {
	document
	bytes int64
}

func (d *weighedDocument) CostBytes() int64 { return d.bytes }

var onePointer = registry.ID{1}

// wantKept fails unless want is kept at location, nil for nothing.
func wantKept(t *testing.T, d *documents, location string, want document) {
	t.Helper()
	kept, ok := d.get(onePointer, location)
	if kept != want || ok != (want != nil) {
		t.Errorf("at %s %v is kept (%t), want %v", location, kept, ok, want)
	}
}

// The two documents that were put last are kept, each at its location.
func TestDocumentsKeepTheLastTwo(t *testing.T) {
	t.Parallel()
	d := newDocuments(1 << 20)
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

// heldRead begins to read location in a goroutine. It returns when the read is under way; finish ends that with found and
// waits for what readOnce returned.
func heldRead(d *documents, location string) (finish func(found document, failure error) (document, error)) {
	type result struct {
		document document
		err      error
	}
	begun, end, ended := make(chan struct{}), make(chan result), make(chan result)
	go func() {
		read, err := d.readOnce(onePointer, location, func() (document, error) {
			close(begun)
			r := <-end
			return r.document, r.err
		})
		ended <- result{read, err}
	}()
	<-begun
	return func(found document, failure error) (document, error) {
		end <- result{found, failure}
		r := <-ended
		return r.document, r.err
	}
}

func TestDocumentsAreReadOnce(t *testing.T) {
	t.Parallel()
	d := newDocuments(1 << 20)
	found := &weighedDocument{bytes: 1}
	synctest.Test(t, func(t *testing.T) {
		finish := heldRead(d, "a")
		for range 8 {
			go func() {
				read, err := d.readOnce(onePointer, "a", func() (document, error) { return nil, errors.New("read twice") })
				if read != found || err != nil {
					t.Errorf("read %v, %v", read, err)
				}
			}()
		}
		synctest.Wait() // until they wait for the first
		if read, err := finish(found, nil); read != found || err != nil {
			t.Errorf("read %v, %v", read, err)
		}
	})
	wantKept(t, d, "a", found)

	failure := errors.New("disk on fire")
	if read, err := heldRead(d, "b")(nil, failure); read != nil || !errors.Is(err, failure) {
		t.Errorf("read %v, %v", read, err)
	}
	wantKept(t, d, "b", nil)
	if other, err := heldRead(d, "b")(found, nil); other != found || err != nil {
		t.Errorf("read %v, %v, after a read that failed", other, err)
	}
}

// What is read from a location does not replace what was put there meanwhile, and is not kept if it was forgotten meanwhile: then
// it may be what was there before.
func TestDocumentsReadDoNotReplaceNewer(t *testing.T) {
	t.Parallel()
	d := newDocuments(1 << 20)
	old, newer := &weighedDocument{bytes: 1}, &weighedDocument{bytes: 2}
	finish := heldRead(d, "a")
	d.set(onePointer, "a", newer)
	d.set(onePointer, "b", newer)
	if read, err := finish(old, nil); read != old || err != nil {
		t.Errorf("read %v, %v", read, err)
	}
	wantKept(t, d, "a", newer)

	finish = heldRead(d, "c")
	d.forget(onePointer, "c")
	finishAgain := heldRead(d, "c") // does not get what the first has begun to read
	if read, err := finish(old, nil); read != old || err != nil {
		t.Errorf("read %v, %v", read, err)
	}
	wantKept(t, d, "c", nil)
	if read, err := finishAgain(newer, nil); read != newer || err != nil {
		t.Errorf("read %v, %v", read, err)
	}
	wantKept(t, d, "c", newer)
}

// A document that replaces another in its place is weighed with what it takes, or up to half more, and is not put into the cache anew
// while that holds.
func TestDocumentsAreWeighed(t *testing.T) {
	t.Parallel()
	d := newDocuments(1 << 40)
	var costs [2]int64
	weights := make(map[uint64]bool)
	for n, bytes := range []int64{1000, 1000, 1010, 1000, 5000, 20_000, 20_100, 20_200, 20_300, 300, 300, 300, 1 << 20, 10, 10} {
		location := fmt.Sprint(n)
		d.set(onePointer, location, &weighedDocument{bytes: bytes})
		d.cache.CleanUp()
		costs[n%2] = bytes + int64(len(location))
		cost, weight := uint64(costs[0]+costs[1]), d.cache.WeightedSize()
		if weight < cost || weight > cost+cost/2 {
			t.Errorf("documents of %d bytes count as %d", cost, weight)
		}
		weights[weight] = true
	}
	if len(weights) != 9 {
		t.Errorf("%d weights: %v", len(weights), weights)
	}
}

// The bound holds also for documents that grow in their place.
func TestDocumentsAreBounded(t *testing.T) {
	t.Parallel()
	const bytesMax, pointers = 100_000, 50
	d := newDocuments(bytesMax)
	for n := range 40 {
		for p := range pointers {
			d.set(registry.ID{byte(p)}, fmt.Sprint(n), &weighedDocument{bytes: int64(100 * n)})
		}
	}
	d.cache.CleanUp()
	var bytes int64
	for _, kept := range d.cache.All() {
		bytes += kept.Load().last.costBytes() + kept.Load().before.costBytes()
	}
	if weight := d.cache.WeightedSize(); weight > bytesMax || bytes > bytesMax || bytes == 0 {
		t.Errorf("documents of %d bytes are kept, and count as %d; at most %d may", bytes, weight, bytesMax)
	}
}
