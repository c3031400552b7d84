package catalogtest

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/iceberg-go"
	icebergcatalog "github.com/apache/iceberg-go/catalog"
	_ "github.com/apache/iceberg-go/io" // registers file://
	"github.com/apache/iceberg-go/table"
)

// rebased lets the server rebase late appends onto the current head, and disables the client's
// retries.
var rebased = iceberg.Properties{"moorage.append-rebase": "on-all", table.CommitNumRetriesKey: "0"}

var events = iceberg.NewSchema(0,
	iceberg.NestedField{ID: 1, Name: "writer", Type: iceberg.PrimitiveTypes.Int64},
	iceberg.NestedField{ID: 2, Name: "number", Type: iceberg.PrimitiveTypes.Int64})

// iceberg-go writers without retries add rows at the same moment. Each row must exist exactly once,
// and the snapshots must form one line. Then the client's own expiry and orphan removal must delete
// no live file.
func TestWritersWithoutRetry(t *testing.T) {
	t.Parallel()
	for _, row := range []struct{ writers, each int }{{4, 4}, {32, 1}} {
		t.Run(fmt.Sprintf("writers=%d", row.writers), func(t *testing.T) {
			t.Parallel()
			w := newWriting(t)
			stale := make([]*table.Table, row.writers)
			for i := range stale {
				stale[i] = w.load()
			}
			var writers sync.WaitGroup
			for writer, stale := range stale {
				writers.Go(func() {
					for number := range row.each {
						var err error
						if stale, err = w.append(stale, writer, number); err != nil {
							t.Errorf("writer %d, row %d: %v", writer, number, err)
							return
						}
					}
				})
			}
			writers.Wait()
			var want []string
			for writer := range row.writers {
				for number := range row.each {
					want = append(want, fmt.Sprintf("%d/%d", writer, number))
				}
			}
			slices.Sort(want)
			w.wantRows(want)
			w.wantLine(len(want))
			w.wantMoved(row.writers - 1)

			w.expireAndClean(row.writers - 1) // the manifest lists that the late writers wrote
			w.wantRows(want)
			if _, err := w.append(w.load(), 99, 99); err != nil {
				t.Fatal(err)
			}
			w.wantRows(append(want, "99/99"))
		})
	}
}

// writing is a table that a test writes to.
type writing struct {
	*testing.T
	catalog icebergcatalog.Catalog
	name    table.Identifier
}

func newWriting(t *testing.T) *writing {
	t.Helper()
	w := &writing{t, newClient(t, ""), table.Identifier{"harbour", "events"}}
	if err := w.catalog.CreateNamespace(t.Context(), table.Identifier{"harbour"}, nil); err != nil {
		t.Fatal(err)
	}
	_, err := w.catalog.CreateTable(t.Context(), w.name, events, icebergcatalog.WithProperties(rebased))
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func (w *writing) load() *table.Table {
	w.Helper()
	loaded, err := w.catalog.LoadTable(w.Context(), w.name)
	if err != nil {
		w.Fatal(err)
	}
	return loaded
}

// append adds one row to the client's view of the table.
func (w *writing) append(to *table.Table, writer, number int) (*table.Table, error) {
	schema := arrow.NewSchema([]arrow.Field{
		{Name: "writer", Type: arrow.PrimitiveTypes.Int64, Nullable: true},
		{Name: "number", Type: arrow.PrimitiveTypes.Int64, Nullable: true},
	}, nil)
	builder := array.NewRecordBuilder(memory.DefaultAllocator, schema)
	defer builder.Release()
	builder.Field(0).(*array.Int64Builder).Append(int64(writer))
	builder.Field(1).(*array.Int64Builder).Append(int64(number))
	batch := builder.NewRecordBatch()
	defer batch.Release()
	reader, err := array.NewRecordReader(schema, []arrow.RecordBatch{batch})
	if err != nil {
		return nil, err
	}
	defer reader.Release()
	return to.Append(w.Context(), reader, nil)
}

// wantRows reads the table from its files and compares the rows.
func (w *writing) wantRows(want []string) {
	w.Helper()
	found, err := w.load().Scan().ToArrowTable(w.Context())
	if err != nil {
		w.Fatal(err)
	}
	defer found.Release()
	var rows []string
	reader := array.NewTableReader(found, 0)
	defer reader.Release()
	for reader.Next() {
		batch := reader.RecordBatch()
		writers, numbers := batch.Column(0).(*array.Int64), batch.Column(1).(*array.Int64)
		for i := range int(batch.NumRows()) {
			rows = append(rows, fmt.Sprintf("%d/%d", writers.Value(i), numbers.Value(i)))
		}
	}
	slices.Sort(rows)
	if !slices.Equal(rows, want) {
		w.Errorf("%d rows, want %d: %s", len(rows), len(want), strings.Join(rows, " "))
	}
}

// wantLine checks that each commit has a snapshot, that the snapshots form one line, and that the
// last one counts all rows.
func (w *writing) wantLine(commits int) {
	w.Helper()
	metadata := w.load().Metadata()
	line := 0
	for at := metadata.CurrentSnapshot(); at != nil; line++ {
		if at.ParentSnapshotID == nil {
			at = nil
		} else {
			at = metadata.SnapshotByID(*at.ParentSnapshotID)
		}
	}
	if line != commits || len(metadata.Snapshots()) != commits || len(slices.Collect(metadata.SnapshotLogs())) != commits {
		w.Errorf("%d snapshots in one line, %d in all, want %d", line, len(metadata.Snapshots()), commits)
	}
	if total := metadata.CurrentSnapshot().Summary.Properties["total-records"]; total != strconv.Itoa(commits) {
		w.Errorf("the head counts %s rows, want %d", total, commits)
	}
}

// wantMoved checks that the server rebased at least so many appends onto another snapshot.
func (w *writing) wantMoved(least int) {
	w.Helper()
	moved := 0
	for _, snapshot := range w.load().Metadata().Snapshots() {
		if _, ok := snapshot.Summary.Properties["moorage.rebased"]; ok {
			moved++
		}
	}
	if moved < least {
		w.Errorf("%d appends were moved, want %d or more", moved, least)
	}
}

// expireAndClean has the client expire all snapshots except the last one. The client must then
// remove at least so many orphans.
func (w *writing) expireAndClean(orphans int) {
	w.Helper()
	change := w.load().NewTransaction()
	if err := change.ExpireSnapshots(table.WithRetainLast(1), table.WithOlderThan(time.Nanosecond)); err != nil {
		w.Fatal(err)
	}
	if _, err := change.Commit(w.Context()); err != nil {
		w.Fatal(err)
	}
	if left := len(w.load().Metadata().Snapshots()); left != 1 {
		w.Errorf("%d snapshots are left", left)
	}
	removed, err := w.load().DeleteOrphanFiles(w.Context(), table.WithFilesOlderThan(0))
	if err != nil {
		w.Fatal(err)
	}
	if len(removed.DeletedFiles) < orphans {
		w.Errorf("%d orphans were removed, want %d or more", len(removed.DeletedFiles), orphans)
	}
}
