package catalog_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"moorage/catalog"
	"moorage/metadata"
	"moorage/registry"
	"moorage/testkit/catalogkit"
	"moorage/testkit/scale"
)

// wantLists fails the test unless the existing manifest lists written by servers are exactly those
// named by snapshots of the table.
func wantLists(t *testing.T, table *catalog.Table, count *catalogkit.FileCount) {
	t.Helper()
	named := map[string]bool{}
	for s := range table.Document.Snapshots() {
		named[s.ManifestList] = true
	}
	for _, location := range locations(count) {
		if strings.HasSuffix(location, ".avro") && !named[location] {
			t.Errorf("%s is left over", location)
		}
	}
	for s := range table.Document.Snapshots() {
		if !strings.Contains(s.ManifestList, "-1-sent") && !slices.Contains(locations(count), s.ManifestList) {
			t.Errorf("%s is named, and is not there", s.ManifestList)
		}
	}
}

// logOf returns the snapshots in the snapshot log.
func logOf(t *testing.T, document *metadata.Document) (ids []int64) {
	t.Helper()
	var parsed struct {
		Log []struct {
			ID int64 `json:"snapshot-id"`
		} `json:"snapshot-log"`
	}
	must(t, json.Unmarshal(document.Raw(), &parsed))
	for _, entry := range parsed.Log {
		ids = append(ids, entry.ID)
	}
	return ids
}

// Several concurrent appends to one version run without retries by their clients. All succeed. Each
// row occurs once, the chain and the log contain each snapshot, and there are few versions. Nothing
// is left of lost attempts.
func TestRebaseAppendersWithoutRetry(t *testing.T) {
	t.Parallel()
	const writers, rounds = 32, 6 / min(scale.Factor, 3)
	for _, nodes := range []int{1, 2} {
		t.Run(fmt.Sprintf("%d nodes", nodes), func(t *testing.T) {
			t.Parallel()
			count := &catalogkit.FileCount{There: map[string]bool{}}
			moved := 0
			var mu sync.Mutex
			f := catalogkit.New(t, catalogkit.CountFiles(count), func(c *catalog.Config) {
				c.AppendsMoved = func(n int) { mu.Lock(); moved += n; mu.Unlock() }
			})
			servers := []*catalogkit.Instance{f.Instance}
			for len(servers) < nodes {
				servers = append(servers, must1(catalogkit.NewInstance(f.Config))(t))
			}
			e := newEngine(f, 2)
			seen := createVersion(f, "t", 2)
			for round := range rounds {
				requests := make([]catalog.CommitRequest, writers)
				for i := range requests {
					requests[i] = e.write(e.draft(seen, int64(round*writers+i+1), fmt.Sprintf("f-%d-%d", round, i)))
				}
				start := make(chan struct{})
				var group sync.WaitGroup
				for i, request := range requests {
					group.Go(func() {
						<-start
						if _, err := servers[i%nodes].Commit(f.Ctx, ident("t"), request); err != nil {
							t.Errorf("round %d, writer %d: %v", round, i, err)
						}
					})
				}
				close(start)
				group.Wait()
				seen = f.Load("t")
			}
			const all = writers * rounds
			if got := len(snapshotChain(t, seen.Document)); got != all {
				t.Errorf("the chain has %d snapshots, want %d", got, all)
			}
			if log := logOf(t, seen.Document); len(log) != all {
				t.Errorf("the snapshot log has %d entries, want %d", len(log), all)
			}
			if rows := e.rowsOf(seen.Document); rows != 10*all {
				t.Errorf("there are %d rows, want %d", rows, 10*all)
			}
			if moved != all-rounds {
				t.Errorf("%d appends were moved, want %d", moved, all-rounds)
			}
			changes := must1(f.Store.Changes(f.Ctx, 0, registry.ListLimitMax))(t)
			if files := len(changes); nodes == 1 && files > all/2 {
				t.Errorf("%d appends took %d changes", all, files)
			}
			wantLists(t, seen, count)
			f.WantClean()
		})
	}
}
