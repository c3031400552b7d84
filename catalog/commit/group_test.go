package commit_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"

	"moorage"
	"moorage/catalog"
	"moorage/catalog/gate"
	"moorage/registry"
	"moorage/testkit/catalogkit"
	"moorage/testkit/registrytest"
)

// commitOf returns a commit of the table "t".
func commitOf(request catalog.CommitRequest) catalogkit.Member {
	return func(ctx context.Context, c catalog.Verbs) (*catalog.Table, error) {
		return c.Commit(ctx, ident("t"), request)
	}
}

// inBubble runs body in a bubble of synctest, with a fixture that has the table "t". All calls of
// the fixture's store and storage are counted.
func inBubble(t *testing.T, body func(f *catalogkit.Fixture, count *catalogkit.CallCount), change ...func(*catalog.Config)) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		count := &catalogkit.CallCount{}
		f := catalogkit.New(t, append(change, count.Onto)...)
		f.Create("t")
		body(f, count)
		f.WantClean()
	})
}

// Commits that wait at one table are carried out with one file and one Apply, and all are answered
// with that version. Its metadata log has one more entry, and its change record names all commits.
func TestGroupIsOneFile(t *testing.T) {
	inBubble(t, func(f *catalogkit.Fixture, count *catalogkit.CallCount) {
		const clients = 8
		members := make([]catalogkit.Member, clients)
		for i := range members {
			members[i] = commitOf(catalogkit.SetProperty(f.T, fmt.Sprintf("p%d", i), "yes"))
		}
		answers := catalogkit.Together(f, count, nil, members...)
		if files, applies := count.Reset(); files != 1 || applies != 1 {
			f.T.Errorf("%d commits took %d files and %d Applies, want 1 and 1", clients, files, applies)
		}
		table, err := f.LoadTable(f.Ctx, ident("t"))
		must(f.T, err)
		for i, a := range answers {
			if a.Err != nil || a.Table.MetadataLocation != table.MetadataLocation {
				f.T.Errorf("commit %d: answered %+v, %v; want the version %s", i, a.Table, a.Err, table.MetadataLocation)
			}
			if value, _ := table.Document.Property(fmt.Sprintf("p%d", i)); value != "yes" {
				f.T.Errorf("property p%d is %q", i, value)
			}
		}
		if got := len(table.Document.MetadataLog()); got != 2 {
			f.T.Errorf("the metadata log has %d entries, want 2", got)
		}
		changes, err := f.Store.Changes(f.Ctx, 0, registry.ListLimitMax)
		must(f.T, err)
		group := changes[len(changes)-1].Change.Group
		if len(group) != clients {
			f.T.Fatalf("the change names %d commits, want %d", len(group), clients)
		}
		for i, m := range group {
			want := registry.Member{
				Operation: string(gate.Commit), Principal: fmt.Sprintf("caller %d", i),
				RequestID: fmt.Sprintf("request %d", i), Time: f.Clock.Now(),
			}
			if m != want {
				f.T.Errorf("member %d: got %+v, want %+v", i, m, want)
			}
		}
	})
}

// With a group size of one, each commit has its own version.
func TestGroupOfOne(t *testing.T) {
	inBubble(t, func(f *catalogkit.Fixture, count *catalogkit.CallCount) {
		catalogkit.Together(f, count, nil,
			commitOf(catalogkit.SetProperty(f.T, "a", "1")), commitOf(catalogkit.SetProperty(f.T, "b", "1")), commitOf(catalogkit.SetProperty(f.T, "c", "1")))
		if files, applies := count.Reset(); files != 3 || applies != 3 {
			f.T.Errorf("3 commits took %d files and %d Applies, want 3 and 3", files, applies)
		}
	}, func(config *catalog.Config) { config.CommitGroup = 1 })
}

