package manifests_test

import (
	"fmt"
	"slices"
	"testing"

	"moorage/manifests"
)

// described returns all values of an entry. Entries of lists with different schemas can have the
// same values.
func described(e *manifests.Entry) string {
	return fmt.Sprintf("%q %q %d %d %d %d %d %d %+v %+v", e.Raw, e.Path, e.Length, e.SpecID, e.Content, e.SequenceNumber,
		e.MinSequenceNumber, e.SnapshotID, e.Counts, e.FirstRowID)
}

// wantEntries fails the test unless l has these entries, and finds each by its path.
func wantEntries(t *testing.T, l *manifests.List, want []*manifests.Entry) {
	t.Helper()
	if len(l.Entries()) != len(want) {
		t.Fatalf("%d entries, want %d", len(l.Entries()), len(want))
	}
	for i, e := range l.Entries() {
		if got := described(e); got != described(want[i]) {
			t.Errorf("entry %d is\n%s, want\n%s", i, got, described(want[i]))
		}
		if found, ok := l.Match(want[i]); !ok || found != e {
			t.Errorf("entry %d is not found", i)
		}
	}
}

// sharedEntries returns the number of entries that two lists share.
func sharedEntries(l, other *manifests.List) (count int) {
	for _, e := range l.Entries() {
		if slices.Contains(other.Entries(), e) {
			count++
		}
	}
	return count
}

// A list that is read with a model has the same entries as without one. It shares the entries with
// equal records, whatever their order, and does not keep its file in memory.
func TestListsReadLikeAnother(t *testing.T) {
	t.Parallel()
	other := ships(3)
	other["added_rows_count"] = int64(5)
	all := func(numbers ...int) (rows []row) {
		for _, n := range numbers {
			rows = append(rows, ships(n))
		}
		return rows
	}
	renamed := `{"type":"record","name":"x","fields":` + javaList()[len(`{"type":"record","name":"manifest_file","fields":`):]
	tests := []struct {
		name   string
		schema string
		rows   []row
		shared int
	}{
		{"the same", javaList(), all(1, 2, 3, 4, 5), 5},
		{"the same under another name", renamed, all(1, 2, 3, 4, 5), 5},
		{"one more in front", javaList(), all(9, 1, 2, 3, 4, 5), 5},
		{"one more at the end", javaList(), all(1, 2, 3, 4, 5, 9), 5},
		{"two more inside", javaList(), all(1, 2, 8, 9, 3, 4, 5), 5},
		{"some are gone", javaList(), all(9, 2, 5), 2},
		{"another order", javaList(), all(5, 4, 3, 2, 1), 5},
		{"one changed", javaList(), append(append(all(1, 2), other), all(4, 5)...), 4},
		{"none", javaList(), all(6, 7), 0},
		{"empty", javaList(), nil, 0},
		{"another schema", goList(), all(1, 2, 3, 4, 5), 0},
	}
	for name, codec := range codecs(t) {
		for _, perBlock := range []int{1, 2, 100} {
			var reader manifests.Reader
			like, err := reader.List(file(t, javaList(), codec, perBlock, all(1, 2, 3, 4, 5)...), nil, manifests.FileBytesMax)
			if err != nil {
				t.Fatal(err)
			}
			for _, test := range tests {
				t.Run(fmt.Sprint(test.name, name, perBlock), func(t *testing.T) {
					t.Parallel()
					raw := file(t, test.schema, codec, perBlock, test.rows...)
					alone := list(t, raw)
					l, err := reader.List(raw, like, manifests.FileBytesMax)
					if err != nil {
						t.Fatal(err)
					}
					clear(raw)
					wantEntries(t, l, alone.Entries())
					if got := sharedEntries(l, like); got != test.shared {
						t.Errorf("%d entries are shared, want %d", got, test.shared)
					}
					if (l.Size() < alone.Size()) != (test.shared > 0) {
						t.Errorf("it has %d bytes, and %d alone", l.Size(), alone.Size())
					}
				})
			}
		}
	}
}

// A new list shares all entries with unchanged records.
func TestNewListsShareEntries(t *testing.T) {
	t.Parallel()
	head := list(t, file(t, javaList(), nil, 2, ships(1), ships(2), ships(3)))
	added := unchanged(list(t, file(t, javaList(), nil, 2, ships(4))).Entries())
	added[0].SequenceNumber = number(sequence + 1)
	l, err := manifests.NewList(manifests.Header{FormatVersion: 2}, added, head.Entries()[1:], head)
	if err != nil {
		t.Fatal(err)
	}
	if got := sharedEntries(l, head); got != 2 {
		t.Errorf("%d entries are shared", got)
	}
	raw, err := l.Encode()
	if err != nil {
		t.Fatal(err)
	}
	wantEntries(t, l, list(t, raw).Entries())
}

// Lists that are held count each entry once, for as long as one of them is held.
func TestHeldListsCountEntriesOnce(t *testing.T) {
	t.Parallel()
	var reader manifests.Reader
	first := file(t, javaList(), nil, 2, ships(1), ships(2), ships(3))
	a := list(t, first)
	b, err := reader.List(first, a, manifests.FileBytesMax)
	if err != nil {
		t.Fatal(err)
	}
	heldA, heldB := a.Hold(), b.Hold()
	if heldA < a.Size() || heldB >= heldA {
		t.Errorf("the first takes %d bytes, and the second %d", heldA, heldB)
	}
	if got := a.Release(); got != heldB {
		t.Errorf("%d bytes are free without the first, want %d", got, heldB)
	}
	if got := b.Release(); got != heldA {
		t.Errorf("%d bytes are free without both, want %d", got, heldA)
	}
}

// FuzzReadLike: a list is the same whatever its model.
func FuzzReadLike(f *testing.F) {
	f.Add(file(f, javaList(), nil, 2, ships(1), ships(2)), file(f, javaList(), nil, 1, ships(3), ships(1), ships(2)))
	f.Fuzz(func(t *testing.T, first, second []byte) {
		var reader manifests.Reader
		like, err := reader.List(first, nil, 1<<20)
		if err != nil {
			return
		}
		alone, err := reader.List(second, nil, 1<<20)
		l, errLike := reader.List(second, like, 1<<20)
		if (err == nil) != (errLike == nil) {
			t.Fatalf("alone: %v, like another: %v", err, errLike)
		}
		if err == nil {
			wantEntries(t, l, alone.Entries())
		}
	})
}
