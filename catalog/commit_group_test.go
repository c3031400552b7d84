package catalog_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"

	"moorage"
	"moorage/catalog"
	"moorage/catalog/gate"
	"moorage/registry"
	"moorage/storage"
	"moorage/testkit/registrytest"
)

// callCount counts the files and the Applies of a fixture.
type callCount struct {
	mu             sync.Mutex // guards the fields; a leaf
	files, applies int
	hold           chan struct{} // the next Apply waits for it; nil: it does not
}

func (c *callCount) onto(config *catalog.Config) {
	wrapStorage(config, func(inner storage.Store) storage.Store { return &groupFiles{inner, c} })
	config.Store = &groupApplies{config.Store, c}
}

func (c *callCount) reset() (files, applies int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	files, applies = c.files, c.applies
	c.files, c.applies = 0, 0
	return files, applies
}

type groupFiles struct {
	storage.Store
	count *callCount
}

func (f *groupFiles) Create(ctx context.Context, location string, body []byte) error {
	f.count.mu.Lock()
	f.count.files++
	f.count.mu.Unlock()
	return f.Store.Create(ctx, location, body)
}

type groupApplies struct {
	registry.Store
	count *callCount
}

func (s *groupApplies) Apply(ctx context.Context, batch registry.Batch) ([]registry.ETag, error) {
	s.count.mu.Lock()
	s.count.applies++
	hold := s.count.hold
	s.count.hold = nil
	s.count.mu.Unlock()
	if hold != nil {
		<-hold
	}
	return s.Store.Apply(ctx, batch)
}

// member is a commit that waits behind others.
type member func(ctx context.Context, c catalog.Verbs) (*catalog.Table, error)

// commitOf returns a commit of the table "t".
func commitOf(request catalog.CommitRequest) member {
	return func(ctx context.Context, c catalog.Verbs) (*catalog.Table, error) {
		return c.Commit(ctx, ident("t"), request)
	}
}

// groupAnswer is what a member was answered.
type groupAnswer struct {
	table *catalog.Table
	err   error
}

// together lets members come one after the other while a commit in front of them stands still in
// its Apply, then lets that go on, and returns their answers. It must run in a bubble. before is
// called when all wait.
func together(f *fixture, count *callCount, before func(), members ...member) []groupAnswer {
	f.t.Helper()
	hold := make(chan struct{})
	count.mu.Lock()
	count.hold = hold
	count.mu.Unlock()
	var group sync.WaitGroup
	group.Go(func() {
		if _, err := f.Commit(f.ctx, ident("t"), setProperty(f.t, "in front", "yes")); err != nil {
			f.t.Error(err)
		}
	})
	synctest.Wait()
	answers := make([]groupAnswer, len(members))
	for i, m := range members {
		group.Go(func() {
			ctx := moorage.WithRequestID(f.ctx, fmt.Sprintf("request %d", i))
			answers[i].table, answers[i].err = m(ctx, f.instance.as(fmt.Sprintf("caller %d", i)))
		})
		synctest.Wait()
	}
	count.reset()
	if before != nil {
		before()
	}
	close(hold)
	group.Wait()
	return answers
}

// inBubble runs body with a fixture that has the table "t", and all calls of whose store and
// storage are counted.
func inBubble(t *testing.T, body func(f *fixture, count *callCount), change ...func(*catalog.Config)) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		count := &callCount{}
		f := newFixture(t, append(change, count.onto)...)
		f.create("t")
		body(f, count)
		f.wantClean()
	})
}

