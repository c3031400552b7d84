package rows

import (
	"context"
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"moorage"
	"moorage/catalog/rows/parquet"
	"moorage/metadata"
	"moorage/metadata/schema"
)

// booleans returns count fields and nodes, with consecutive IDs beginning at first.
func booleans(first, count int) (fields []schema.Field, nodes []*parquet.Node) {
	for id := first; id < first+count; id++ {
		fields = append(fields, schema.Field{ID: id, Name: "f", Type: schema.Type{Name: "boolean", Text: "boolean"}})
		nodes = append(nodes, &parquet.Node{Name: "f", ID: id, HasID: true})
	}
	return fields, nodes
}

// bindAll binds fields to the columns of a file.
func bindAll(ctx context.Context, fields []schema.Field, nodes []*parquet.Node) (*rowCell, error) {
	s := &scan{table: Table{Scan: metadata.Scan{Identity: map[int][]int{0: nil}}}, fields: fields}
	return s.bind(ctx, &parquet.File{Root: &parquet.Node{Children: nodes}, HasIDs: true}, dataFile{})
}

// The time of binding grows with the sum of fields and columns, not with their product. Binding
// ends when its context ends.
func TestBindManyColumns(t *testing.T) {
	t.Parallel()
	const triesMax, factorMax = 5, 8
	fields, _ := booleans(100_000, 50_000)
	_, nodes := booleans(1, 65_000)
	bounded, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	took := func(fields []schema.Field, nodes []*parquet.Node) time.Duration {
		t.Helper()
		began := time.Now()
		row, err := bindAll(bounded, fields, nodes)
		if err != nil || len(row.cells) != len(fields) {
			t.Fatalf("%d fields and %d columns: %v", len(fields), len(nodes), err)
		}
		return time.Since(began)
	}
	// Other tests use this machine too, so the fastest times count.
	apart, together := time.Duration(math.MaxInt64), time.Duration(math.MaxInt64)
	for try := 0; try == 0 || try < triesMax && together > factorMax*apart; try++ {
		apart = min(apart, took(fields, nodes[:1])+took(fields[:1], nodes))
		together = min(together, took(fields, nodes))
	}
	t.Logf("many fields and many columns take %s apart and %s together", apart, together)
	if together > factorMax*apart {
		t.Errorf("many fields and many columns take %s apart and %s together", apart, together)
	}
	ended, end := context.WithCancel(t.Context())
	end()
	if _, err := bindAll(ended, fields, nodes); !errors.Is(err, context.Canceled) {
		t.Errorf("after the end of the context: %v", err)
	}
}

// A file is refused if it has too many columns, or columns that cannot be told apart.
func TestBindRefusals(t *testing.T) {
	t.Parallel()
	fields, nodes := booleans(1, leavesMax)
	if row, err := bindAll(t.Context(), fields, nodes); err != nil || len(row.columns) != leavesMax {
		t.Errorf("%d columns: %v", leavesMax, err)
	}
	_, twice := booleans(1, 1)
	for words, tt := range map[string]struct {
		fields int
		more   *parquet.Node
	}{
		"Name fewer columns": {leavesMax + 1, &parquet.Node{ID: leavesMax + 1, HasID: true}},
		"is there twice":     {1, twice[0]},
		"cannot be told":     {leavesMax + 1, &parquet.Node{}},
	} {
		fields, _ := booleans(1, tt.fields)
		_, nodes := booleans(1, leavesMax)
		_, err := bindAll(t.Context(), fields, append(nodes, tt.more))
		if moorage.KindOf(err) != moorage.KindNotShown || !strings.Contains(moorage.MessageOf(err), words) {
			t.Errorf("%s: %v", words, err)
		}
	}
}
