package rows_test

import (
	"bytes"
	"context"
	"io"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"

	oracle "github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/format"

	"moorage"
	"moorage/catalog/rows"
	"moorage/storage"
)

// groupsOf returns a Parquet file with perGroup rows in each row group.
func groupsOf(t testing.TB, all []person, perGroup int) []byte {
	t.Helper()
	var out bytes.Buffer
	w := oracle.NewGenericWriter[person](&out)
	for i, p := range all {
		if _, err := w.Write([]person{p}); err != nil {
			t.Fatal(err)
		}
		if (i+1)%perGroup == 0 {
			if err := w.Flush(); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// onlyFirst adds a data file of count rows and a vector that deletes all but the first.
func (l *lake) onlyFirst(content []byte, count int) {
	l.t.Helper()
	var numbers []uint64
	for n := range uint64(count - 1) {
		numbers = append(numbers, n+1)
	}
	vector := vectorOf(serialized(l.t, numbers...))
	l.manifest(true, 5, entry{
		status: 1, content: 1, path: l.put("v", vector), format: "PUFFIN", rows: int64(count - 1), size: 10,
		referenced: l.data(1, content, count), length: int64(len(vector)),
	})
}

// watchedStore counts requests. Requests for one of the files block until their context ends.
type watchedStore struct {
	storage.Store
	requests *atomic.Int64
	slow     string
}

func (s watchedStore) Open(ctx context.Context, file string) (io.ReadCloser, storage.Info, error) {
	s.requests.Add(1)
	if file == s.slow {
		<-ctx.Done()
		return nil, storage.Info{}, ctx.Err()
	}
	return s.Store.Open(ctx, file)
}

func (s watchedStore) ReadRange(ctx context.Context, file string, offset, length int64) ([]byte, error) {
	s.requests.Add(1)
	if file == s.slow {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return s.Store.ReadRange(ctx, file, offset, length)
}

// wantStopped fails the test unless reading the table returns the rows in want, and Stopped
// contains words.
func wantStopped(t *testing.T, table rows.Table, want, words string) {
	t.Helper()
	result, err := rows.New().Read(t.Context(), table, rows.Request{Limit: rows.RowsMax})
	if got := joined(result.Rows); err != nil || !strings.HasPrefix(got, want) || len(result.Rows) != 1 ||
		result.IsComplete || !strings.Contains(result.Stopped, words) {
		t.Errorf("got %.100s (complete %t, stopped %q), %v; want %s, stopped: %s", got, result.IsComplete, result.Stopped, err, want, words)
	}
}

// Reading ends after RequestsMax requests, and returns the rows read so far.
func TestRequests(t *testing.T) {
	t.Parallel()
	l := newLake(t, personFields)
	l.onlyFirst(groupsOf(t, people(0, 600), 1), 600)
	table, requests := l.table(), &atomic.Int64{}
	table.Files = watchedStore{Store: l.files, requests: requests}
	wantStopped(t, table, `[0,"n0"]`, "500 requests were sent")
	if got := requests.Load(); got != rows.RequestsMax {
		t.Errorf("%d requests, want %d", got, rows.RequestsMax)
	}
}

// Reading ends after BytesMax bytes, and returns the rows read so far.
func TestBytes(t *testing.T) {
	t.Parallel()
	l := newLake(t, personFields)
	long, all := strings.Repeat("x", 1<<20), make([]person, 36)
	for i := range all {
		all[i] = person{int64(i), &long}
	}
	content := withFooter(t, groupsOf(t, all, 6), func(meta *format.FileMetaData) {
		for _, group := range meta.RowGroups {
			group.Columns[1].MetaData.Statistics = format.Statistics{} // they contain the long values
		}
	})
	l.onlyFirst(content, len(all))
	wantStopped(t, l.table(), `[0,"xx`, "32 MiB were read")
}

// If the budget of bytes ends before the rows of a file, the rows of earlier files are shown. If
// there are none, the call is refused with the reason.
func TestBytesBetweenFiles(t *testing.T) {
	t.Parallel()
	for _, before := range []int64{0, 1} {
		l := newLake(t, personFields)
		for id := range before {
			l.data(1, parquetOf(t, people(id, id+1)...), 1)
		}
		file := l.data(1, parquetOf(t, people(5, 6)...), 1)
		l.manifest(true, 5, entry{
			status: 1, content: 1, path: l.put("v", nil), format: "PUFFIN", rows: 1, size: rows.BytesMax, referenced: file, length: rows.BytesMax,
		})
		if before == 0 {
			l.wantRefused("32 MiB were read before the first row")
			continue
		}
		wantStopped(t, l.table(), `[0,"n0"]`, "32 MiB were read")
	}
}

// Reading ends after TimeMax, and returns the rows read so far.
func TestTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := newLake(t, personFields)
		first := l.data(1, parquetOf(t, people(0, 1)...), 1)
		second := l.data(1, parquetOf(t, people(1, 2)...), 1)
		table := l.table()
		table.Files = watchedStore{l.files, &atomic.Int64{}, second}
		wantStopped(t, table, `[0,"n0"]`, "10s passed")
		for _, slow := range []string{first, table.Snapshot.ManifestList} {
			table.Files = watchedStore{l.files, &atomic.Int64{}, slow}
			_, err := rows.New().Read(t.Context(), table, rows.Request{Limit: 1})
			if moorage.KindOf(err) != moorage.KindNotShown || !strings.Contains(moorage.MessageOf(err), "more than 10s") {
				t.Errorf("%s is slow: %v", slow, err)
			}
		}
	})
}
