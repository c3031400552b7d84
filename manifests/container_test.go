package manifests_test

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"

	"moorage/manifests"
)

// isFault reports whether err is one of the package's documented errors.
func isFault(err error) bool {
	return errors.Is(err, manifests.ErrDamaged) || errors.Is(err, manifests.ErrTooLarge) || errors.Is(err, manifests.ErrForeign)
}

// A truncated file is an error, wherever it was cut, except between blocks. In that case a list is
// a shorter list, and a manifest does not have the length in its list.
func TestCutFilesAreDamaged(t *testing.T) {
	t.Parallel()
	for name, codec := range codecs(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			raw := file(t, goList(fieldFirst), codec, 1, ships(1), ships(2))
			marker, short := string(raw[len(raw)-16:]), 0
			for cut := range raw {
				l, err := new(manifests.Reader).List(raw[:cut], nil, manifests.FileBytesMax)
				if between := cut > 16 && string(raw[cut-16:cut]) == marker; between {
					if err != nil || len(l.Entries()) != short {
						t.Errorf("cut between blocks at %d: %v", cut, err)
					}
					short++
				} else if !errors.Is(err, manifests.ErrDamaged) {
					t.Errorf("cut at %d of %d: %v", cut, len(raw), err)
				}
			}
			if short != 2 {
				t.Errorf("%d cuts were between blocks", short)
			}
			raw = file(t, entrySchema(), codec, 1, entry(func(row, row) {}), entry(func(row, row) {}))
			e := entryOf(t, raw)
			for cut := range raw {
				if _, err := files(e, raw[:cut], 1000); !errors.Is(err, manifests.ErrDamaged) {
					t.Errorf("manifest cut at %d of %d: %v", cut, len(raw), err)
				}
			}
		})
	}
}

// A file with a wrong byte is read, or leads to an error of the package. Nothing panics.
func TestWrongBytes(t *testing.T) {
	t.Parallel()
	flipped := func(t *testing.T, raw []byte, read func() error) {
		for _, flip := range []byte{1, 0xff} {
			for at := range raw {
				raw[at] ^= flip
				if err := read(); err != nil && !isFault(err) {
					t.Errorf("byte %d: %v", at, err)
				}
				raw[at] ^= flip
			}
		}
	}
	for name, codec := range codecs(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			raw := file(t, record("m", fieldPath, fieldLength, fieldSpec, fieldSnapshot, fieldUnknown), codec, 10, ships(1), ships(2))
			flipped(t, raw, func() error {
				_, err := new(manifests.Reader).List(raw, nil, 1<<20)
				return err
			})
		})
	}
	t.Run("manifest", func(t *testing.T) {
		t.Parallel()
		raw, e := icebergManifest(t, 3)
		flipped(t, raw, func() error {
			_, err := files(e, raw, 1<<20)
			return err
		})
	})
}

// A small file that unpacks to very many bytes is refused with little work.
func TestFilesThatUnpackToTooMuch(t *testing.T) {
	t.Parallel()
	huge := ships(1)
	huge["manifest_path"] = strings.Repeat("x", 1<<20)
	for name, codec := range codecs(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			raw := file(t, javaList(), codec, 1, huge)
			for _, bytesMax := range []int{-1, 0, 1, 1 << 10, 1<<20 - 1} {
				if _, err := new(manifests.Reader).List(raw, nil, bytesMax); !errors.Is(err, manifests.ErrTooLarge) {
					t.Errorf("in %d bytes: %v", bytesMax, err)
				}
			}
			if l, err := new(manifests.Reader).List(raw, nil, 2<<20); err != nil || l.Size() < 1<<20 || l.Size() > 2<<20 {
				t.Errorf("in enough bytes: %v", err)
			}
			if name != "deflate" {
				return
			}
			bomb := file(t, `{"type":"record","name":"m","fields":[{"name":"a","type":"bytes","field-id":1}]}`, codec, 1,
				row{"a": make([]byte, manifests.FileBytesMax)})
			if _, err := new(manifests.Reader).List(bomb, nil, 1<<40); !errors.Is(err, manifests.ErrTooLarge) {
				t.Errorf("over the bound of a file: %v", err)
			}
		})
	}
}

// header returns a file with this schema and these bytes as its only block.
func header(schema, codec string, records int, payload string) []byte {
	var out bytes.Buffer
	long := func(n int) {
		z := uint64(n)<<1 ^ uint64(int64(n)>>63)
		for ; z >= 0x80; z >>= 7 {
			out.WriteByte(byte(z) | 0x80)
		}
		out.WriteByte(byte(z))
	}
	sized := func(text string) {
		long(len(text))
		out.WriteString(text)
	}
	out.WriteString("Obj\x01")
	long(2)
	sized("avro.schema")
	sized(schema)
	sized("avro.codec")
	sized(codec)
	long(0)
	marker := strings.Repeat("m", 16)
	out.WriteString(marker)
	long(records)
	sized(payload)
	out.WriteString(marker)
	return out.Bytes()
}

