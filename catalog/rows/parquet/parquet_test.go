package parquet_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"testing"

	oracle "github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/compress"
	"github.com/parquet-go/parquet-go/encoding"

	"moorage/catalog/rows/parquet"
)

// open returns the file in content.
func open(content []byte) (*parquet.File, error) {
	return parquet.Open(input(content, 64<<20))
}

// input returns the file in content. Its pages may take memory bytes.
func input(content []byte, memory int64) parquet.Input {
	return parquet.Input{
		Size: int64(len(content)), Memory: parquet.NewMemory(memory), Alive: func() error { return nil },
		Read: func(ranges []parquet.Range) (parts [][]byte, err error) {
			for _, r := range ranges {
				if r.Offset < 0 || r.Length < 0 || r.Offset+r.Length > int64(len(content)) {
					return nil, fmt.Errorf("a range of %d bytes at %d in %d", r.Length, r.Offset, len(content))
				}
				parts = append(parts, bytes.Clone(content[r.Offset:r.Offset+r.Length]))
			}
			return parts, nil
		},
	}
}

// entry is an entry of a column, in the form used by the tests.
type entry struct {
	repetition, definition int
	value                  string
}

// readAll returns all entries of all columns.
func readAll(f *parquet.File) (columns [][]entry, err error) {
	var all []*parquet.Column
	var visit func(n *parquet.Node)
	visit = func(n *parquet.Node) {
		if n.IsColumn() {
			all = append(all, f.Column(n))
		}
		for _, child := range n.Children {
			visit(child)
		}
	}
	visit(f.Root)
	columns = make([][]entry, len(all))
	for group := range f.Groups() {
		if _, err := f.Enter(group); err != nil {
			return nil, err
		}
		for i, c := range all {
			for {
				repetition, definition, err := c.Peek()
				if errors.Is(err, io.EOF) {
					break
				}
				if err != nil {
					return nil, err
				}
				value, err := c.Next()
				if err != nil {
					return nil, err
				}
				e := entry{repetition, definition, ""}
				if definition == c.Node.Definition {
					e.value = textOf(c.Node, value)
				}
				columns[i] = append(columns[i], e)
			}
		}
	}
	return columns, f.Leave()
}

func textOf(n *parquet.Node, v parquet.Value) string {
	switch n.Type {
	case parquet.Boolean, parquet.Int32, parquet.Int64:
		return fmt.Sprint(v.Int)
	case parquet.Float, parquet.Double:
		return fmt.Sprint(math.Float64bits(v.Float))
	}
	return fmt.Sprintf("%x", v.Bytes)
}

// kind is a type of columns: its form in the oracle, and a function that draws a value in the forms
// of the oracle and of the tests.
type kind struct {
	name      string
	node      oracle.Node
	draw      func(r *rand.Rand) (oracle.Value, string)
	encodings []encoding.Encoding
}

