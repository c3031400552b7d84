package postgres

import (
	"context"
	"flag"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"moorage/registry"
)

// waitingRows is the number of waiting changes in TestPageWithManyWaiting.
var waitingRows = flag.Int("waiting", 150_000, "how many changes wait for their places in TestPageWithManyWaiting; from 1,000,000 on, a page must take less than 100 ms")

// insertTables writes n waiting changes of a thousand tables.
func insertTables(t *testing.T, schema string, n int) {
	t.Helper()
	execute(t, schema, "INSERT INTO moorage_change (key, etag, state, value, awaits, at) SELECT convert_to(md5(i::text), 'UTF8'), "+
		"gen_random_uuid(), 0, convert_to('{\"id\":\"' || md5(i::text) || '\",\"operation\":\"' || repeat('x', 400) || '\"}', 'UTF8'), true, "+
		"now() - ($1::integer - i) * interval '1 ms' "+
		"FROM generate_series(1, $1::integer) AS i", n)
}

// lastPlace returns the last assigned place.
func lastPlace(t *testing.T, schema string) (last registry.Position) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), server.DSN()+schema)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.WithoutCancel(t.Context()))
	if err := conn.QueryRow(t.Context(), "SELECT last FROM moorage_change_head WHERE one").Scan(&last); err != nil {
		t.Fatal(err)
	}
	return last
}

// TestPageWithManyWaiting reads pages while many changes wait for their places, with and without
// statistics about them. It alternates with pages of a store with few waiting changes. The time
// must not depend on their number.
func TestPageWithManyWaiting(t *testing.T) {
	const pages, limit, few, longLimit, pageTimeMax, manyMin = 20, 64, 4000, 1000, 100 * time.Millisecond, 1_000_000
	var schemas [2]string
	var stores [2]*Store
	for i, n := range []int{few, *waitingRows} {
		schemas[i] = migrated(t)
		execute(t, schemas[i], "ANALYZE moorage_change") // statistics of an empty table
		stores[i] = openStore(t, server.DSN()+schemas[i], Options{})
		wantChanges(t, stores[i], 0)
		insertTables(t, schemas[i], n)
	}
	var after [2]registry.Position
	for _, analyzed := range []bool{false, true} {
		fastest := [2]time.Duration{time.Hour, time.Hour}
		for _, schema := range schemas {
			if analyzed {
				execute(t, schema, "ANALYZE moorage_change")
			}
		}
		for range pages {
			for i, store := range stores {
				after[i] = lastPlace(t, schemas[i]) // so that each page must be numbered first
				begun := time.Now()
				page, err := store.Changes(t.Context(), after[i], limit)
				fastest[i] = min(fastest[i], time.Since(begun))
				if err != nil || len(page) != limit {
					t.Fatalf("%d changes, want %d (%v)", len(page), limit, err)
				}
			}
		}
		t.Logf("analyzed %t: a page is read in %v with few that wait, and in %v with many", analyzed, fastest[0], fastest[1])
		// Other tests use this machine too, so the fastest time counts.
		if fastest[1] > 4*fastest[0] {
			t.Errorf("a page is read in %v", fastest[1])
		}
	}
	fastest := time.Hour
	for range pages {
		after[1] = lastPlace(t, schemas[1])
		begun := time.Now()
		page, err := stores[1].Changes(t.Context(), after[1], longLimit)
		fastest = min(fastest, time.Since(begun))
		if err != nil || len(page) != longLimit {
			t.Fatalf("%d changes, want %d (%v)", len(page), longLimit, err)
		}
	}
	t.Logf("a page of %d takes %v", longLimit, fastest)
	if *waitingRows >= manyMin && fastest > pageTimeMax {
		t.Errorf("a page of %d takes %v, want %v", longLimit, fastest, pageTimeMax)
	}
	begun := time.Now()
	if more, err := stores[1].Number(t.Context(), 0); err != nil || !more {
		t.Errorf("more %t, %v", more, err)
	}
	t.Logf("a step of %d takes %v", numberedMax, time.Since(begun))
}