// Commits that wait at one table are carried out with one file and one Apply, and all of them are
// answered that version. Its metadata log has one entry more, and its change names all.
func TestGroupIsOneFile(t *testing.T) {
	inBubble(t, func(f *fixture, count *callCount) {
		const clients = 8
		members := make([]member, clients)
		for i := range members {
			members[i] = commitOf(setProperty(f.t, fmt.Sprintf("p%d", i), "yes"))
		}
		answers := together(f, count, nil, members...)
		if files, applies := count.reset(); files != 1 || applies != 1 {
			f.t.Errorf("%d commits took %d files and %d Applies, want 1 and 1", clients, files, applies)
		}
		table, err := f.LoadTable(f.ctx, ident("t"))
		must(f.t, err)
		for i, a := range answers {
			if a.err != nil || a.table.MetadataLocation != table.MetadataLocation {
				f.t.Errorf("commit %d: answered %+v, %v; want the version %s", i, a.table, a.err, table.MetadataLocation)
			}
			if value, _ := table.Document.Property(fmt.Sprintf("p%d", i)); value != "yes" {
				f.t.Errorf("property p%d is %q", i, value)
			}
		}
		if got := len(table.Document.MetadataLog()); got != 2 {
			f.t.Errorf("the metadata log has %d entries, want 2", got)
		}
		changes, err := f.store.Changes(f.ctx, 0, registry.ListLimitMax)
		must(f.t, err)
		group := changes[len(changes)-1].Change.Group
		if len(group) != clients {
			f.t.Fatalf("the change names %d commits, want %d", len(group), clients)
		}
		for i, m := range group {
			want := registry.Member{
				Operation: string(gate.Commit), Principal: fmt.Sprintf("caller %d", i),
				RequestID: fmt.Sprintf("request %d", i), Time: f.clock.Now(),
			}
			if m != want {
				f.t.Errorf("member %d: got %+v, want %+v", i, m, want)
			}
		}
	})
}

// A group of one is the setting by which each commit has a version of its own.
func TestGroupOfOne(t *testing.T) {
	inBubble(t, func(f *fixture, count *callCount) {
		together(f, count, nil,
			commitOf(setProperty(f.t, "a", "1")), commitOf(setProperty(f.t, "b", "1")), commitOf(setProperty(f.t, "c", "1")))
		if files, applies := count.reset(); files != 3 || applies != 3 {
			f.t.Errorf("3 commits took %d files and %d Applies, want 3 and 3", files, applies)
		}
	}, func(config *catalog.Config) { config.CommitGroup = 1 })
}

// The failure of a member is its own, wherever it stands, and what it requires is asked of what the
// members before it made. Those that would undo one another have versions of their own.
func TestGroupRefusals(t *testing.T) {
	const requireNoHead = `[{"type":"assert-ref-snapshot-id","ref":"main","snapshot-id":null}]`
	rows := []struct {
		name    string
		request func(f *fixture) catalog.CommitRequest
		want    moorage.Kind // of the refusal; succeeds for none
		after   bool         // it takes a version of its own
	}{
		{"append behind an append", func(f *fixture) catalog.CommitRequest {
			return appendSnapshot(f.t, f.load("t"), 2, 0, 1)
		}, moorage.KindCommitFailed, false},
		{"requirement that an append breaks", func(f *fixture) catalog.CommitRequest {
			return commitRequest(f.t, requireNoHead, `[{"action":"set-properties","updates":{"mine":"yes"}}]`)
		}, moorage.KindCommitFailed, false},
		{"update that can never succeed", func(f *fixture) catalog.CommitRequest {
			return commitRequest(f.t, `[]`, `[{"action":"set-properties","updates":{"mine":"yes"}},
				{"action":"set-snapshot-ref","ref-name":"b","type":"branch","snapshot-id":77}]`)
		}, moorage.KindValidation, false},
		{"the same property", func(f *fixture) catalog.CommitRequest {
			return setProperty(f.t, "other", "mine")
		}, succeeds, true},
		{"a schema", func(f *fixture) catalog.CommitRequest {
			return commitRequest(f.t, `[]`, `[{"action":"add-schema","schema":{"type":"struct","schema-id":1,"fields":[
				{"id":1,"name":"id","required":false,"type":"long"},{"id":3,"name":"more","required":false,"type":"long"}]}}]`)
		}, succeeds, true},
		{"a property of the catalog", func(f *fixture) catalog.CommitRequest {
			return setProperty(f.t, "write.metadata.previous-versions-max", "9")
		}, succeeds, true},
		{"nothing but a requirement", func(f *fixture) catalog.CommitRequest {
			return commitRequest(f.t, fmt.Sprintf(`[{"type":"assert-table-uuid","uuid":%q}]`, f.load("t").Document.UUID()), `[]`)
		}, succeeds, false},
	}
	for _, row := range rows {
		for place := range 2 {
			t.Run(fmt.Sprintf("%s, place %d", row.name, place), func(t *testing.T) {
				inBubble(t, func(f *fixture, count *callCount) {
					members := []member{
						commitOf(appendSnapshot(f.t, f.load("t"), 1, 0, 1)), commitOf(setProperty(f.t, "other", "yes")),
					}
					odd := commitOf(row.request(f))
					at := place + 1 // the append stays in front
					members = append(members[:at:at], append([]member{odd}, members[at:]...)...)
					if row.name == "the same property" && place == 0 {
						members[1], members[2] = members[2], members[1]
						at = 2
					}
					answers := together(f, count, nil, members...)
					for i, a := range answers {
						want := succeeds
						if i == at {
							want = row.want
						}
						if outcomeOf(a.err) != want {
							f.t.Errorf("member %d: answered %v, want %v", i, a.err, want)
						}
					}
					files, _ := count.reset()
					if wantFiles := map[bool]int{false: 1, true: 2}[row.after]; files != wantFiles {
						f.t.Errorf("%d files were written, want %d", files, wantFiles)
					}
					table := f.load("t")
					if !table.Document.HasSnapshot(1) {
						f.t.Error("the append is not there")
					}
					if _, there := table.Document.Property("mine"); there {
						f.t.Error("a refused change is there")
					}
				})
			})
		}
	}
}