func kinds() []kind {
	small := func(r *rand.Rand) int64 { // often equal, and sometimes extreme
		switch r.IntN(10) {
		case 0:
			return math.MinInt64
		case 1:
			return math.MaxInt64
		case 2:
			return int64(r.Uint64())
		}
		return r.Int64N(20) - 10
	}
	text := func(r *rand.Rand) []byte {
		return bytes.Repeat([]byte("prefix")[:r.IntN(7)], r.IntN(4))
	}
	integers := []encoding.Encoding{&oracle.Plain, &oracle.RLEDictionary, &oracle.DeltaBinaryPacked}
	floats := []encoding.Encoding{&oracle.Plain, &oracle.RLEDictionary, &oracle.ByteStreamSplit}
	return []kind{
		{"boolean", oracle.Leaf(oracle.BooleanType), func(r *rand.Rand) (oracle.Value, string) {
			b := r.IntN(2)
			return oracle.BooleanValue(b == 1), fmt.Sprint(b)
		}, []encoding.Encoding{&oracle.Plain, &oracle.RLE}},
		{"int32", oracle.Leaf(oracle.Int32Type), func(r *rand.Rand) (oracle.Value, string) {
			n := int32(small(r))
			return oracle.Int32Value(n), fmt.Sprint(n)
		}, integers},
		{"int64", oracle.Leaf(oracle.Int64Type), func(r *rand.Rand) (oracle.Value, string) {
			n := small(r)
			return oracle.Int64Value(n), fmt.Sprint(n)
		}, integers},
		{"float", oracle.Leaf(oracle.FloatType), func(r *rand.Rand) (oracle.Value, string) {
			x := float32(r.IntN(5)) / 3
			return oracle.FloatValue(x), fmt.Sprint(math.Float64bits(float64(x)))
		}, floats},
		{"double", oracle.Leaf(oracle.DoubleType), func(r *rand.Rand) (oracle.Value, string) {
			x := float64(r.IntN(5)) / 3
			return oracle.DoubleValue(x), fmt.Sprint(math.Float64bits(x))
		}, floats},
		{"bytes", oracle.Leaf(oracle.ByteArrayType), func(r *rand.Rand) (oracle.Value, string) {
			b := text(r)
			return oracle.ByteArrayValue(b), fmt.Sprintf("%x", b)
		}, []encoding.Encoding{&oracle.Plain, &oracle.RLEDictionary, &oracle.DeltaLengthByteArray, &oracle.DeltaByteArray}},
		{"fixed", oracle.Leaf(oracle.FixedLenByteArrayType(5)), func(r *rand.Rand) (oracle.Value, string) {
			b := []byte{'a', 'b', byte(r.IntN(3)), byte(r.IntN(3)), 'c'}
			return oracle.FixedLenByteArrayValue(b), fmt.Sprintf("%x", b)
		}, []encoding.Encoding{&oracle.Plain, &oracle.RLEDictionary, &oracle.DeltaByteArray}},
	}
}

// shape describes the levels of a column in a random file.
type shape struct {
	name string
	node func(oracle.Node) oracle.Node
	// row draws the levels of the entries of a row.
	row                    func(r *rand.Rand) [][2]int
	repetition, definition int
}

func shapes() []shape {
	level := func(r *rand.Rand, most int) int { return most - r.IntN(most+1)*r.IntN(2) }
	return []shape{
		{"required", func(n oracle.Node) oracle.Node { return n }, func(*rand.Rand) [][2]int { return [][2]int{{0, 0}} }, 0, 0},
		{"optional", oracle.Optional, func(r *rand.Rand) [][2]int { return [][2]int{{0, level(r, 1)}} }, 0, 1},
		{"list", func(n oracle.Node) oracle.Node { return oracle.Optional(oracle.List(oracle.Optional(n))) },
			func(r *rand.Rand) (entries [][2]int) {
				if first := level(r, 3); first < 2 {
					return [][2]int{{0, first}}
				}
				for i := range 1 + r.IntN(4) {
					entries = append(entries, [2]int{min(i, 1), 2 + r.IntN(2)})
				}
				return entries
			}, 1, 3},
	}
}

// Each encoding of each type, in each version of pages and packed by each codec, is read back as
// the oracle wrote it.
func TestReadsWhatTheOracleWrites(t *testing.T) {
	t.Parallel()
	codecs := []compress.Codec{&oracle.Uncompressed, &oracle.Snappy, &oracle.Gzip, &oracle.Zstd, &oracle.Lz4Raw}
	for _, k := range kinds() {
		for _, e := range k.encodings {
			for _, s := range shapes() {
				t.Run(fmt.Sprint(k.name, "/", e, "/", s.name), func(t *testing.T) {
					t.Parallel()
					for i, codec := range codecs {
						for version := 1; version <= 2; version++ {
							roundTrip(t, k, e, s, codec, version, uint64(i))
						}
					}
				})
			}
		}
	}
}

