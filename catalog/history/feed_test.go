package history_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"moorage"
	"moorage/catalog"
	"moorage/catalog/history"
	"moorage/ledger"
	"moorage/registry"
	"moorage/registry/memory"
	"moorage/testkit"
	"moorage/testkit/catalogkit"
	"moorage/testkit/registrytest"
	"moorage/testkit/storetest"
)

var stores storetest.Stores

func TestMain(m *testing.M) { stores.Main(m) }

// readAll returns all events from a position onwards, and the last position.
func readAll(t *testing.T, feed *history.Feed, caller moorage.Caller, q history.Query) ([]history.Event, string) {
	t.Helper()
	var all []history.Event
	for {
		page, err := feed.Read(t.Context(), caller, q)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, page.Events...)
		q.After, q.Tail, q.From = page.Next, 0, time.Time{}
		if page.AtEnd {
			return all, page.Next
		}
	}
}

// newFeed returns the feed of another node over the store of f.
func newFeed(t *testing.T, f *catalogkit.Fixture) *history.Feed {
	t.Helper()
	feed := f.Other(f.Store).History()
	t.Cleanup(feed.Close)
	return feed
}

// TestKilledReader reads the feed while writers commit. The reader is killed again and again: it
// loses or repeats its last page, and continues at another node from its saved position. It must
// see each event, in the order of the changes.
func TestKilledReader(t *testing.T) {
	t.Parallel()
	stores.Each(t, func(t *testing.T, store registry.Store) {
		const writers, commits = 16, 5
		f := catalogkit.New(t, func(c *catalog.Config) { c.Store = store })
		for n := range writers {
			f.Create(fmt.Sprint("t", n))
		}
		var writing sync.WaitGroup
		var left atomic.Int64
		left.Store(writers)
		for n := range writers {
			writing.Go(func() {
				defer left.Add(-1)
				for i := range commits {
					if _, err := f.Commit(f.Ctx, testkit.Ident(fmt.Sprint("t", n)),
						catalogkit.SetProperty(t, "n", fmt.Sprint(i))); err != nil {
						t.Error(err)
					}
				}
			})
		}
		var got []history.Event
		seen := make(map[string]bool)
		position, lives := history.First, 0
		for ended := false; !ended; lives++ {
			ended = left.Load() == 0 // all writes are finished before the next page is read
			feed := newFeed(t, f)
			for range 3 {
				page, err := feed.Read(t.Context(), moorage.Anonymous(), history.Query{After: position, Limit: 7})
				if err != nil {
					t.Fatal(err)
				}
				if ended = ended && page.AtEnd; !page.AtEnd && lives%3 == 0 {
					break // it dies before it saves anything
				}
				for _, e := range page.Events {
					if !seen[e.ID] {
						seen[e.ID] = true
						got = append(got, e)
					}
				}
				if lives%3 == 1 {
					break // it dies before it saves the position
				}
				position = page.Next
			}
			if lives > 10_000 {
				t.Fatal("the reader does not come to an end")
			}
		}
		writing.Wait()
		want, _ := readAll(t, f.History(), moorage.Anonymous(), history.Query{})
		if !slices.EqualFunc(got, want, func(a, b history.Event) bool { return a.ID == b.ID }) {
			t.Fatalf("the killed reader saw %d events, the other one %d", len(got), len(want))
		}
		last, updates := make(map[registry.ID]string), 0
		for _, e := range got {
			if e.Kind != registry.ItemTable {
				continue
			}
			if e.PreviousMetadataLocation != last[e.ObjectID] {
				t.Errorf("%s of %s goes on from %q, not from %q", e.Operation, e.Ident, e.PreviousMetadataLocation,
					last[e.ObjectID])
			}
			if last[e.ObjectID] = e.MetadataLocation; e.Operation == history.OpUpdateTable {
				updates++
			}
		}
		if updates == 0 || updates > writers*commits {
			t.Errorf("%d updates", updates)
		}
	})
}

