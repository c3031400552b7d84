package torture

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/iceberg-go"
	icebergcatalog "github.com/apache/iceberg-go/catalog"
	_ "github.com/apache/iceberg-go/catalog/rest"
	_ "github.com/apache/iceberg-go/io" // registers file://
	"github.com/apache/iceberg-go/table"

	"moorage/testkit/servers"
)

const (
	// logRounds is the number of server restarts per log. It keeps the histories of its tables
	// short.
	logRounds = 10
	// logTables is the number of tables of a log, and logWriters the number of clients that append
	// to each.
	logTables  = 2
	logWriters = 4
	// appendsMax bounds the number of acknowledged appends before a kill.
	appendsMax = 40
	// movedKills is the number of kills after which the test must have seen three cases: a rebased
	// append, an append that happened without an answer, and one that did not happen.
	movedKills = 50
)

// TestAppends kills the server repeatedly while iceberg-go clients without retries append rows to
// the same tables. The server rebases late appends onto the current head. One table consents to
// that for all its writers; the writers of the other consent themselves.
func TestAppends(t *testing.T) {
	seed := newSeed(t)
	random := rand.New(rand.NewPCG(seed, 2))
	binary := servers.Build(t)
	args := []string{"--data", filepath.Join(t.ArtifactDir(), "data")}
	var seen appendTally
	var l *rowLog
	for number := range *killsFlag {
		server := servers.MustStart(t, binary, args...)
		if l != nil {
			l.judge(t, server.URI, &seen)
		}
		if number%logRounds == 0 {
			t.Log(&seen)
			l = openLog(t, server.URI, number/logRounds)
		}
		l.live(t, server, 1+random.Int64N(appendsMax), time.Duration(random.Int64N(int64(aimMax))))
		seen.kills++
		if err := servers.Check(t.Context(), binary, args[:2]...); err != nil {
			t.Error(err)
		}
		if t.Failed() {
			t.Fatalf("life %d failed; -artifacts keeps the data", number)
		}
	}
	server := servers.MustStart(t, binary, args...)
	defer server.Kill()
	l.judge(t, server.URI, &seen)
	if err := server.Stop(); err != nil {
		t.Error(err)
	}
	if err := servers.Check(t.Context(), binary, args[:2]...); err != nil {
		t.Error(err)
	}
	t.Log(&seen)
	if seen.acknowledged == 0 || *killsFlag >= movedKills && (seen.moved == 0 || seen.happened == 0 || seen.vanished == 0) {
		t.Error("the kills have not met what they should")
	}
}

// rowLog is a few tables to which rows are appended, one by one, over several restarts of the
// server.
type rowLog struct {
	tables []*rowTable
}

// rowTable is a table of a rowLog, with the answers that its writers got.
type rowTable struct {
	name    table.Identifier
	consent iceberg.Properties // of its writers' catalogs

	mu           sync.Mutex // guards what follows; a leaf
	next         int64      // the number of the next row
	acknowledged map[int64]bool
	unknown      map[int64]bool
	problems     []error
}

// openLog creates the tables of a log.
func openLog(t *testing.T, uri string, number int) *rowLog {
	t.Helper()
	client := openClient(t, uri, nil)
	namespace := table.Identifier{fmt.Sprintf("log%d", number)}
	if err := client.CreateNamespace(t.Context(), namespace, nil); err != nil {
		t.Fatal(err)
	}
	l := &rowLog{}
	for i := range logTables {
		r := &rowTable{name: append(namespace, fmt.Sprintf("t%d", i)), acknowledged: map[int64]bool{}, unknown: map[int64]bool{}}
		permits := "on-all"
		if i%2 == 1 { // the writers must consent instead
			permits, r.consent = "on", iceberg.Properties{"header.X-Moorage-Append-Rebase": "on"}
		}
		_, err := client.CreateTable(t.Context(), r.name, rowSchema, icebergcatalog.WithProperties(iceberg.Properties{
			table.CommitNumRetriesKey: "0", "moorage.append-rebase": permits,
		}))
		if err != nil {
			t.Fatal(err)
		}
		l.tables = append(l.tables, r)
	}
	return l
}

// live has the writers work until the server has acknowledged so many appends. It then kills the
// server after delay.
func (l *rowLog) live(t *testing.T, server *servers.Node, appends int64, delay time.Duration) {
	t.Helper()
	defer server.Kill()
	ctx, cancel := context.WithTimeout(t.Context(), roundTimeout)
	defer cancel()
	enough := make(chan struct{})
	var count atomic.Int64
	var writers sync.WaitGroup
	for _, r := range l.tables {
		for range logWriters {
			client := openClient(t, server.URI, r.consent)
			seen, err := client.LoadTable(ctx, r.name)
			if err != nil {
				t.Fatal(err)
			}
			writers.Go(func() {
				r.write(ctx, seen, func() {
					if count.Add(1) == appends {
						close(enough)
					}
				})
			})
		}
	}
	select {
	case <-enough:
		<-time.After(delay)
	case <-server.Ended():
		t.Errorf("the server ended by itself: %s\n%s", server.State(), server.Stderr())
	case <-ctx.Done():
		t.Errorf("only %d appends in %s", count.Load(), roundTimeout)
	}
	server.Kill()
	writers.Wait()
	for _, r := range l.tables {
		for _, problem := range r.problems {
			t.Errorf("%s: %v", r.name, problem)
		}
	}
}

