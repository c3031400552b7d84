package locks_test

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"

	"moorage"
	"moorage/locks"
)

func TestPathString(t *testing.T) {
	t.Parallel()
	ns := moorage.Namespace{"a", "b"}
	for _, test := range []struct {
		name  string
		path  locks.Path
		want  string
		level locks.Level
	}{
		{"zero", locks.Path{}, "", 0},
		{"warehouse", locks.Warehouse("wh"), "/wh", locks.LevelWarehouse},
		{"warehouse without a name", locks.Warehouse(""), "/", locks.LevelWarehouse},
		{"empty namespace is the warehouse", locks.NamespacePath("wh", nil), "/wh", locks.LevelWarehouse},
		{"namespace", locks.NamespacePath("wh", ns), "/wh/a/b", locks.LevelNamespace},
		{"namespace without a name", locks.Warehouse("wh").Namespace(""), "/wh/", locks.LevelNamespace},
		{"first shard", locks.NamespacePath("wh", ns).Shard(0), "/wh/a/b/#0", locks.LevelShard},
		{"last shard", locks.NamespacePath("wh", ns).Shard(15), "/wh/a/b/#f", locks.LevelShard},
		{"pointer", locks.Warehouse("wh").Pointer("0a1b"), "/wh/@0a1b", locks.LevelPointer},
		{"attempt", locks.Warehouse("wh").Attempt("0a1b"), "/wh/@!0a1b", locks.LevelPointer},
		{"namespace like a shard", locks.Warehouse("wh").Namespace("#3"), "/wh/%233", locks.LevelNamespace},
		{"namespace like a pointer", locks.Warehouse("wh").Namespace("@x"), "/wh/%40x", locks.LevelNamespace},
		{"namespace like two", locks.Warehouse("wh").Namespace("a/b"), "/wh/a%2Fb", locks.LevelNamespace},
		{"namespace like an escape", locks.Warehouse("wh").Namespace("a%2Fb"), "/wh/a%252Fb", locks.LevelNamespace},
		{"dots and plus", locks.Warehouse("wh").Namespace(".. +"), "/wh/..%20+", locks.LevelNamespace},
		{"not ASCII", locks.Warehouse("wh").Namespace("ü\n\x00\xff"), "/wh/%C3%BC%0A%00%FF", locks.LevelNamespace},
		{"warehouse like a shard", locks.Warehouse("#3"), "/%233", locks.LevelWarehouse},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			if got := test.path.String(); got != test.want {
				t.Errorf("String: got %q, want %q", got, test.want)
			}
			if got := test.path.Level(); got != test.level {
				t.Errorf("Level: got %s, want %s", got, test.level)
			}
			if got, want := test.path.IsZero(), test.want == ""; got != want {
				t.Errorf("IsZero: got %t, want %t", got, want)
			}
		})
	}
}

// Different names have different paths, whatever they contain, even across types of segments.
func TestPathUnambiguous(t *testing.T) {
	t.Parallel()
	names := []string{"", "a", "b", "/", "#", "@", "%", "#0", "@a", "a/b", "a/#0", "%2F", "%23", "\x00", "\x01", "é", "e\u0301", "A"}
	seen := make(map[locks.Path]string)
	add := func(path locks.Path, what string) {
		if other, ok := seen[path]; ok {
			t.Errorf("%s and %s are both %q", what, other, path)
		}
		seen[path] = what
	}
	for _, warehouse := range names {
		add(locks.Warehouse(warehouse), fmt.Sprintf("warehouse %q", warehouse))
		add(locks.Warehouse(warehouse).Shard(0), fmt.Sprintf("shard 0 of warehouse %q", warehouse))
		for _, name := range names {
			add(locks.Warehouse(warehouse).Pointer(name), fmt.Sprintf("pointer %q %q", warehouse, name))
			one := locks.Warehouse(warehouse).Namespace(name)
			add(one, fmt.Sprintf("namespace %q %q", warehouse, name))
			add(one.Shard(0), fmt.Sprintf("shard 0 of %q %q", warehouse, name))
			for _, inner := range names {
				add(one.Namespace(inner), fmt.Sprintf("namespace %q %q %q", warehouse, name, inner))
			}
		}
	}
}