func TestFilesThatNobodyWrites(t *testing.T) {
	t.Parallel()
	minimal := record("m", fieldPath, fieldLength, fieldSpec, fieldSnapshot)
	const payload = "\x02p\x02\x02\x02" // path p, 1, 1, 1
	deep, wide := `"long"`, `{"type":"record","name":"w0","fields":[{"name":"a","type":"long"}]}`
	for i := range 40 {
		deep = record(fmt.Sprint("d", i), `{"name":"a","type":`+deep+`}`)
		wide = record(fmt.Sprint("v", i), `{"name":"a","type":`+wide+`}`, fmt.Sprintf(`{"name":"b","type":"%s"}`, map[bool]string{true: "w0", false: fmt.Sprint("v", i-1)}[i == 0]))
		if i == 12 {
			wide = record("m", fieldPath, `{"name":"wide","type":`+wide+`}`)
			break
		}
	}
	many := ""
	for i := range 300 {
		many += fmt.Sprintf(`,{"name":"f%d","type":"long"}`, i)
	}
	field := func(of string) string { return record("m", fieldPath, fieldLength, fieldSpec, fieldSnapshot, of) }
	for _, test := range []struct {
		name string
		raw  []byte
		want error // nil if the file is read
	}{
		{"minimal", header(minimal, "null", 1, payload), nil},
		{"codec", header(minimal, "xz", 1, payload), manifests.ErrForeign},
		{"no schema", header("", "null", 1, payload), manifests.ErrDamaged},
		{"schema of no record", header(`"long"`, "null", 1, "\x02"), manifests.ErrDamaged},
		{"record without fields", header(record("m"), "null", 1<<60, ""), manifests.ErrDamaged},
		{"fields without bytes", header(record("m", `{"name":"a","type":"null","field-id":500}`), "null", 1<<60, ""), manifests.ErrDamaged},
		{"deep schema", header(record("m", `{"name":"a","type":`+deep+`}`), "null", 1, payload), manifests.ErrDamaged},
		{"schema with many fields", header(field(strings.TrimPrefix(many, ",")), "null", 1, payload+strings.Repeat("\x02", 300)), manifests.ErrDamaged},
		{"wide schema", header(wide, "null", 1, payload), manifests.ErrDamaged},
		{"schema that contains itself", header(record("m", fieldPath, `{"name":"a","type":["null","m"]}`), "null", 1, payload), manifests.ErrDamaged},
		{"long schema", header(minimal+strings.Repeat(" ", 256<<10), "null", 1, payload), manifests.ErrDamaged},
		{"field twice", header(field(fieldPath), "null", 1, payload+"\x02q"), manifests.ErrDamaged},
		{"path missing", header(record("m", fieldLength, fieldSpec, fieldSnapshot), "null", 1, payload[2:]), manifests.ErrDamaged},
		{"path is bytes", header(strings.Replace(minimal, "string", "bytes", 1), "null", 1, payload), manifests.ErrDamaged},
		{"path is no text", header(minimal, "null", 1, "\x02\xff\x02\x02\x02"), manifests.ErrDamaged},
		{"length is text", header(strings.Replace(minimal, "long", "string", 1), "null", 1, "\x02p\x02p\x02\x02"), manifests.ErrDamaged},
		{"length is negative", header(minimal, "null", 1, "\x02p\x01\x02\x02"), manifests.ErrDamaged},
		{"content of entries", header(field(fieldContent), "null", 1, payload+"\x04"), manifests.ErrDamaged},
		{"path twice", header(minimal, "null", 2, payload+payload), manifests.ErrDamaged},
		{"records missing", header(minimal, "null", 2, payload), manifests.ErrDamaged},
		{"records left", header(minimal, "null", 1, payload+payload), manifests.ErrDamaged},
		{"negative records", header(minimal, "null", -1, payload), manifests.ErrDamaged},
		{"number of 65 bits", header(minimal, "null", 1, "\x02p"+strings.Repeat("\xff", 9)+"\x02\x02\x02"), manifests.ErrDamaged},
		{"int of 33 bits", header(minimal, "null", 1, "\x02p\x02\x80\x80\x80\x80\x10\x02"), manifests.ErrDamaged},
		{"many items without bytes", header(field(`{"name":"a","type":{"type":"array","items":"null"}}`), "null", 1, payload+strings.Repeat("\xfe", 8)+"\x0e\x00"), nil},
		{"many items", header(field(`{"name":"a","type":{"type":"array","items":"long"}}`), "null", 1, payload+strings.Repeat("\xfe", 8)+"\x0e\x00"), manifests.ErrDamaged},
		{"run with its length", header(field(`{"name":"a","type":{"type":"map","values":"int"}}`), "null", 1, payload+"\x01\x06\x02k\x02\x00"), nil},
		{"run with a wrong length", header(field(`{"name":"a","type":{"type":"map","values":"int"}}`), "null", 1, payload+"\x01\x04\x02k\x02\x00"), manifests.ErrDamaged},
		{"branch that is not there", header(field(fieldFirst), "null", 1, payload+"\x04"), manifests.ErrDamaged},
		{"boolean of 2", header(field(`{"name":"a","type":"boolean"}`), "null", 1, payload+"\x02"), manifests.ErrDamaged},
		{"symbol that is not there", header(field(`{"name":"a","type":{"type":"enum","name":"e","symbols":["x"]}}`), "null", 1, payload+"\x02"), manifests.ErrDamaged},
		{"snappy without checksum", header(minimal, "snappy", 1, "abc"), manifests.ErrDamaged},
		{"snappy with a wrong checksum", header(minimal, "snappy", 1, "\x05\x10"+payload+"sum!"), manifests.ErrDamaged},
		{"no file", []byte("PAR1"), manifests.ErrDamaged},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			l, err := new(manifests.Reader).List(test.raw, nil, manifests.FileBytesMax)
			if !errors.Is(err, test.want) || test.want == nil && len(l.Entries()) != 1 {
				t.Errorf("got %v, %v", l, err)
			}
		})
	}
}

// A later change of the input bytes does not affect the list.
func TestListsShareNoMemory(t *testing.T) {
	t.Parallel()
	raw := file(t, javaList(), nil, 10, ships(1))
	l := list(t, raw)
	_, want := built(t, l, unchanged(l.Entries())...)
	clear(raw)
	if _, got := built(t, l, unchanged(l.Entries())...); !bytes.Equal(got, want) {
		t.Error("the list changed with the bytes that it was read from")
	}
}