func roundTrip(t *testing.T, k kind, e encoding.Encoding, s shape, codec compress.Codec, version int, seed uint64) {
	t.Helper()
	random := rand.New(rand.NewPCG(seed, uint64(version)))
	leaf := oracle.Compressed(oracle.Encoded(k.node, e), codec)
	schema := oracle.NewSchema("table", oracle.Group{"v": oracle.FieldID(s.node(leaf), 7)})
	var out bytes.Buffer
	w := oracle.NewWriter(&out, schema, oracle.DataPageVersion(version), oracle.PageBufferSize(300), oracle.DataPageStatistics(true))
	var want []entry
	for range 3 {
		for range random.IntN(200) {
			var row oracle.Row
			for _, levels := range s.row(random) {
				v, text := k.draw(random)
				if levels[1] < s.definition {
					v, text = oracle.NullValue(), ""
				}
				row = append(row, v.Level(levels[0], levels[1], 0))
				want = append(want, entry{levels[0], levels[1], text})
			}
			if _, err := w.WriteRows([]oracle.Row{row}); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.Flush(); err != nil { // ends a row group
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	f, err := open(out.Bytes())
	if err != nil {
		t.Fatalf("version %d, %s: %v", version, codec, err)
	}
	defer f.Close()
	got, err := readAll(f)
	if err != nil {
		t.Fatalf("version %d, %s: %v", version, codec, err)
	}
	if len(got) != 1 || len(got[0]) != len(want) || f.Root.Children[0].ID != 7 || !f.HasIDs {
		t.Fatalf("version %d, %s: %d columns of %d entries, want %d", version, codec, len(got), len(got[0]), len(want))
	}
	for i := range want {
		if got[0][i] != want[i] {
			t.Fatalf("version %d, %s: entry %d is %v, want %v", version, codec, i, got[0][i], want[i])
		}
	}
}

// A file that is truncated, or has a changed byte, is read or refused. Reading never panics, and
// every error is one of the package's errors.
func TestDamagedFiles(t *testing.T) {
	t.Parallel()
	content := sampleFile(t)
	random := rand.New(rand.NewPCG(1, 2))
	for i := range 3000 {
		spoiled := bytes.Clone(content)
		switch i % 3 {
		case 0:
			spoiled = spoiled[:random.IntN(len(spoiled))]
		default:
			for range 1 + random.IntN(3) {
				spoiled[random.IntN(len(spoiled))] = byte(random.Uint32())
			}
		}
		tryReading(t, spoiled)
	}
}

// tryReading reads a file. Only errors of the package are allowed.
func tryReading(t *testing.T, content []byte) {
	t.Helper()
	f, err := open(content)
	if err == nil {
		defer f.Close()
		_, err = readAll(f)
	}
	if err != nil && !errors.Is(err, parquet.ErrDamaged) && !errors.Is(err, parquet.ErrTooLarge) && !errors.Is(err, parquet.ErrUnsupported) {
		t.Fatalf("%v", err)
	}
}

// sampleFile returns a file with several types, encodings and row groups.
func sampleFile(t testing.TB) []byte {
	t.Helper()
	group, columns := oracle.Group{}, 0
	for _, k := range kinds() {
		for i, e := range k.encodings {
			group[fmt.Sprint(k.name, i)] = oracle.FieldID(oracle.Compressed(oracle.Encoded(oracle.Optional(k.node), e), &oracle.Snappy), columns)
			columns++
		}
	}
	schema := oracle.NewSchema("table", group)
	random := rand.New(rand.NewPCG(3, 4))
	var out bytes.Buffer
	w := oracle.NewWriter(&out, schema, oracle.DataPageVersion(2))
	for i := range 100 {
		row := make(oracle.Row, 0, columns)
		for at, leaf := range schema.Columns() {
			v := oracle.NullValue()
			for _, k := range kinds() {
				if random.IntN(4) > 0 && leaf[0][:len(leaf[0])-1] == k.name {
					drawn, _ := k.draw(random)
					v = drawn.Level(0, 1, at)
				}
			}
			if v.IsNull() {
				v = v.Level(0, 0, at)
			}
			row = append(row, v)
		}
		if _, err := w.WriteRows([]oracle.Row{row}); err != nil {
			t.Fatal(err)
		}
		if i == 50 {
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

func FuzzRead(f *testing.F) {
	f.Add(sampleFile(f))
	f.Add([]byte("PAR1PAR1"))
	f.Fuzz(func(t *testing.T, content []byte) { tryReading(t, content) })
}
