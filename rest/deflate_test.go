package rest

import (
	"bytes"
	"hash/crc32"
	"math/rand/v2"
	"strings"
	"testing"
)

func TestDeflatedBetweenHeadAndTail(t *testing.T) {
	t.Parallel()
	s := NewServer(TestConfig{Catalog: &fakeCatalog{}})
	long := strings.Repeat("0123456789", 20_000) // more than two stored blocks
	for _, text := range []string{"", "x", "the text", long, long + long} {
		d, err := s.deflate([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		for _, head := range []string{"", "<", long[:65535], long[:65536], long} {
			for _, tail := range []string{"", ">", long} {
				before, behind := d.gzip([]byte(head), []byte(tail))
				member := bytes.NewBuffer(append(append(before, d.blocks...), behind...))
				if got := string(gunzip(t, member)); got != head+text+tail {
					t.Errorf("%d+%d+%d bytes: got %d bytes", len(head), len(text), len(tail), len(got))
				}
				if member.Len() > 0 {
					t.Errorf("%d bytes behind the member", member.Len())
				}
			}
		}
	}
}

func TestCRCShift(t *testing.T) {
	t.Parallel()
	const seed = 7
	random := rand.New(rand.NewPCG(seed, seed))
	for range 200 {
		a, b := make([]byte, random.IntN(300)), make([]byte, random.IntN(70_000))
		for _, part := range [][]byte{a, b} {
			for i := range part {
				part[i] = byte(random.Uint32())
			}
		}
		got := crcMultiply(crcShift(len(b)), crc32.ChecksumIEEE(a)) ^ crc32.ChecksumIEEE(b)
		if want := crc32.ChecksumIEEE(append(a, b...)); got != want {
			t.Fatalf("seed %d: %d and %d bytes: %08x, want %08x", seed, len(a), len(b), got, want)
		}
	}
}

func TestCompressedDocumentsAreKept(t *testing.T) {
	t.Parallel()
	s := NewServer(TestConfig{Catalog: &fakeCatalog{}})
	table := sampleTable(t, 1)
	key := keyOf(table, loadAnswer)
	first, err := s.deflatedText(t.Context(), key, []byte("one"))
	if err != nil {
		t.Fatal(err)
	}
	if again, _ := s.deflatedText(t.Context(), key, []byte("one")); again != first {
		t.Error("compressed twice")
	}
	if refs, _ := s.deflatedText(t.Context(), keyOf(table, loadRefsAnswer), []byte("two")); refs == first {
		t.Error("refs and all share an entry")
	}
}

func TestCompressedDocumentsAreBounded(t *testing.T) {
	t.Parallel()
	const bytesMax = 100_000
	s := NewServer(TestConfig{Catalog: &fakeCatalog{}, CompressedBytesMax: bytesMax})
	for range 1000 {
		if _, err := s.deflatedText(t.Context(), keyOf(sampleTable(t, 0), loadAnswer), []byte("text")); err != nil {
			t.Fatal(err)
		}
	}
	s.compressed.CleanUp()
	if got := s.compressed.WeightedSize(); got > bytesMax {
		t.Errorf("%d bytes are kept, want at most %d", got, bytesMax)
	}
}

// A file is registered, unregistered, rewritten by its owner, and registered again. It is now a
// different document at the same location, so neither the ETag nor the compressed bytes may be the
// same as for the first.
func TestLocationWithAnotherDocument(t *testing.T) {
	t.Parallel()
	fake := &fakeCatalog{table: sampleTable(t, 3)}
	h := NewServer(TestConfig{Catalog: fake})
	first := send(h, "GET", tablePath, "", "Accept-Encoding", "gzip")
	location := fake.table.MetadataLocation
	fake.table = sampleTable(t, 4)
	fake.table.MetadataLocation = location
	second := send(h, "GET", tablePath, "", "Accept-Encoding", "gzip", "If-None-Match", first.Header()["ETag"][0])
	if second.Code != 200 {
		t.Fatalf("status %d, want 200", second.Code)
	}
	if answer := takeApart(t, gunzip(t, second.Body)); string(answer.Metadata) != string(fake.table.Document.Raw()) {
		t.Errorf("metadata is %.300s", answer.Metadata)
	}
}
