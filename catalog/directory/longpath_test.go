package directory_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"moorage"
	"moorage/catalog"
	"moorage/registry"
	"moorage/testkit/catalogkit"
)

// valueBytes counts the bytes of the values that are read.
type valueBytes struct {
	registry.Store
	read atomic.Int64
}

func (s *valueBytes) Get(ctx context.Context, keys ...registry.Key) ([]registry.Record, error) {
	records, err := s.Store.Get(ctx, keys...)
	for _, record := range records {
		s.read.Add(int64(len(record.Value)))
	}
	return records, err
}

// TestLongPaths reads objects below namespaces with long properties. After this node has cached the
// path, no request reads the properties of namespaces that are not in its answer.
func TestLongPaths(t *testing.T) {
	t.Parallel()
	const levels, each = 32, 64 << 10
	var store *valueBytes
	f := catalogkit.New(t, func(c *catalog.Config) {
		store = &valueBytes{Store: c.Store}
		c.Store = store
	})
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	var deep moorage.Namespace
	for n := range levels {
		deep = append(deep, fmt.Sprint("n", n))
		_, err := f.CreateNamespace(f.Ctx, catalogkit.Warehouse, deep, map[string]string{"padding": strings.Repeat("x", each)})
		must(err)
	}
	table := ident("t")
	table.Namespace = deep
	_, err := f.CreateTable(f.Ctx, table, catalog.CreateTableRequest{Schema: []byte(catalogkit.Schema)})
	must(err)
	for _, step := range []struct {
		name string
		max  int64 // maximum number of bytes of values
		do   func() error
	}{
		{"load a table", each, func() error {
			_, err := f.LoadTable(f.Ctx, table)
			return err
		}},
		{"ask for a table that is missing", each, func() error {
			missing := table
			missing.Name = "missing"
			_, err := f.LoadTable(f.Ctx, missing)
			return wanted(err, moorage.KindNoSuchTable)
		}},
		{"ask for a namespace that is missing", each, func() error {
			_, err := f.LoadNamespace(f.Ctx, catalogkit.Warehouse, append(deep[:levels-1:levels-1], "missing"))
			return wanted(err, moorage.KindNoSuchNamespace)
		}},
		{"load the properties", 2 * each, func() error {
			properties, err := f.LoadNamespace(f.Ctx, catalogkit.Warehouse, deep)
			if err == nil && len(properties["padding"]) != each {
				t.Errorf("the properties are %d", len(properties))
			}
			return err
		}},
		{"load a table again", each, func() error {
			_, err := f.LoadTable(f.Ctx, table)
			return err
		}},
	} {
		store.read.Store(0)
		must(step.do())
		if read := store.read.Load(); read > step.max {
			t.Errorf("%s: %d KiB of values were read, %d at most are expected", step.name, read>>10, step.max>>10)
		}
	}
	// After a namespace has changed, its new properties are read.
	change := catalog.PropertiesChange{Updates: map[string]string{"padding": "short"}}
	_, err = f.UpdateNamespaceProperties(f.Ctx, catalogkit.Warehouse, deep[:3], change)
	must(err)
	properties, err := f.LoadNamespace(f.Ctx, catalogkit.Warehouse, deep[:3])
	must(err)
	if properties["padding"] != "short" {
		t.Errorf("the changed properties are %v", properties)
	}
	_, err = f.LoadTable(f.Ctx, table)
	must(err)
}

// wanted returns nil if err is of a kind.
func wanted(err error, kind moorage.Kind) error {
	if moorage.KindOf(err) == kind {
		return nil
	}
	return fmt.Errorf("%v, want %v", err, kind)
}