// TestBehindTheHorizon: a position is refused if it is before deleted changes, of another store, or
// beyond the end. The error reports where to continue.
func TestBehindTheHorizon(t *testing.T) {
	t.Parallel()
	stores.Each(t, func(t *testing.T, store registry.Store) {
		f := catalogkit.New(t, func(c *catalog.Config) { c.Store = store })
		feed := f.History()
		page, err := feed.Read(t.Context(), moorage.Anonymous(), history.Query{After: history.First})
		if err != nil {
			t.Fatal(err)
		}
		early := page.First
		f.Create("a")
		f.Create("b")
		all, end := readAll(t, feed, moorage.Anonymous(), history.Query{})
		read := func(after string) (history.Page, error) {
			return newFeed(t, f).Read(t.Context(), moorage.Anonymous(), history.Query{After: after})
		}
		store8, digits, _ := strings.Cut(end, ".")
		other := "00000000"
		if store8 == other {
			other = "11111111"
		}
		for _, position := range []string{other + "." + digits, end + "000"} {
			_, err := read(position)
			wantGone(t, err, end)
		}
		if _, err := read("x"); moorage.KindOf(err) != moorage.KindBadRequest {
			t.Errorf("no position: %v", err)
		}

		var horizon registry.Position
		if _, err := fmt.Sscan(strings.TrimPrefix(all[len(all)-2].Position, store8+"."), &horizon); err != nil {
			t.Fatal(err)
		}
		writes, err := ledger.Encode(ledger.Put(registry.HorizonKey(), registry.StateNone, registry.Horizon{Position: horizon}))
		if err == nil {
			_, err = registrytest.Ledger(store).Step(t.Context(), registry.Batch{Writes: writes})
		}
		if err != nil {
			t.Fatal(err)
		}
		_, err = read(early)
		wantGone(t, err, all[len(all)-2].Position)
		_, after, _ := strings.Cut(moorage.MessageOf(err), "after=")
		page, err = read(after)
		if err != nil || len(page.Events) != 1 || page.Events[0].ID != all[len(all)-1].ID || page.First != after {
			t.Errorf("from where the refusal says: %+v, %v", page, err)
		}
		for _, q := range []history.Query{{After: history.First}, {Tail: 5}, {From: f.Clock.Now().Add(-time.Hour)}} {
			if page, err := feed.Read(t.Context(), moorage.Anonymous(), q); err != nil || len(page.Events) != 1 {
				t.Errorf("%+v: %+v, %v", q, page, err)
			}
		}
	})
}

func wantGone(t *testing.T, err error, on string) {
	t.Helper()
	if moorage.KindOf(err) != moorage.KindGone || !strings.HasSuffix(moorage.MessageOf(err), "go on with after="+on) {
		t.Errorf("got %v, want a refusal that names %s", err, on)
	}
}

// counted is a store that counts the reads of changes. For each read, it calls onRead, unless that
// is nil.
type counted struct {
	registry.Store
	reads  atomic.Int64
	onRead func()
}

func (c *counted) Changes(ctx context.Context, after registry.Position, limit int) ([]registry.PositionedChange, error) {
	c.reads.Add(1)
	if c.onRead != nil {
		c.onRead()
	}
	return c.Store.Changes(ctx, after, limit)
}

// TestWaits: waiting requests get the event of a change at once, and share one read of the changes.
// A request beyond the bound is refused, and closing the feed ends all waits.
func TestWaits(t *testing.T) {
	t.Parallel()
	const waiting = history.WaitsMax
	store := &counted{Store: memory.New(testkit.NewBits(1))}
	f := catalogkit.New(t, func(c *catalog.Config) { c.Store = store })
	feed := f.History()
	wait := func() (history.Page, error) {
		return feed.Read(t.Context(), moorage.Anonymous(), history.Query{After: history.End, Wait: history.WaitMax})
	}
	await := func(n int) {
		for feed.Waits() < n {
			<-time.After(time.Millisecond)
		}
	}
	var waits sync.WaitGroup
	var events atomic.Int64
	for range waiting {
		waits.Go(func() {
			page, err := wait()
			if err != nil || len(page.Events) != 1 || !page.AtEnd {
				t.Errorf("%+v, %v", page, err)
			}
			events.Add(1)
		})
	}
	await(waiting)
	before, began := store.reads.Load(), time.Now()
	f.Create("t")
	feed.Wake()
	waits.Wait()
	took := time.Since(began)
	if events.Load() != waiting || took > 10*time.Second {
		t.Errorf("%d of %d waits ended after %s", events.Load(), waiting, took)
	}
	if reads := store.reads.Load() - before; reads > 20+int64(took/time.Second) { // a slow machine polls too
		t.Errorf("%d waits read the changes %d times in %s", waiting, reads, took)
	}

	for range history.WaitsMax {
		waits.Go(func() {
			if page, err := wait(); err != nil || len(page.Events) > 0 {
				t.Errorf("ended by a close: %+v, %v", page, err)
			}
		})
	}
	await(history.WaitsMax)
	if _, err := wait(); moorage.KindOf(err) != moorage.KindTooManyRequests {
		t.Errorf("one wait too many: %v", err)
	}
	feed.Close()
	waits.Wait()
}