// write appends rows to its client's view of the table until the server is dead.
func (r *rowTable) write(ctx context.Context, seen *table.Table, acknowledged func()) {
	for {
		r.mu.Lock()
		number := r.next
		r.next++
		r.mu.Unlock()

		after, err := appendRow(ctx, seen, number)
		r.mu.Lock()
		switch {
		case err == nil:
			r.acknowledged[number] = true
		case errors.Is(err, table.ErrCommitFailed):
			r.problems = append(r.problems, fmt.Errorf("row %d was refused: %w", number, err))
		default:
			r.unknown[number] = true
		}
		r.mu.Unlock()
		if err != nil {
			return
		}
		acknowledged()
		seen = after
	}
}

// judge compares the tables with the answers that the writers got.
func (l *rowLog) judge(t *testing.T, uri string, seen *appendTally) {
	t.Helper()
	client := openClient(t, uri, nil)
	for _, r := range l.tables {
		found, err := client.LoadTable(t.Context(), r.name)
		if err != nil {
			t.Fatal(err)
		}
		there := rowsOf(t, found)
		for number, times := range there {
			if times != 1 || !r.acknowledged[number] && !r.unknown[number] {
				t.Errorf("%s has row %d %d times", r.name, number, times)
			}
		}
		for number := range r.acknowledged {
			if there[number] == 0 {
				t.Errorf("%s has lost row %d, which was acknowledged", r.name, number)
			}
		}
		for number := range r.unknown { // decided now, for good
			if there[number] == 1 {
				r.acknowledged[number] = true
				seen.happened++
			} else {
				seen.vanished++
			}
		}
		clear(r.unknown)
		wantOneLine(t, found, len(there), seen)
		seen.acknowledged += len(r.acknowledged)
	}
}

// wantOneLine checks that each row has a snapshot, and that the snapshots form one line in the
// order of the log.
func wantOneLine(t *testing.T, found *table.Table, rows int, seen *appendTally) {
	t.Helper()
	metadata := found.Metadata()
	line := 0
	for at := metadata.CurrentSnapshot(); at != nil; line++ {
		if _, ok := at.Summary.Properties["moorage.rebased"]; ok {
			seen.moved++
		}
		if at.ParentSnapshotID == nil {
			at = nil
			continue
		}
		parent := metadata.SnapshotByID(*at.ParentSnapshotID)
		if parent == nil {
			t.Fatalf("%s: snapshot %d stands on %d, which is gone", found.Identifier(), at.SnapshotID, *at.ParentSnapshotID)
		}
		at = parent
	}
	log := 0
	for range metadata.SnapshotLogs() {
		log++
	}
	if line != rows || log != rows || len(metadata.Snapshots()) != rows {
		t.Errorf("%s: %d rows, %d snapshots in one line, %d in the log, %d in all",
			found.Identifier(), rows, line, log, len(metadata.Snapshots()))
	}
}

var rowSchema = iceberg.NewSchema(0, iceberg.NestedField{ID: 1, Name: "number", Type: iceberg.PrimitiveTypes.Int64})

// openClient returns an iceberg-go client for the server at uri. more are additional properties.
func openClient(t *testing.T, uri string, more iceberg.Properties) icebergcatalog.Catalog {
	t.Helper()
	properties := iceberg.Properties{"type": "rest", "uri": uri}
	maps.Copy(properties, more)
	client, err := icebergcatalog.Load(t.Context(), "moorage", properties)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if closer, ok := client.(icebergcatalog.Closer); ok {
			_ = closer.Close()
		}
	})
	return client
}

// appendRow appends a row to its client's view of a table.
func appendRow(ctx context.Context, seen *table.Table, number int64) (*table.Table, error) {
	schema := arrow.NewSchema([]arrow.Field{{Name: "number", Type: arrow.PrimitiveTypes.Int64, Nullable: true}}, nil)
	builder := array.NewRecordBuilder(memory.DefaultAllocator, schema)
	defer builder.Release()
	builder.Field(0).(*array.Int64Builder).Append(number)
	batch := builder.NewRecordBatch()
	defer batch.Release()
	reader, err := array.NewRecordReader(schema, []arrow.RecordBatch{batch})
	if err != nil {
		return nil, err
	}
	defer reader.Release()
	return seen.Append(ctx, reader, nil)
}

// rowsOf reads a table from its files, and returns the number of occurrences of each row.
func rowsOf(t *testing.T, found *table.Table) map[int64]int {
	t.Helper()
	rows := map[int64]int{}
	if found.CurrentSnapshot() == nil {
		return rows
	}
	read, err := found.Scan().ToArrowTable(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer read.Release()
	reader := array.NewTableReader(read, 0)
	defer reader.Release()
	for reader.Next() {
		numbers := reader.RecordBatch().Column(0).(*array.Int64)
		for i := range numbers.Len() {
			rows[numbers.Value(i)]++
		}
	}
	return rows
}

// appendTally counts the cases that occurred at kills.
type appendTally struct {
	kills        int
	acknowledged int // rows, counted again at each check
	moved        int // rebased snapshots, counted likewise
	happened     int // appends that happened without an answer
	vanished     int // appends without an answer that did not happen
}

// String returns a summary of the counts.
func (a *appendTally) String() string {
	return fmt.Sprintf("%d kills; at all looks together %d rows and %d moved snapshots; %d appends happened unanswered, %d did not",
		a.kills, a.acknowledged, a.moved, a.happened, a.vanished)
}
