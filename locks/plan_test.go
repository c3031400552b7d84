package locks_test

import (
	"fmt"
	"slices"
	"testing"

	"moorage"
	"moorage/locks"
	"moorage/testkit/locktest"
)

func TestPlan(t *testing.T) {
	t.Parallel()
	warehouse := locks.Warehouse("wh")
	ns := locks.NamespacePath("wh", moorage.Namespace{"a", "b"})
	pointer := locks.Warehouse("wh").Pointer("1")
	type paths = []locks.Path
	for _, test := range []struct {
		name    string
		request locks.Request
		want    []string
	}{
		{"nothing", locks.Request{}, nil},
		{"write", locks.Request{Writes: paths{ns.Shard(3)}}, []string{"WA /wh", "WA /wh/a", "WA /wh/a/b", "W /wh/a/b/#3"}},
		{"read", locks.Request{Reads: paths{ns}}, []string{"RA /wh", "RA /wh/a", "R /wh/a/b"}},
		{"rename", locks.Request{Writes: paths{ns.Shard(10), pointer, ns.Shard(2)}},
			[]string{"WA /wh", "W /wh/@1", "WA /wh/a", "WA /wh/a/b", "W /wh/a/b/#2", "W /wh/a/b/#a"}},
		{"duplicates", locks.Request{Reads: paths{pointer, pointer}, Writes: nil}, []string{"RA /wh", "R /wh/@1"}},
		{"in both lists", locks.Request{Reads: paths{pointer}, Writes: paths{pointer}}, []string{"WA /wh", "W /wh/@1"}},
		{"ancestor modes of a read and a write", locks.Request{Reads: paths{ns.Shard(1)}, Writes: paths{pointer}},
			[]string{"WA /wh", "W /wh/@1", "RA /wh/a", "RA /wh/a/b", "R /wh/a/b/#1"}},
		{"write below a write", locks.Request{Writes: paths{ns.Shard(1), ns.Parent()}}, []string{"WA /wh", "W /wh/a"}},
		{"read below a write", locks.Request{Reads: paths{ns.Shard(1)}, Writes: paths{ns}}, []string{"WA /wh", "WA /wh/a", "W /wh/a/b"}},
		{"read below a read", locks.Request{Reads: paths{ns.Shard(1), ns.Parent()}}, []string{"RA /wh", "R /wh/a"}},
		{"write below a read: R and WA give W", locks.Request{Reads: paths{ns.Parent()}, Writes: paths{ns.Shard(1)}}, []string{"WA /wh", "W /wh/a"}},
		{"write of a sibling", locks.Request{Reads: paths{warehouse.Namespace("a")}, Writes: paths{warehouse.Namespace("a!")}},
			[]string{"WA /wh", "R /wh/a", "W /wh/a!"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			var got []string
			for _, grant := range locks.Plan(test.request) {
				got = append(got, grant.String())
			}
			if !slices.Equal(got, test.want) {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

// The union of two modes is the weakest mode that includes both. It excludes every mode that either
// of them excludes.
func TestModeUnion(t *testing.T) {
	t.Parallel()
	for _, a := range locktest.Modes() {
		for _, b := range locktest.Modes() {
			union := a | b
			if !slices.Contains(locktest.Modes(), union) {
				t.Fatalf("%s | %s is no mode: %s", a, b, union)
			}
			for _, other := range locktest.Modes() {
				if union.Compatible(other) && !(a.Compatible(other) && b.Compatible(other)) {
					t.Errorf("%s | %s = %s is compatible with %s, unlike one of the two", a, b, union, other)
				}
			}
			if a.Compatible(b) != b.Compatible(a) {
				t.Errorf("%s and %s: compatibility is not symmetric", a, b)
			}
		}
	}
}

func TestNamesForLogs(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		value fmt.Stringer
		want  string
	}{
		{locks.RA, "RA"}, {locks.R, "R"}, {locks.WA, "WA"}, {locks.W, "W"}, {locks.Mode(0), "mode 0"},
		{locks.LevelWarehouse, "warehouse"}, {locks.LevelNamespace, "namespace"}, {locks.LevelShard, "shard"},
		{locks.LevelPointer, "pointer"}, {locks.Level(0), "level 0"},
	} {
		if got := test.value.String(); got != test.want {
			t.Errorf("got %q, want %q", got, test.want)
		}
	}
}
