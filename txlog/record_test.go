package txlog_test

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"testing"
	"time"

	"moorage"
	"moorage/registry"
	"moorage/testkit/registrytest"
	"moorage/txlog"
)

var update = flag.Bool("update", false, "rewrite the golden files")

var (
	someID   = registry.ID{0: 0xa1, 15: 0x01}
	otherID  = registry.ID{0: 0xb2, 15: 0x02}
	someETag = registry.ETag{0: 0xc3, 15: 0x03}
	someTime = time.Date(2026, 11, 21, 10, 11, 12, 131_415_161, time.UTC)
)

// goldenTransactions returns the transactions in the lines of the golden file.
func goldenTransactions() []txlog.Transaction {
	full := txlog.Transaction{
		ID: someID, Warehouse: "w", Place: txlog.Place{Roots: []string{"s3://bucket/w"}, Options: map[string]string{"s3.region": "eu"}},
		Participants: []txlog.Participant{
			{Ident: moorage.Identifier{Warehouse: "w", Namespace: moorage.Namespace{"a", "b.c"}, Name: "t<>&"}, Pointer: otherID, ETag: someETag, Writes: true},
			{Ident: moorage.Identifier{Warehouse: "w", Namespace: moorage.Namespace{"a"}, Name: "new"}, Pointer: someID, Writes: true},
			{Ident: moorage.Identifier{Warehouse: "w", Namespace: moorage.Namespace{"a"}, Name: "asked"}, Pointer: otherID, ETag: someETag},
		},
		Files:     []string{"s3://bucket/w/a/t/metadata/1.metadata.json", "s3://bucket/w/a/t/metadata/2.metadata.json"},
		Published: []string{"s3://bucket/w/a/t/metadata/2.metadata.json"},
		Began:     someTime, Deadline: someTime.Add(time.Minute), Principal: "ann", RequestID: "r-1",
	}
	pending := full
	pending.Published, pending.Place.Options, pending.RequestID = nil, nil, ""
	return []txlog.Transaction{full, pending, {}}
}

var goldenFile = filepath.Join("testdata", "format-1", "transaction.json")

// TestEncodeIsFormat1 compares the codec with a file that must never change, because it has the
// contents of stores of format 1.
func TestEncodeIsFormat1(t *testing.T) {
	t.Parallel()
	var got []byte
	for _, transaction := range goldenTransactions() {
		line, err := registry.Encode(transaction)
		if err != nil {
			t.Fatal(err)
		}
		got = append(append(got, line...), '\n')
	}
	if *update {
		if err := os.WriteFile(goldenFile, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(goldenFile)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("encoded as\n%s\nwant\n%s", got, want)
	}
	for i, line := range bytes.Split(bytes.TrimSpace(want), []byte("\n")) {
		checkDecodes(t, line, goldenTransactions()[i])
	}
}

func TestUnknownMembersSurvive(t *testing.T) {
	t.Parallel()
	registrytest.KeepsUnknown[txlog.Transaction](t)
}

// A year that RFC 3339 cannot express is refused.
func TestEncodeRefusesTimesWithoutAForm(t *testing.T) {
	t.Parallel()
	never := time.Date(10_000, 1, 1, 0, 0, 0, 0, time.UTC)
	for _, transaction := range []txlog.Transaction{{Began: never}, {Deadline: never}} {
		if encoded, err := registry.Encode(transaction); err == nil {
			t.Errorf("was encoded as %s", encoded)
		}
	}
}

func decode(value []byte) (txlog.Transaction, error) {
	return registry.Decode[txlog.Transaction](registry.Record{Key: registry.TransactionKey(someID), ETag: someETag, Value: value})
}

func checkDecodes(t *testing.T, encoded []byte, want txlog.Transaction) {
	t.Helper()
	got, err := decode(encoded)
	if err != nil {
		t.Fatalf("decode %s: %v", encoded, err)
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%s\nwas decoded as %+v\nwant %+v", encoded, got, want)
	}
}

// FuzzDecode reads arbitrary bytes as a transaction. A transaction that can be read can be written,
// and is then stable. Its surplus is a part of its files, and contains no published file.
func FuzzDecode(f *testing.F) {
	content, err := os.ReadFile(goldenFile)
	if err != nil {
		f.Fatal(err)
	}
	for line := range bytes.Lines(content) {
		f.Add(bytes.TrimSpace(line))
	}
	f.Fuzz(func(t *testing.T, value []byte) {
		read, err := decode(value)
		if err != nil {
			return
		}
		first, err := registry.Encode(read)
		if err != nil {
			t.Fatalf("%+v was read from %q but cannot be written: %v", read, value, err)
		}
		again, err := decode(first)
		if err != nil {
			t.Fatalf("%q was written but cannot be read: %v", first, err)
		}
		second, err := registry.Encode(again)
		if err != nil || !bytes.Equal(first, second) {
			t.Fatalf("%q became %q (%v)", first, second, err)
		}
		for _, file := range read.Surplus() {
			if !slices.Contains(read.Files, file) || slices.Contains(read.Published, file) {
				t.Errorf("%q is surplus of %+v", file, read)
			}
		}
	})
}

func TestSurplus(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name             string
		files, published []string
		want             []string
	}{
		{"nothing written", nil, nil, nil},
		{"not committed", []string{"a", "b"}, nil, []string{"a", "b"}},
		{"all published", []string{"a", "b"}, []string{"b", "a"}, nil},
		{"earlier tries", []string{"a1", "b1", "a2", "b2"}, []string{"a2", "b2"}, []string{"a1", "b1"}},
		{"a published file that was not recorded", []string{"a"}, []string{"b"}, []string{"a"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			got := txlog.Transaction{Files: test.files, Published: test.published}.Surplus()
			if !slices.Equal(got, test.want) {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}