// A request that is sent twice while both wait happens once, and both are answered that it did.
func TestGroupRepeatedAppend(t *testing.T) {
	inBubble(t, func(f *fixture, count *callCount) {
		request := appendSnapshot(f.t, f.load("t"), 1, 0, 1)
		for i, a := range together(f, count, nil, commitOf(request), commitOf(request)) {
			if a.err != nil || !a.table.Document.HasSnapshot(1) {
				f.t.Errorf("attempt %d: answered %v", i, a.err)
			}
		}
	})
}

// A member whose key has an outcome is answered that, and the others go on without it.
func TestGroupAnsweredKey(t *testing.T) {
	inBubble(t, func(f *fixture, count *callCount) {
		other, err := newInstance(f.config)
		must(f.t, err)
		key, keyed := keyOf("k"), commitOf(setProperty(f.t, "keyed", "yes"))
		elsewhere := func() {
			table, err := keyed(f.ctx, other.For(moorage.Caller{Name: "caller 1"}, &key, nil))
			must(f.t, err)
			if value, _ := table.Document.Property("keyed"); value != "yes" {
				f.t.Errorf("the other node answered the property %q", value)
			}
		}
		answers := together(f, count, elsewhere, commitOf(setProperty(f.t, "a", "1")),
			func(ctx context.Context, _ catalog.Verbs) (*catalog.Table, error) {
				return keyed(ctx, f.instance.For(moorage.Caller{Name: "caller 1"}, &key, nil))
			}, commitOf(setProperty(f.t, "b", "1")))
		for i, a := range answers {
			if a.err != nil {
				f.t.Errorf("member %d: %v", i, a.err)
			}
		}
		table := f.load("t")
		for _, name := range []string{"a", "b", "keyed"} {
			if _, there := table.Document.Property(name); !there {
				f.t.Errorf("property %s is missing", name)
			}
		}
	})
}