// If a member fails, only that member is refused, whatever its position. Its requirements are
// checked against the result of the members before it. Members that would undo each other get their
// own versions.
func TestGroupRefusals(t *testing.T) {
	const requireNoHead = `[{"type":"assert-ref-snapshot-id","ref":"main","snapshot-id":null}]`
	rows := []struct {
		name    string
		request func(f *catalogkit.Fixture) catalog.CommitRequest
		want    moorage.Kind // of the refusal; succeeds if there is none
		after   bool         // it gets its own version
	}{
		{"append behind an append", func(f *catalogkit.Fixture) catalog.CommitRequest {
			return catalogkit.AppendSnapshot(f.T, f.Load("t"), 2, 0, 1)
		}, moorage.KindCommitFailed, false},
		{"requirement that an append breaks", func(f *catalogkit.Fixture) catalog.CommitRequest {
			return catalogkit.CommitRequest(f.T, requireNoHead, `[{"action":"set-properties","updates":{"mine":"yes"}}]`)
		}, moorage.KindCommitFailed, false},
		{"update that can never succeed", func(f *catalogkit.Fixture) catalog.CommitRequest {
			return catalogkit.CommitRequest(f.T, `[]`, `[{"action":"set-properties","updates":{"mine":"yes"}},
				{"action":"set-snapshot-ref","ref-name":"b","type":"branch","snapshot-id":77}]`)
		}, moorage.KindValidation, false},
		{"the same property", func(f *catalogkit.Fixture) catalog.CommitRequest {
			return catalogkit.SetProperty(f.T, "other", "mine")
		}, succeeds, true},
		{"a schema", func(f *catalogkit.Fixture) catalog.CommitRequest {
			return catalogkit.CommitRequest(f.T, `[]`, `[{"action":"add-schema","schema":{"type":"struct","schema-id":1,"fields":[
				{"id":1,"name":"id","required":false,"type":"long"},{"id":3,"name":"more","required":false,"type":"long"}]}}]`)
		}, succeeds, true},
		{"a property of the catalog", func(f *catalogkit.Fixture) catalog.CommitRequest {
			return catalogkit.SetProperty(f.T, "write.metadata.previous-versions-max", "9")
		}, succeeds, true},
		{"nothing but a requirement", func(f *catalogkit.Fixture) catalog.CommitRequest {
			return catalogkit.CommitRequest(f.T, fmt.Sprintf(`[{"type":"assert-table-uuid","uuid":%q}]`, f.Load("t").Document.UUID()), `[]`)
		}, succeeds, false},
	}
	for _, row := range rows {
		for place := range 2 {
			t.Run(fmt.Sprintf("%s, place %d", row.name, place), func(t *testing.T) {
				inBubble(t, func(f *catalogkit.Fixture, count *catalogkit.CallCount) {
					members := []catalogkit.Member{
						commitOf(catalogkit.AppendSnapshot(f.T, f.Load("t"), 1, 0, 1)), commitOf(catalogkit.SetProperty(f.T, "other", "yes")),
					}
					odd := commitOf(row.request(f))
					at := place + 1 // the append stays first
					members = append(members[:at:at], append([]catalogkit.Member{odd}, members[at:]...)...)
					if row.name == "the same property" && place == 0 {
						members[1], members[2] = members[2], members[1]
						at = 2
					}
					answers := catalogkit.Together(f, count, nil, members...)
					for i, a := range answers {
						want := succeeds
						if i == at {
							want = row.want
						}
						if outcomeOf(a.Err) != want {
							f.T.Errorf("member %d: answered %v, want %v", i, a.Err, want)
						}
					}
					files, _ := count.Reset()
					if wantFiles := map[bool]int{false: 1, true: 2}[row.after]; files != wantFiles {
						f.T.Errorf("%d files were written, want %d", files, wantFiles)
					}
					table := f.Load("t")
					if !table.Document.HasSnapshot(1) {
						f.T.Error("the append is not there")
					}
					if _, there := table.Document.Property("mine"); there {
						f.T.Error("a refused change is there")
					}
				})
			})
		}
	}
}

// If a request is sent twice and both copies wait, it happens once, and both are answered with
// success.
func TestGroupRepeatedAppend(t *testing.T) {
	inBubble(t, func(f *catalogkit.Fixture, count *catalogkit.CallCount) {
		request := catalogkit.AppendSnapshot(f.T, f.Load("t"), 1, 0, 1)
		for i, a := range catalogkit.Together(f, count, nil, commitOf(request), commitOf(request)) {
			if a.Err != nil || !a.Table.Document.HasSnapshot(1) {
				f.T.Errorf("attempt %d: answered %v", i, a.Err)
			}
		}
	})
}

