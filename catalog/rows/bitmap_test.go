package rows

import (
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"reflect"
	"testing"

	"github.com/RoaringBitmap/roaring/v2/roaring64"

	"moorage/catalog/rows/parquet"
)

// A bitmap written by another implementation is read correctly, in each of its forms.
func TestBitmap(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(5, 6))
	for range 200 {
		oracle := roaring64.New()
		for range 1 + random.IntN(6) {
			base := uint64(random.IntN(4))<<32 | uint64(random.IntN(1<<18))
			switch random.IntN(3) {
			case 0:
				for range random.IntN(100) {
					oracle.Add(base + uint64(random.IntN(1<<20)))
				}
			case 1:
				oracle.AddRange(base, base+uint64(random.IntN(1<<18)))
			case 2:
				for range random.IntN(9000) {
					oracle.Add(base + uint64(random.IntN(1<<15)))
				}
			}
		}
		if random.IntN(2) == 0 {
			oracle.RunOptimize()
		}
		raw, err := oracle.ToBytes()
		if err != nil {
			t.Fatal(err)
		}
		memory := parquet.NewMemory(1 << 30)
		b, err := readBitmap(raw, memory)
		if err != nil || b.count != oracle.GetCardinality() {
			t.Fatalf("%v, %d numbers, want %d", err, b.count, oracle.GetCardinality())
		}
		for range 2000 {
			n := uint64(random.IntN(4))<<32 | uint64(random.IntN(1<<20))
			if b.has(n) != oracle.Contains(n) {
				t.Fatalf("has(%d) = %t", n, b.has(n))
			}
		}
		for range 50 {
			if end := random.IntN(len(raw)); end < len(raw) {
				if _, err := readBitmap(raw[:end], memory); err == nil {
					t.Fatalf("%d of %d bytes were read", end, len(raw))
				}
			}
		}
	}
}

// A bitmap of a few bytes with billions of numbers takes little memory.
func TestHugeBitmap(t *testing.T) {
	t.Parallel()
	oracle := roaring64.New()
	oracle.AddRange(0, 1<<33)
	oracle.RunOptimize()
	raw, err := oracle.ToBytes()
	if err != nil {
		t.Fatal(err)
	}
	b, err := readBitmap(raw, parquet.NewMemory(1<<30))
	if err != nil || b.count != 1<<33 || !b.has(1<<33-1) || b.has(1<<33) {
		t.Errorf("%v: %d numbers", err, b.count)
	}
}

// The memory of a bitmap's containers is counted, and given back if the bitmap cannot be read. A
// container of 10 bytes in a file takes 40 in memory.
func TestBitmapMemory(t *testing.T) {
	t.Parallel()
	oracle := roaring64.New()
	for n := range uint64(1000) {
		oracle.Add(n << 16)
	}
	raw, err := oracle.ToBytes()
	if err != nil {
		t.Fatal(err)
	}
	if size := int(reflect.TypeFor[container]().Size()); size > containerBytes {
		t.Errorf("a container takes %d bytes, and %d are counted", size, containerBytes)
	}
	memory := parquet.NewMemory(1000*containerBytes + 100)
	b, err := readBitmap(raw, memory)
	if err != nil || b.held != 1000*containerBytes {
		t.Fatalf("a bitmap of 1000 containers: %v", err)
	}
	if _, err := readBitmap(raw, memory); !errors.Is(err, parquet.ErrTooLarge) {
		t.Errorf("a second one: %v", err)
	}
	memory.Give(b.held)
	if _, err := readBitmap(raw[:len(raw)-1], memory); !errors.Is(err, errBitmap) {
		t.Errorf("a truncated one: %v", err)
	}
	if _, err := readBitmap(raw, memory); err != nil {
		t.Errorf("after the others: %v", err)
	}
}

func FuzzBitmap(f *testing.F) {
	f.Add(binary.LittleEndian.AppendUint64(nil, 0))
	oracle := roaring64.BitmapOf(1, 2, 70000, 1<<40)
	if raw, err := oracle.ToBytes(); err == nil {
		f.Add(raw)
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		b, err := readBitmap(raw, parquet.NewMemory(1<<20))
		if err != nil {
			return
		}
		for _, n := range []uint64{0, 1, 70000, 1 << 40} {
			_ = b.has(n)
		}
	})
}