// TestKeptForWaits: the changes kept for waits take little memory. Their events lack the replaced
// values, and both their number and their size are bounded.
func TestKeptForWaits(t *testing.T) {
	t.Parallel()
	change := registry.Change{Items: make([]registry.Item, 1), Versions: []registry.Version{
		{Before: &registry.Before{Set: make([]byte, 64<<10)}},
	}}
	read := make([]registry.PositionedChange, history.KeptMax+10)
	for n := range read {
		read[n] = registry.PositionedChange{Position: registry.Position(n + 1), Change: change}
	}
	kept, bytes := history.Kept(read)
	if len(kept) != history.KeptMax || bytes > history.KeptBytesMax || kept[0] != 11 {
		t.Errorf("%d changes with %d bytes are kept", len(kept), bytes)
	}
	for n := range read {
		read[n].Change.Items = make([]registry.Item, 100)
	}
	large, bytes := history.Kept(read)
	if len(large) == 0 || len(large) >= history.KeptMax || bytes > history.KeptBytesMax {
		t.Errorf("%d large changes with %d bytes are kept", len(large), bytes)
	}
	if read[0].Change.Versions == nil {
		t.Error("the changes of the reader lost their versions")
	}
}

// TestTail: the last events are the newest, however many events the earlier changes have. If the
// end of the changes is not reached in time, the answer is an error instead of older events. If
// earlier changes are not read in time, the answer has the events of the last ones.
func TestTail(t *testing.T) {
	t.Parallel()
	const changes, items = 24, 600 // so the first step reads over 10,000 events
	store := &counted{Store: memory.New(testkit.NewBits(1))}
	f := catalogkit.New(t, func(c *catalog.Config) { c.Store = store })
	put := func(caller moorage.Caller, items int, uuid string) {
		change, err := f.Ledger.NewChange(f.Ctx, caller, "put-labels", moorage.Identifier{})
		if err != nil {
			t.Fatal(err)
		}
		for range items {
			change.Items = append(change.Items, registry.Item{Kind: registry.ItemTable, UUID: uuid})
		}
		writes, err := ledger.Encode(ledger.Put(registry.HorizonKey(), registry.StateNone, registry.Horizon{}))
		if err == nil {
			_, err = f.Ledger.Apply(f.Ctx, ledger.Mutation{Change: change, Writes: writes})
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	for n := range changes {
		put(moorage.Anonymous(), items, fmt.Sprint(n))
	}
	for tail, want := range map[int]int{1: 1, 10: 1, items: 1, items + 1: 2, history.EventsMax: 2} {
		page, err := f.History().Read(f.Ctx, moorage.Anonymous(), history.Query{Tail: tail})
		if err != nil || !page.AtEnd || len(page.Events) != want*items {
			t.Fatalf("tail=%d: %d events, at the end: %t, %v", tail, len(page.Events), page.AtEnd, err)
		}
		first, last := page.Events[0], page.Events[len(page.Events)-1]
		if first.UUID != fmt.Sprint(changes-want) || last.UUID != fmt.Sprint(changes-1) || last.Position != page.Next {
			t.Errorf("tail=%d: the events of the changes %s to %s", tail, first.UUID, last.UUID)
		}
	}
	ann := moorage.Caller{Name: "corp:ann"}
	put(ann, 1, "ann")
	put(moorage.Anonymous(), 1, "last")
	store.onRead = func() { f.Clock.Advance(20 * time.Millisecond) }
	reads := func(within time.Duration) int64 {
		t.Helper()
		before := store.reads.Load()
		page, err := f.History().Read(f.Ctx, moorage.Anonymous(),
			history.Query{Tail: 2, Within: within, Filter: history.Filter{Callers: []string{ann.Name}}})
		if err != nil || !page.AtEnd || len(page.Events) != 1 || page.Events[0].UUID != "ann" {
			t.Errorf("within %s: %+v, at the end: %t, %v", within, page.Events, page.AtEnd, err)
		}
		return store.reads.Load() - before
	}
	if short, whole := reads(50*time.Millisecond), reads(0); short >= whole {
		t.Errorf("%d reads in a short time, %d without a bound", short, whole)
	}
	store.onRead = func() { f.Clock.Advance(time.Second) }
	if page, err := f.History().Read(f.Ctx, moorage.Anonymous(), history.Query{Tail: 10}); moorage.KindOf(err) !=
		moorage.KindUnavailable || !strings.Contains(moorage.MessageOf(err), "within 2s") {
		t.Errorf("without time to reach the end: %d events, %v", len(page.Events), err)
	}
}

// TestTrimmedWhileRead: changes are deleted during one of the reads of a request that has no
// position. The answer then has no error and no gap: its events are the last ones, and at least all
// after the deleted changes.
func TestTrimmedWhileRead(t *testing.T) {
	t.Parallel()
	for name, query := range map[string]history.Query{
		"tail":  {Tail: 5, Filter: history.Filter{Callers: []string{"corp:ann"}}},
		"first": {Limit: history.EventsMax},
		"since": {Limit: history.EventsMax, From: time.Unix(1, 0)},
	} {
		store := &counted{Store: memory.New(testkit.NewBits(1))}
		f := catalogkit.New(t, func(c *catalog.Config) { c.Store = store })
		for n := range 6 {
			_, err := f.Named("corp:ann").CreateTable(f.Ctx, testkit.Ident(fmt.Sprint("a", n)),
				catalog.CreateTableRequest{Schema: []byte(catalogkit.Schema)})
			testkit.Must(t, err)
		}
		f.Create("t")
		f.MetadataFiles("t", 30)
		all, _ := readAll(t, f.History(), moorage.Anonymous(), history.Query{Filter: query.Filter})
		changes, err := store.Store.Changes(f.Ctx, 0, history.EventsMax)
		testkit.Must(t, err)
		trim := func(position registry.Position) {
			value, err := registry.Encode(registry.Horizon{Position: position})
			testkit.Must(t, err)
			_, err = store.Store.Apply(f.Ctx, registry.Batch{Writes: []registry.Write{
				registry.Put(registry.HorizonKey(), registry.StateNone, value),
			}})
			testkit.Must(t, err)
		}
		for _, kept := range []int{0, 1, 12, 35} { // how many of the changes stay
			horizon := changes[len(changes)-1-kept].Position
			least := 0
			for _, change := range changes[len(changes)-kept:] {
				for _, event := range all {
					if strings.HasPrefix(event.ID, change.Change.ID.String()) {
						least++
					}
				}
			}
			if query.Tail > 0 {
				least = min(least, query.Tail)
			}
			for read, trimmed := 0, true; trimmed; read++ {
				trim(0)
				left := read
				trimmed = false
				store.onRead = func() {
					if left--; left == -1 {
						trimmed = true
						trim(horizon)
					}
				}
				page, err := newFeed(t, f).Read(f.Ctx, moorage.Anonymous(), query)
				store.onRead = nil
				got := len(page.Events)
				isLast := got <= len(all) && slices.EqualFunc(page.Events, all[len(all)-got:],
					func(a, b history.Event) bool { return a.ID == b.ID })
				if err != nil || !page.AtEnd || !isLast || got < least {
					t.Errorf("%s, %d changes kept at read %d: %d events of %d, at least %d; the last: %t, at the end: %t, %v",
						name, kept, read, got, len(all), least, isLast, page.AtEnd, err)
				}
			}
		}
	}
}

// TestFilters: each filter selects the right events. Filters use the words of the feed.
func TestFilters(t *testing.T) {
	t.Parallel()
	f := catalogkit.New(t)
	ann := f.Named("corp:ann")
	ctx := t.Context()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	request := catalog.CreateTableRequest{Schema: []byte(catalogkit.Schema)}
	_, err := ann.CreateTable(ctx, testkit.Ident("t"), request)
	must(err)
	_, err = f.Commit(ctx, testkit.Ident("t"), catalogkit.SetProperty(t, "a", "b"))
	must(err)
	must(f.RenameTable(ctx, testkit.Ident("t"), testkit.Ident("u")))
	must(f.DropTable(ctx, testkit.Ident("u"), catalog.DropOptions{}))
	for _, tt := range []struct {
		filter history.Filter
		want   string
	}{
		{history.Filter{Kinds: []string{"table"}}, "create-table t, update-table t, rename-table u, drop-table u"},
		{history.Filter{Warehouse: catalogkit.Warehouse, Namespace: moorage.Namespace{"ns"}, Name: "t"},
			"create-table t, update-table t, rename-table u"},
		{history.Filter{Callers: []string{"corp:ann"}}, "create-table t"},
		{history.Filter{Operations: []string{history.OpDropTable, history.OpRenameTable}}, "rename-table u, drop-table u"},
		{history.Filter{Warehouse: "none"}, ""},
		{history.Filter{Kinds: []string{"warehouse"}}, "x-create-warehouse "},
	} {
		events, _ := readAll(t, f.History(), moorage.Anonymous(), history.Query{Filter: tt.filter, Limit: 1})
		var got []string
		for _, e := range events {
			got = append(got, e.Operation+" "+e.Ident.Name)
		}
		if strings.Join(got, ", ") != tt.want {
			t.Errorf("%+v: %q, want %s", tt.filter, got, tt.want)
		}
	}
	tail, _ := readAll(t, f.History(), moorage.Anonymous(), history.Query{Tail: 2})
	if len(tail) != 2 || tail[1].Operation != history.OpDropTable {
		t.Errorf("the last two are %+v", tail)
	}
	for _, bad := range []history.Filter{
		{Kinds: []string{"row"}}, {Operations: []string{"fly"}}, {Namespace: moorage.Namespace{"ns"}}, {Warehouse: "w", Name: "t"},
	} {
		if _, err := f.History().Read(ctx, moorage.Anonymous(), history.Query{Filter: bad}); moorage.KindOf(err) != moorage.KindBadRequest {
			t.Errorf("%+v: %v", bad, err)
		}
	}
}
