package rows_test

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"github.com/RoaringBitmap/roaring/v2/roaring64"
	oracle "github.com/parquet-go/parquet-go"

	"moorage"
	"moorage/catalog/rows"
)

// serialized returns a bitmap of numbers.
func serialized(t testing.TB, numbers ...uint64) []byte {
	t.Helper()
	raw, err := roaring64.BitmapOf(numbers...).ToBytes()
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// writeRows returns a file with rows of a schema.
func writeRows(t testing.TB, schema *oracle.Schema, all []oracle.Row) []byte {
	t.Helper()
	var out bytes.Buffer
	w := oracle.NewWriter(&out, schema)
	_, err := w.WriteRows(all)
	if err == nil {
		err = w.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// tryTable reads a table with a data file, a position delete file and a deletion vector. Whatever
// bytes they have, the rows must be shown or refused.
func tryTable(t *testing.T, data, positions, vector []byte, count int64) {
	t.Helper()
	l := newLake(t, personFields+`,{"id":3,"name":"l","required":false,"type":{"type":"list","element-id":4,"element":"int","element-required":false}}`)
	file := l.put("a", data)
	other := l.put("b", data)
	l.manifest(false, 1, entry{status: 1, path: file, rows: count, size: int64(len(data))},
		entry{status: 1, path: other, rows: count, size: int64(len(data))})
	l.manifest(true, 2, entry{status: 1, content: 1, path: l.put("p", positions), rows: 2, size: int64(len(positions))})
	if len(vector) > 0 {
		l.manifest(true, 2, entry{
			status: 1, content: 1, path: l.put("v", vector), format: "PUFFIN", rows: 1, size: int64(len(vector)),
			referenced: other, length: int64(len(vector)),
		})
	}
	_, err := rows.New().Read(t.Context(), l.table(), rows.Request{Limit: 50})
	if err != nil && moorage.KindOf(err) != moorage.KindNotShown {
		t.Fatalf("%v", err)
	}
}

// sample is a row of the files that the test corrupts.
type sample struct {
	ID   int64   `parquet:"id,id(1)"`
	Name *string `parquet:"name,optional,id(2)"`
	List []int32 `parquet:"l,list,optional,id(3)"`
}

func samples(t testing.TB) (data, positions, vector []byte) {
	t.Helper()
	name := "name"
	data = parquetOf(t, sample{1, &name, []int32{1, 2}}, sample{2, nil, nil}, sample{3, &name, []int32{}})
	return data, parquetOf(t, deletes{location + "/1-a", 0}, deletes{"x", 1}), vectorOf(serialized(t, 1))
}

// Tables with corrupted files are shown or refused.
func TestSpoiledTables(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(7, 8))
	data, positions, vector := samples(t)
	for range 1000 {
		parts := [][]byte{bytes.Clone(data), bytes.Clone(positions), bytes.Clone(vector)}
		for range 1 + random.IntN(3) {
			part := parts[random.IntN(len(parts))]
			part[random.IntN(len(part))] = byte(random.Uint32())
		}
		tryTable(t, parts[0], parts[1], parts[2], 3)
	}
}

// FuzzRows reads tables whose data file, position delete file and deletion vector have arbitrary
// bytes.
func FuzzRows(f *testing.F) {
	data, positions, vector := samples(f)
	f.Add(data, positions, vector, int64(3))
	f.Add(data, positions, []byte{}, int64(2))
	f.Fuzz(func(t *testing.T, data, positions, vector []byte, count int64) {
		if count < 0 {
			return
		}
		tryTable(t, data, positions, vector, count)
	})
}
