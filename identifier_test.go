package moorage_test

import (
	"slices"
	"strings"
	"testing"

	"moorage"
)

// TestNamesAreBounded checks that exactly the names that no store can hold are refused.
func TestNamesAreBounded(t *testing.T) {
	t.Parallel()
	levels := func(n int) moorage.Namespace { return slices.Repeat(moorage.Namespace{"a"}, n) }
	for _, row := range []struct {
		what  string
		ident moorage.Identifier
		valid bool
	}{
		{"a usual name", moorage.Identifier{Namespace: levels(1), Name: "ships"}, true},
		{"slashes, dots, percent signs", moorage.Identifier{Namespace: moorage.Namespace{"a/b", "..", "%2F"}, Name: "c.d"}, true},
		{"the longest name", moorage.Identifier{Namespace: levels(1), Name: strings.Repeat("é", moorage.NameBytesMax/2)}, true},
		{"the deepest namespace", moorage.Identifier{Namespace: levels(moorage.NamespaceLevelsMax), Name: "t"}, true},
		{"no namespace", moorage.Identifier{Name: "t"}, false},
		{"no name", moorage.Identifier{Namespace: levels(1)}, false},
		{"an empty level", moorage.Identifier{Namespace: moorage.Namespace{"a", ""}, Name: "t"}, false},
		{"a name too long", moorage.Identifier{Namespace: levels(1), Name: strings.Repeat("x", moorage.NameBytesMax+1)}, false},
		{"a namespace too deep", moorage.Identifier{Namespace: levels(moorage.NamespaceLevelsMax + 1), Name: "t"}, false},
		{"NUL", moorage.Identifier{Namespace: levels(1), Name: "a\x00b"}, false},
		{"the separator of levels", moorage.Identifier{Namespace: moorage.Namespace{"a" + moorage.LevelSeparator + "b"}, Name: "t"}, false},
		{"no UTF-8", moorage.Identifier{Namespace: levels(1), Name: "a\xff"}, false},
	} {
		err := row.ident.Validate()
		if (err == nil) != row.valid {
			t.Errorf("%s: %v", row.what, err)
		}
		if err != nil && moorage.KindOf(err) != moorage.KindBadRequest {
			t.Errorf("%s: the kind is %v", row.what, moorage.KindOf(err))
		}
	}
	if err := moorage.ValidateWarehouse(""); moorage.KindOf(err) != moorage.KindNoSuchWarehouse {
		t.Errorf("no warehouse: %v", err)
	}
	if err := moorage.ValidateWarehouse("a\x00"); moorage.KindOf(err) != moorage.KindBadRequest {
		t.Errorf("a warehouse with NUL: %v", err)
	}
}

// TestNamespacesShareNothing creates children and parents of one namespace. None of them modifies
// another.
func TestNamespacesShareNothing(t *testing.T) {
	t.Parallel()
	roomy := append(make(moorage.Namespace, 0, 8), "a", "b")
	first, second := roomy.Child("c"), roomy.Child("d")
	third := roomy.Parent().Child("e")
	for want, got := range map[string]moorage.Namespace{"a.b": roomy, "a.b.c": first, "a.b.d": second, "a.e": third} {
		if got.String() != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	if first.Name() != "c" || first.Equal(second) || !first.Parent().Equal(roomy) {
		t.Errorf("%q, %q", first, second)
	}
	var none moorage.Namespace
	if len(none.Parent()) > 0 || none.Name() != "" {
		t.Errorf("the warehouse itself has the parent %q and the name %q", none.Parent(), none.Name())
	}
	one := moorage.Identifier{Warehouse: "w", Namespace: roomy, Name: "t"}
	other := one
	other.Warehouse = "v"
	if one.String() != "a.b.t" || !one.Equal(one) || one.Equal(other) {
		t.Errorf("%s and %s", one, other)
	}
}
