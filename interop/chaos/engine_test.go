package chaos

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/iceberg-go"
	icebergcatalog "github.com/apache/iceberg-go/catalog"
	_ "github.com/apache/iceberg-go/catalog/rest" // registers the catalog type "rest"
	_ "github.com/apache/iceberg-go/io"           // registers file://
	"github.com/apache/iceberg-go/table"
)

// action is an operation of an engine on a table.
type action string

// The actions. A change without a ref is a change to main.
const (
	appends    action = "append"     // adds rows
	deletes    action = "delete"     // removes the writer's rows below a number
	merges     action = "merge"      // adds rows and removes others, at once
	upserts    action = "upsert"     // adds rows; some of them may already exist
	overwrites action = "overwrite"  // replaces all rows
	picks      action = "cherrypick" // stages rows, and cherry-picks their snapshot
	compacts   action = "compact"    // rewrites files and keeps the rows
	reads      action = "read"       // returns the rows of a ref
)

// request is a request to an engine.
type request struct {
	Action  action  `json:"action"`
	Table   string  `json:"table"`
	Ref     string  `json:"ref,omitempty"` // empty: main
	Writer  int64   `json:"writer"`
	Numbers []int64 `json:"numbers,omitempty"` // of rows
	Gone    []int64 `json:"gone,omitempty"`    // rows that a merge removes
	Below   int64   `json:"below,omitempty"`
	Node    int     `json:"node"`
}

// engine writes and reads tables. It is safe for concurrent use.
type engine interface {
	name() string
	// does returns the actions that the engine supports, and whether it can write to branches.
	does() (actions []action, branches bool)
	// do executes a request. After an error, the change may have happened, or may still happen
	// until the ref's next change.
	do(ctx context.Context, r request) ([]row, error)
}

// schemaOf returns the schema of the tables. If keyed, it has identifier fields, so rows can be
// upserted.
func schemaOf(keyed bool) *iceberg.Schema {
	columns := []iceberg.NestedField{
		{ID: 1, Name: "writer", Type: iceberg.PrimitiveTypes.Int64, Required: keyed},
		{ID: 2, Name: "number", Type: iceberg.PrimitiveTypes.Int64, Required: keyed},
	}
	if keyed {
		return iceberg.NewSchemaWithIdentifiers(0, []int{1, 2}, columns...)
	}
	return iceberg.NewSchema(0, columns...)
}

// native runs iceberg-go in this process.
type native struct{ catalogs []icebergcatalog.Catalog } // one for each node

func newNative(ctx context.Context, uris []string) (*native, error) {
	n := &native{}
	for _, uri := range uris {
		client, err := icebergcatalog.Load(ctx, "moorage", iceberg.Properties{"type": "rest", "uri": uri})
		if err != nil {
			return nil, err
		}
		n.catalogs = append(n.catalogs, client)
	}
	return n, nil
}

func (n *native) name() string { return "iceberg-go" }

func (n *native) does() ([]action, bool) { return []action{appends, deletes, overwrites}, true }

func (n *native) do(ctx context.Context, r request) (rows []row, err error) {
	loaded, err := n.catalogs[r.Node].LoadTable(ctx, table.Identifier{namespace, r.Table})
	if err != nil {
		return nil, err
	}
	if r.Action == reads {
		return readRows(ctx, loaded, r.Ref)
	}
	branch := r.Ref
	if branch == "" {
		branch = table.MainBranch
	}
	change := loaded.NewTransactionOnBranch(branch)
	switch r.Action {
	case appends, overwrites:
		reader, err := recordsOf(r)
		if err != nil {
			return nil, err
		}
		defer reader.Release()
		if r.Action == appends {
			err = change.Append(ctx, reader, nil)
		} else {
			err = change.Overwrite(ctx, reader, nil)
		}
		if err != nil {
			return nil, err
		}
	case deletes:
		mine := iceberg.EqualTo(iceberg.Reference("writer"), r.Writer)
		if err := change.Delete(ctx, iceberg.NewAnd(mine, iceberg.LessThan(iceberg.Reference("number"), r.Below)), nil); err != nil {
			return nil, err
		}
	default:
		return nil, fmt.Errorf("iceberg-go does not know %q", r.Action)
	}
	_, err = change.Commit(ctx)
	return nil, err
}

// recordsOf returns the rows of a request.
func recordsOf(r request) (array.RecordReader, error) {
	shape := arrow.NewSchema([]arrow.Field{
		{Name: "writer", Type: arrow.PrimitiveTypes.Int64, Nullable: true},
		{Name: "number", Type: arrow.PrimitiveTypes.Int64, Nullable: true},
	}, nil)
	builder := array.NewRecordBuilder(memory.DefaultAllocator, shape)
	defer builder.Release()
	for _, number := range r.Numbers {
		builder.Field(0).(*array.Int64Builder).Append(r.Writer)
		builder.Field(1).(*array.Int64Builder).Append(number)
	}
	batch := builder.NewRecordBatch()
	defer batch.Release()
	return array.NewRecordReader(shape, []arrow.RecordBatch{batch})
}

// errNoRef reports that a ref does not exist.
var errNoRef = errors.New("there is no such ref")

// readRows reads the rows of a ref from their files.
func readRows(ctx context.Context, loaded *table.Table, ref string) ([]row, error) {
	if ref == "" {
		ref = table.MainBranch
	}
	snapshot := loaded.SnapshotByName(ref)
	if snapshot == nil {
		if ref == table.MainBranch {
			return nil, nil // nothing written yet
		}
		return nil, fmt.Errorf("%w: %s", errNoRef, ref)
	}
	found, err := loaded.Scan(table.WithSnapshotID(snapshot.SnapshotID)).ToArrowTable(ctx)
	if err != nil {
		return nil, err
	}
	defer found.Release()
	reader := array.NewTableReader(found, 0)
	defer reader.Release()
	var rows []row
	for reader.Next() {
		batch := reader.RecordBatch()
		writers, numbers := batch.Column(0).(*array.Int64), batch.Column(1).(*array.Int64)
		for i := range int(batch.NumRows()) {
			rows = append(rows, row{writers.Value(i), numbers.Value(i)})
		}
	}
	return rows, nil
}

// can reports whether an engine supports an action.
func can(e engine, a action) bool {
	actions, _ := e.does()
	return slices.Contains(actions, a)
}