// Keys of members get their outcomes with the one Apply, and answer a repeated request.
func TestGroupKeys(t *testing.T) {
	inBubble(t, func(f *fixture, count *callCount) {
		var members []member
		for i := range 3 {
			key := keyOf("k")
			key.ID = fmt.Sprintf("01926f3a-7b1c-7def-8123-%012d", i)
			members = append(members, func(ctx context.Context, _ catalog.Verbs) (*catalog.Table, error) {
				return f.For(moorage.Anonymous(), &key, nil).Commit(ctx, ident("t"), setProperty(f.t, fmt.Sprintf("p%d", i), "yes"))
			})
		}
		first := together(f, count, nil, members...)
		if files, applies := count.reset(); files != 1 || applies != 1 {
			f.t.Errorf("%d files and %d Applies, want 1 and 1", files, applies)
		}
		for i, m := range members {
			again, err := m(f.ctx, nil)
			if err != nil || first[i].err != nil || again.MetadataLocation != first[i].table.MetadataLocation {
				f.t.Errorf("member %d: answered %+v, %v, and then %+v, %v", i, first[i].table, first[i].err, again, err)
			}
		}
	})
}

// The Apply of a group fails for all of its members, or its answer is lost for all: none is told
// what is not so.
func TestGroupFaults(t *testing.T) {
	for name, tt := range map[string]struct {
		action registrytest.Action
		want   moorage.Kind
	}{
		"the store refuses":  {registrytest.Fail, moorage.KindUnavailable},
		"the answer is lost": {registrytest.Lose, succeeds},
	} {
		t.Run(name, func(t *testing.T) {
			var faulty *registrytest.FaultyStore
			plan, applies := registrytest.Pass, 0
			inBubble(t, func(f *fixture, count *callCount) {
				answers := together(f, count, func() { plan = tt.action },
					commitOf(setProperty(f.t, "a", "1")), commitOf(setProperty(f.t, "b", "1")), commitOf(setProperty(f.t, "c", "1")))
				plan = registrytest.Pass
				for i, a := range answers {
					if outcomeOf(a.err) != tt.want {
						f.t.Errorf("member %d: answered %v, want %v", i, a.err, tt.want)
					}
				}
				table := f.load("t")
				for _, name := range []string{"a", "b", "c"} {
					if _, there := table.Document.Property(name); there != (tt.want == succeeds) {
						f.t.Errorf("property %s is there: %t", name, there)
					}
				}
			}, func(config *catalog.Config) {
				faulty = registrytest.Faulty(config.Store, func(_ int, method string) registrytest.Action {
					if method != registrytest.MethodApply || plan == registrytest.Pass {
						return registrytest.Pass
					}
					if applies++; applies == 2 { // the first is that of the commit in front
						return plan
					}
					return registrytest.Pass
				})
				config.Store = faulty
			})
		})
	}
}

// A client that leaves while its commit waits takes the commit with it.
func TestGroupClientLeaves(t *testing.T) {
	inBubble(t, func(f *fixture, count *callCount) {
		leaving, leave := context.WithCancel(f.ctx)
		answers := together(f, count, leave,
			func(_ context.Context, c catalog.Verbs) (*catalog.Table, error) {
				return c.Commit(leaving, ident("t"), setProperty(f.t, "left", "yes"))
			}, commitOf(setProperty(f.t, "stayed", "yes")))
		if err := answers[0].err; !errors.Is(err, context.Canceled) || moorage.KindOf(err) != moorage.KindUnavailable {
			f.t.Errorf("answered %v", err)
		}
		table := f.load("t")
		_, left := table.Document.Property("left")
		_, stayed := table.Document.Property("stayed")
		if left || !stayed || answers[1].err != nil {
			f.t.Errorf("left is there: %t, stayed is there: %t, %v", left, stayed, answers[1].err)
		}
	})
}

// load loads a table.
func (f *fixture) load(name string) *catalog.Table {
	f.t.Helper()
	table, err := f.LoadTable(f.ctx, ident(name))
	if err != nil {
		f.t.Fatalf("load %s: %v", name, err)
	}
	return table
}

// succeeds stands for the kind of no error.
const succeeds moorage.Kind = 255

func outcomeOf(err error) moorage.Kind {
	if err == nil {
		return succeeds
	}
	return moorage.KindOf(err)
}
