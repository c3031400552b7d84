package browse

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"moorage"
	"moorage/access"
	"moorage/registry"
)

// indexOf returns an index of tables, and of views whose names end in "view".
func indexOf(names ...string) *index {
	x := newIndex()
	for _, name := range names {
		levels := strings.Split(name, ".")
		last := len(levels) - 1
		s := x.put("w", levels[:last], registry.ID{1})
		s.append(levels[last], strings.HasSuffix(name, "view"))
	}
	return x
}

func namesOf(hits []hit) (names []string) {
	for _, h := range hits {
		name := strings.Join(h.in.namespace, ".")
		if h.kind != access.Namespace {
			name += "." + h.name
		}
		names = append(names, name)
	}
	return names
}

// A search finds the names that contain all words, best matches first.
func TestFind(t *testing.T) {
	t.Parallel()
	x := indexOf("sales.orders", "sales.Orders_Daily", "archive.sales.reorders", "archive.orders_daily_2025", "sales.über",
		"SALES.ORDERS", "a.daily_orders_view", "a.b")
	for query, want := range map[string][]string{
		"orders":        {"SALES.ORDERS", "sales.orders", "sales.Orders_Daily", "archive.orders_daily_2025", "a.daily_orders_view", "archive.sales.reorders"},
		"sales.orders":  {"SALES.ORDERS", "sales.orders", "sales.Orders_Daily"},
		"order daily":   {"sales.Orders_Daily", "archive.orders_daily_2025", "a.daily_orders_view"},
		"ÜBER":          {"sales.über"},
		"archive sales": {"archive.sales", "archive.sales.reorders"},
		"es.ord":        {"sales.orders", "SALES.ORDERS", "sales.Orders_Daily"},
		"s.orders view": nil,
		"ails":          nil,
	} {
		hits, more := x.find(queryOf(query), 100)
		got := namesOf(hits)
		if query == "es.ord" || query == "orders" || query == "sales.orders" { // two equal folded names
			slices.Sort(got[:2])
			slices.Sort(want[:2])
		}
		if !slices.Equal(got, want) || more {
			t.Errorf("%q finds %q, want %q", query, got, want)
		}
	}
	only := queryOf("orders")
	only.kinds = []access.Kind{access.View}
	if hits, _ := x.find(only, 100); !slices.Equal(namesOf(hits), []string{"a.daily_orders_view"}) {
		t.Errorf("of views %q is found", namesOf(hits))
	}
	only = queryOf("orders")
	only.warehouse = "other"
	if hits, _ := x.find(only, 100); len(hits) != 0 {
		t.Errorf("of another warehouse %q is found", namesOf(hits))
	}
	if hits, more := x.find(queryOf("orders"), 2); len(hits) != 2 || !more {
		t.Errorf("of two hits %q are found, more %v", namesOf(hits), more)
	}
}

// Random names are added, removed, and changed from table to view. The index finds the same names
// as a scan of a plain list.
func TestFindIsThatOfAList(t *testing.T) {
	t.Parallel()
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	alphabet := []rune("aAbB.é_1")
	word := func(most int) string {
		letters := make([]rune, 1+random.IntN(most))
		for i := range letters {
			letters[i] = alphabet[random.IntN(len(alphabet))]
		}
		return string(letters)
	}
	x, model := newIndex(), make(map[string]map[string]bool)
	namespaces := []moorage.Namespace{{"a"}, {"B", "a.b"}, {"é"}}
	for range 2000 {
		namespace, name := namespaces[random.IntN(3)], word(4)
		s, key := x.put("w", namespace, registry.ID{1}), strings.Join(namespace, ".")
		if model[key] == nil {
			model[key] = make(map[string]bool)
		}
		there, view := random.IntN(3) > 0, random.IntN(2) > 0
		s.set(name, there, view)
		if delete(model[key], name); there {
			model[key][name] = view
		}
	}
	for range 300 {
		q := queryOf(word(3) + " " + word(2))
		var want []string
		for path, names := range model {
			all := func(text string) bool {
				return !slices.ContainsFunc(q.words, func(word string) bool { return !strings.Contains(fold(text), word) })
			}
			if all(path) {
				want = append(want, path)
			}
			for name, view := range names {
				if all(path + "." + name) {
					want = append(want, fmt.Sprint(path, ".", name, view))
				}
			}
		}
		hits, _ := x.find(q, 10_000)
		var got []string
		for i, name := range namesOf(hits) {
			if hits[i].kind != access.Namespace {
				name = fmt.Sprint(name, hits[i].kind == access.View)
			}
			got = append(got, name)
		}
		slices.Sort(got)
		if slices.Sort(want); !slices.Equal(got, want) {
			t.Fatalf("%q finds %q, want %q", q.words, got, want)
		}
	}
	if size := x.size(); size != len(model["a"])+len(model["B.a.b"])+len(model["é"])+3 {
		t.Errorf("the index has %d names", size)
	}
}
