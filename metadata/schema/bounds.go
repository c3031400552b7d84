package schema

import (
	"encoding/hex"
	"fmt"

	"github.com/apache/iceberg-go"
)

// Bound returns a bound of the values of the column with this id, in readable form. raw is in the
// form of the specification's "Binary single-value serialization", for the column's type or for a
// narrower type before a promotion. If there is no such column, or raw is not a value of it, ok is
// false.
func (s *Schema) Bound(id int, raw []byte) (text string, ok bool) {
	f := s.byID[id]
	if f == nil || f.typ.kind != kindPrimitive {
		return "", false
	}
	defer func() {
		if recover() != nil { // raw comes from a client
			text, ok = "", false
		}
	}()
	typ := f.typ.primitive
	switch typ.(type) {
	case iceberg.BinaryType, iceberg.FixedType:
		return hex.EncodeToString(raw), true
	case iceberg.Int64Type:
		if len(raw) == 4 { // the column was an int
			typ = iceberg.Int32Type{}
		}
	case iceberg.Float64Type:
		if len(raw) == 4 { // the column was a float
			typ = iceberg.Float32Type{}
		}
	}
	value, err := iceberg.LiteralFromBytes(typ, raw)
	if err != nil {
		return "", false
	}
	return fmt.Sprint(value), true
}
