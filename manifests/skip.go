package manifests

import (
	"iter"
	"math"
	"unicode/utf8"
)

// cursor reads Avro's binary encoding from text, beginning at position at. Every error of its
// methods is ErrDamaged. After an error, the cursor must not be used.
type cursor struct {
	text string
	at   int
}

// long reads a variable-length zig-zag number, which also encodes an int.
func (c *cursor) long() (int64, error) {
	var z uint64
	for shift := 0; shift < 64 && c.at < len(c.text); shift += 7 {
		b := c.text[c.at]
		c.at++
		if shift == 63 && b > 1 {
			return 0, damaged("number is longer than 64 bits")
		}
		z |= uint64(b&0x7f) << shift
		if b < 0x80 {
			return int64(z>>1) ^ -int64(z&1), nil
		}
	}
	return 0, damaged("file is cut")
}

// take reads count bytes.
func (c *cursor) take(count int64) (string, error) {
	if count < 0 || count > int64(len(c.text)-c.at) {
		return "", damaged("%d bytes of %d", count, len(c.text)-c.at)
	}
	start := c.at
	c.at += int(count)
	return c.text[start:c.at], nil
}

// sized reads bytes or a string: their length, and then as many bytes.
func (c *cursor) sized() (string, error) {
	count, err := c.long()
	if err != nil {
		return "", err
	}
	return c.take(count)
}

// runs yields the length of each run of items of an array or a map. The loop must read that many
// items. If runs yields an error, it ends.
func (c *cursor) runs() iter.Seq2[int64, error] {
	return func(yield func(int64, error) bool) {
		for {
			count, end, err := c.run()
			if err != nil {
				yield(0, err)
				return
			}
			if count == 0 || !yield(count, nil) {
				return
			}
			if end >= 0 && c.at != end {
				yield(0, damaged("run of items has another length than it says"))
				return
			}
		}
	}
}

// run reads the head of a run. It returns the number of items and the end of the run, or -1 if the
// head has no size. In the encoding, a negative count means that the size of the run in bytes
// follows.
func (c *cursor) run() (count int64, end int, err error) {
	if count, err = c.long(); err != nil || count >= 0 {
		return count, -1, err
	}
	size, err := c.long()
	if err == nil && (count == math.MinInt64 || size < 0 || size > int64(len(c.text)-c.at)) {
		err = damaged("%d items in %d bytes", count, size)
	}
	return -count, c.at + int(size), err
}

// value is a decoded value. For a union, it is the value of the branch. Containers are skipped, not
// decoded.
type value struct {
	kind   kind
	number int64  // of an int or a long
	text   string // of a string, bytes or a fixed
}

// path returns v as a path.
func (v value) path() (string, error) {
	if v.kind != kindString || v.text == "" || !utf8.ValidString(v.text) {
		return "", damaged("value is no path")
	}
	return v.text, nil
}

// whole returns v as a number.
func (v value) whole() (int64, error) {
	if v.kind != kindInt && v.kind != kindLong {
		return 0, damaged("value is no number")
	}
	return v.number, nil
}

// optional returns v as a Number, which must be null or not negative.
func (v value) optional() (n Number, err error) {
	if v.kind == kindNull {
		return Number{}, nil
	}
	n.Valid = true
	err = v.atMost(math.MaxInt64, &n.Value)
	return n, err
}

// atMost stores v in *target. v must be a number that is neither negative nor above bound.
func (v value) atMost(bound int64, target *int64) (err error) {
	if *target, err = v.whole(); err == nil && (*target < 0 || *target > bound) {
		return damaged("number is %d", *target)
	}
	return err
}

// read reads one value of type s. It skips the content of records, arrays and maps.
func (c *cursor) read(s *schema) (v value, err error) {
	v.kind = s.kind
	switch s.kind {
	case kindNull:
	case kindInt, kindLong:
		v.number, err = c.long()
		if err == nil && s.kind == kindInt && v.number != int64(int32(v.number)) {
			err = damaged("int %d", v.number)
		}
	case kindBytes, kindString:
		v.text, err = c.sized()
	case kindBoolean:
		if v.text, err = c.take(1); err == nil && v.text[0] > 1 {
			err = damaged("boolean %d", v.text[0])
		}
	case kindFloat:
		v.text, err = c.take(4)
	case kindDouble:
		v.text, err = c.take(8)
	case kindFixed:
		v.text, err = c.take(s.size)
	case kindEnum:
		if v.number, err = c.long(); err == nil && (v.number < 0 || v.number >= int64(len(s.symbols))) {
			err = damaged("symbol %d of %d", v.number, len(s.symbols))
		}
	case kindUnion:
		var branch *schema
		if branch, err = c.branch(s); err == nil {
			return c.read(branch)
		}
	case kindRecord:
		for i := range s.fields {
			if _, err := c.read(s.fields[i].schema); err != nil {
				return v, err
			}
		}
	case kindArray, kindMap:
		err = c.skipItems(s)
	}
	return v, err
}

// branch reads which branch of union s the next value has.
func (c *cursor) branch(s *schema) (*schema, error) {
	at, err := c.long()
	if err == nil && (at < 0 || at >= int64(len(s.inner))) {
		err = damaged("branch %d of %d", at, len(s.inner))
	}
	if err != nil {
		return nil, err
	}
	return s.inner[at], nil
}

// skipItems skips an array or a map.
func (c *cursor) skipItems(s *schema) error {
	items := s.inner[0]
	for count, err := range c.runs() {
		if err != nil {
			return err
		}
		if s.kind == kindArray && items.empty {
			continue // items of this type take no bytes
		}
		for range count {
			if s.kind == kindMap {
				if _, err := c.sized(); err != nil {
					return err
				}
			}
			if _, err := c.read(items); err != nil {
				return err
			}
		}
	}
	return nil
}

// visitor is called with the id and the value of a field.
type visitor func(id int, v value) error

// fields reads one record of type s, and calls visit for each field with an id. If inside is not
// nil, it calls inside for each field with an id in the record's data_file (idDataFile). An error
// from visit or inside ends the reading.
func (c *cursor) fields(s *schema, visit, inside visitor) error {
	for i := range s.fields {
		f := &s.fields[i]
		if inside != nil && f.id == idDataFile && f.schema.kind == kindRecord {
			if err := c.fields(f.schema, inside, nil); err != nil {
				return err
			}
			continue
		}
		v, err := c.read(f.schema)
		if err != nil {
			return err
		}
		if f.id == noID {
			continue
		}
		if err := visit(f.id, v); err != nil {
			return err
		}
	}
	return nil
}