// A member whose key has an outcome is answered with that outcome, and the others continue without
// it.
func TestGroupAnsweredKey(t *testing.T) {
	inBubble(t, func(f *catalogkit.Fixture, count *catalogkit.CallCount) {
		other, err := catalogkit.NewInstance(f.Config)
		must(f.T, err)
		key, keyed := catalogkit.KeyOf("k"), commitOf(catalogkit.SetProperty(f.T, "keyed", "yes"))
		elsewhere := func() {
			table, err := keyed(f.Ctx, other.For(moorage.Caller{Name: "caller 1"}, &key, nil))
			must(f.T, err)
			if value, _ := table.Document.Property("keyed"); value != "yes" {
				f.T.Errorf("the other node answered the property %q", value)
			}
		}
		answers := catalogkit.Together(f, count, elsewhere, commitOf(catalogkit.SetProperty(f.T, "a", "1")),
			func(ctx context.Context, _ catalog.Verbs) (*catalog.Table, error) {
				return keyed(ctx, f.Instance.For(moorage.Caller{Name: "caller 1"}, &key, nil))
			}, commitOf(catalogkit.SetProperty(f.T, "b", "1")))
		for i, a := range answers {
			if a.Err != nil {
				f.T.Errorf("member %d: %v", i, a.Err)
			}
		}
		table := f.Load("t")
		for _, name := range []string{"a", "b", "keyed"} {
			if _, there := table.Document.Property(name); !there {
				f.T.Errorf("property %s is missing", name)
			}
		}
	})
}

// The one Apply also stores the outcomes of the members' keys. They answer repeated requests.
func TestGroupKeys(t *testing.T) {
	inBubble(t, func(f *catalogkit.Fixture, count *catalogkit.CallCount) {
		var members []catalogkit.Member
		for i := range 3 {
			key := catalogkit.KeyOf("k")
			key.ID = fmt.Sprintf("01926f3a-7b1c-7def-8123-%012d", i)
			members = append(members, func(ctx context.Context, _ catalog.Verbs) (*catalog.Table, error) {
				return f.For(moorage.Anonymous(), &key, nil).Commit(ctx, ident("t"), catalogkit.SetProperty(f.T, fmt.Sprintf("p%d", i), "yes"))
			})
		}
		first := catalogkit.Together(f, count, nil, members...)
		if files, applies := count.Reset(); files != 1 || applies != 1 {
			f.T.Errorf("%d files and %d Applies, want 1 and 1", files, applies)
		}
		for i, m := range members {
			again, err := m(f.Ctx, nil)
			if err != nil || first[i].Err != nil || again.MetadataLocation != first[i].Table.MetadataLocation {
				f.T.Errorf("member %d: answered %+v, %v, and then %+v, %v", i, first[i].Table, first[i].Err, again, err)
			}
		}
	})
}

// The Apply of a group fails for all of its members, or its answer is lost for all. No member gets
// a wrong answer.
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
			inBubble(t, func(f *catalogkit.Fixture, count *catalogkit.CallCount) {
				answers := catalogkit.Together(f, count, func() { plan = tt.action },
					commitOf(catalogkit.SetProperty(f.T, "a", "1")), commitOf(catalogkit.SetProperty(f.T, "b", "1")), commitOf(catalogkit.SetProperty(f.T, "c", "1")))
				plan = registrytest.Pass
				for i, a := range answers {
					if outcomeOf(a.Err) != tt.want {
						f.T.Errorf("member %d: answered %v, want %v", i, a.Err, tt.want)
					}
				}
				table := f.Load("t")
				for _, name := range []string{"a", "b", "c"} {
					if _, there := table.Document.Property(name); there != (tt.want == succeeds) {
						f.T.Errorf("property %s is there: %t", name, there)
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

// If a client disconnects while its commit waits, the commit is dropped.
func TestGroupClientLeaves(t *testing.T) {
	inBubble(t, func(f *catalogkit.Fixture, count *catalogkit.CallCount) {
		leaving, leave := context.WithCancel(f.Ctx)
		answers := catalogkit.Together(f, count, leave,
			func(_ context.Context, c catalog.Verbs) (*catalog.Table, error) {
				return c.Commit(leaving, ident("t"), catalogkit.SetProperty(f.T, "left", "yes"))
			}, commitOf(catalogkit.SetProperty(f.T, "stayed", "yes")))
		if err := answers[0].Err; !errors.Is(err, context.Canceled) || moorage.KindOf(err) != moorage.KindUnavailable {
			f.T.Errorf("answered %v", err)
		}
		table := f.Load("t")
		_, left := table.Document.Property("left")
		_, stayed := table.Document.Property("stayed")
		if left || !stayed || answers[1].Err != nil {
			f.T.Errorf("left is there: %t, stayed is there: %t, %v", left, stayed, answers[1].Err)
		}
	})
}

// succeeds stands for success in place of an error kind.
const succeeds moorage.Kind = 255

func outcomeOf(err error) moorage.Kind {
	if err == nil {
		return succeeds
	}
	return moorage.KindOf(err)
}