func TestPathLineage(t *testing.T) {
	t.Parallel()
	shard := locks.NamespacePath("wh", moorage.Namespace{"a", "b"}).Shard(3)
	var ancestors []string
	for ancestor := range shard.Ancestors() {
		ancestors = append(ancestors, ancestor.String())
		if !ancestor.Contains(shard) || shard.Contains(ancestor) {
			t.Errorf("%s must contain %s and not the reverse", ancestor, shard)
		}
		if ancestor.Compare(shard) >= 0 {
			t.Errorf("%s must come before %s", ancestor, shard)
		}
	}
	if want := []string{"/wh", "/wh/a", "/wh/a/b"}; !slices.Equal(ancestors, want) {
		t.Errorf("Ancestors of %s: got %q, want %q", shard, ancestors, want)
	}
	if got := shard.Parent(); got != locks.NamespacePath("wh", moorage.Namespace{"a", "b"}) {
		t.Errorf("Parent of %s: got %s", shard, got)
	}
	if got := locks.Warehouse("wh").Parent(); !got.IsZero() {
		t.Errorf("Parent of a warehouse: got %s, want none", got)
	}
	if !shard.Contains(shard) {
		t.Error("a path must contain itself")
	}
	for _, sibling := range []locks.Path{locks.Warehouse("w"), locks.Warehouse("wh2"), locks.Warehouse("wh").Namespace("a").Shard(3)} {
		if sibling.Contains(shard) || shard.Contains(sibling) {
			t.Errorf("%s and %s are not of one lineage", sibling, shard)
		}
	}
}

func TestPathMistakesPanic(t *testing.T) {
	t.Parallel()
	warehouse := locks.Warehouse("wh")
	for name, mistake := range map[string]func(){
		"namespace below a shard":   func() { warehouse.Shard(1).Namespace("a") },
		"namespace below a pointer": func() { locks.Warehouse("wh").Pointer("x").Namespace("a") },
		"namespace below nothing":   func() { locks.Path{}.Namespace("a") },
		"shard of a shard":          func() { warehouse.Shard(1).Shard(1) },
		"pointer of a namespace":    func() { warehouse.Namespace("a").Pointer("x") },
		"shard of a pointer":        func() { locks.Warehouse("wh").Pointer("x").Shard(1) },
		"shard beyond the last":     func() { warehouse.Shard(locks.Shards) },
		"plan of the zero path":     func() { locks.Plan(locks.Request{Reads: []locks.Path{{}}}) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			defer func() {
				if recover() == nil {
					t.Error("got no panic, want one")
				}
			}()
			mistake()
		})
	}
}

// The names can be recovered from the text of a path, so no two paths share a text.
func FuzzPathString(f *testing.F) {
	f.Add("wh", "a/b", "#3")
	f.Add("", "%2F", "@\x00\xff")
	f.Fuzz(func(t *testing.T, warehouse, outer, inner string) {
		path := locks.Warehouse(warehouse).Namespace(outer).Namespace(inner)
		segments := strings.Split(path.String(), "/")[1:]
		for i, segment := range segments {
			name, err := url.PathUnescape(segment)
			if err != nil {
				t.Fatalf("segment %q of %q: %v", segment, path, err)
			}
			segments[i] = name
		}
		if want := []string{warehouse, outer, inner}; !slices.Equal(segments, want) {
			t.Errorf("%q gives %q, want %q", path, segments, want)
		}
		if path.Level() != locks.LevelNamespace || path.Parent() != locks.Warehouse(warehouse).Namespace(outer) {
			t.Errorf("%q: level %s, parent %q", path, path.Level(), path.Parent())
		}
	})
}
