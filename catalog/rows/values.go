package rows

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math"
	"math/big"
	"strconv"
	"time"
	"unicode/utf8"

	"moorage/catalog/rows/parquet"
	"moorage/internal/jsontext"
	"moorage/metadata/schema"
)

// shower appends a value of a column as JSON. If the value is not valid for the type, the error is
// errValue.
//
// Source: table specification, "JSON single-value serialization".
type shower func(out []byte, v parquet.Value) ([]byte, error)

// decimalBytesMax bounds the bytes of a decimal. 38 digits need 16.
const decimalBytesMax = 32

// showerOf returns the shower of a primitive type whose values are in the column n. It refuses
// every pair of types that is not in the specification, not even as a promotion.
//
// Source: table specification, "Parquet" in "Appendix A", and "Schema Evolution".
func showerOf(t schema.Type, n *parquet.Node) (shower, error) {
	refused := fmt.Errorf("has the type %s (%s), and %s in the table", n.Type, n.Annotation, t.Text)
	plain := n.Annotation == parquet.None
	isInt := plain || n.Annotation == parquet.Integer && n.Signed
	date := n.Type == parquet.Int32 && n.Annotation == parquet.Date
	switch t.Name {
	case "boolean":
		if n.Type == parquet.Boolean && plain {
			return showBoolean, nil
		}
	case "int":
		if n.Type == parquet.Int32 && isInt {
			return showInteger, nil
		}
	case "long":
		if (n.Type == parquet.Int32 || n.Type == parquet.Int64) && isInt {
			return showInteger, nil
		}
	case "float":
		if n.Type == parquet.Float && plain {
			return showFloat(32), nil
		}
	case "double":
		if (n.Type == parquet.Float || n.Type == parquet.Double) && plain {
			return showFloat(64), nil
		}
	case "decimal":
		isDecimal := n.Annotation == parquet.Decimal && n.Scale == t.Scale && n.Precision <= t.Precision
		switch {
		case isDecimal && (n.Type == parquet.Int32 || n.Type == parquet.Int64),
			isDecimal && n.Type == parquet.ByteArray,
			isDecimal && n.Type == parquet.FixedBytes && n.Length <= decimalBytesMax:
			return showDecimal(n.Type, t), nil
		}
	case "date":
		if date {
			return showDate, nil
		}
	case "time":
		if n.Type == parquet.Int64 && n.Annotation == parquet.Time && n.Unit == parquet.Micros {
			return showTime, nil
		}
	case "timestamp", "timestamptz", "timestamp_ns", "timestamptz_ns":
		if show := timestampShower(t.Name, n, date); show != nil {
			return show, nil
		}
	case "string":
		switch n.Annotation {
		case parquet.String, parquet.Enum, parquet.JSON, parquet.None:
			if n.Type == parquet.ByteArray {
				return showString, nil
			}
		}
	case "uuid":
		if n.Type == parquet.FixedBytes && n.Length == 16 && (plain || n.Annotation == parquet.UUID) {
			return showUUID, nil
		}
	case "fixed":
		if n.Type == parquet.FixedBytes && n.Length == t.Length && plain {
			return showBytes, nil
		}
	case "binary":
		if n.Type == parquet.ByteArray && (plain || n.Annotation == parquet.BSON) {
			return showBytes, nil
		}
	case "unknown": // not allowed in files; if a file has it, all values are null
		return func([]byte, parquet.Value) ([]byte, error) { return nil, errValue }, nil
	default:
		return nil, fmt.Errorf("has the type %s, which this server does not show. Name other columns", t.Text)
	}
	return nil, refused
}

// timestampShower returns the shower for the timestamp type called name, or nil. date is true if
// the column has dates. Dates can be promoted to timestamps without a zone.
func timestampShower(name string, n *parquet.Node, date bool) shower {
	hasZone := name == "timestamptz" || name == "timestamptz_ns"
	isNanos := name == "timestamp_ns" || name == "timestamptz_ns"
	isTimestamp := n.Type == parquet.Int64 && n.Annotation == parquet.Timestamp && n.UTC == hasZone
	unit := int64(0)
	switch {
	case date && !hasZone:
		unit = int64(24 * time.Hour)
	case isTimestamp && n.Unit == parquet.Nanos && isNanos:
		unit = 1
	case isTimestamp && n.Unit == parquet.Micros && !isNanos:
		unit = int64(time.Microsecond)
	case isTimestamp && n.Unit == parquet.Millis && !isNanos:
		unit = int64(time.Millisecond)
	case n.Type == parquet.Int96 && name == "timestamptz": // Spark's form before version 3
		return showOldTimestamp
	default:
		return nil
	}
	digits, zone := 6, ""
	if isNanos {
		digits = 9
	}
	if hasZone {
		zone = "+00:00"
	}
	return func(out []byte, v parquet.Value) ([]byte, error) {
		return showTimestamp(out, v.Int, unit, digits, zone)
	}
}

func showBoolean(out []byte, v parquet.Value) ([]byte, error) {
	return strconv.AppendBool(out, v.Int != 0), nil
}

func showInteger(out []byte, v parquet.Value) ([]byte, error) {
	return strconv.AppendInt(out, v.Int, 10), nil
}

// showFloat returns the shower of floating-point numbers with size bits. It writes the shortest
// text that identifies the number, with a point or an exponent. JSON has no NaN and no infinities,
// so these are strings, as Java writes them.
func showFloat(size int) shower {
	return func(out []byte, v parquet.Value) ([]byte, error) {
		switch {
		case math.IsNaN(v.Float):
			return append(out, `"NaN"`...), nil
		case math.IsInf(v.Float, 1):
			return append(out, `"Infinity"`...), nil
		case math.IsInf(v.Float, -1):
			return append(out, `"-Infinity"`...), nil
		}
		format := byte('f')
		if abs := math.Abs(v.Float); abs != 0 && (abs < 1e-6 || abs >= 1e16) {
			format = 'e'
		}
		start := len(out)
		out = strconv.AppendFloat(out, v.Float, format, -1, size)
		for _, b := range out[start:] {
			if b == '.' || b == 'e' {
				return out, nil
			}
		}
		return append(out, ".0"...), nil
	}
}

func showDecimal(kind parquet.Type, t schema.Type) shower {
	return func(out []byte, v parquet.Value) ([]byte, error) {
		n := big.NewInt(v.Int)
		if kind == parquet.ByteArray || kind == parquet.FixedBytes {
			if len(v.Bytes) == 0 || len(v.Bytes) > decimalBytesMax {
				return out, fmt.Errorf("a decimal of %d bytes: %w", len(v.Bytes), errValue)
			}
			n.SetBytes(v.Bytes)
			if v.Bytes[0]&0x80 != 0 { // two's complement
				n.Sub(n, new(big.Int).Lsh(big.NewInt(1), uint(8*len(v.Bytes))))
			}
		}
		digits := new(big.Int).Abs(n).String()
		if len(digits) > t.Precision {
			return out, fmt.Errorf("a decimal of %d digits: %w", len(digits), errValue)
		}
		out = append(out, '"')
		if n.Sign() < 0 {
			out = append(out, '-')
		}
		for len(digits) <= t.Scale {
			digits = "0" + digits
		}
		whole := len(digits) - t.Scale
		if out = append(out, digits[:whole]...); t.Scale > 0 {
			out = append(append(out, '.'), digits[whole:]...)
		}
		return append(out, '"'), nil
	}
}

// appendDate appends a date, given as the number of days since 1970-01-01.
func appendDate(out []byte, days int64) []byte {
	date := time.Unix(0, 0).UTC().AddDate(0, 0, int(days))
	switch year := date.Year(); {
	case year > 9999:
		out = fmt.Appendf(out, "+%d", year)
	case year < 0:
		out = fmt.Appendf(out, "-%04d", -year)
	default:
		out = fmt.Appendf(out, "%04d", year)
	}
	return fmt.Appendf(out, "-%02d-%02d", date.Month(), date.Day())
}

func showDate(out []byte, v parquet.Value) ([]byte, error) {
	return append(appendDate(append(out, '"'), v.Int), '"'), nil
}

// appendClock appends a time of day. digits is the number of decimal places.
func appendClock(out []byte, nanos int64, digits int) []byte {
	seconds := nanos / int64(time.Second)
	out = fmt.Appendf(out, "%02d:%02d:%02d.", seconds/3600, seconds/60%60, seconds%60)
	return append(out, fmt.Sprintf("%09d", nanos%int64(time.Second))[:digits]...)
}

func showTime(out []byte, v parquet.Value) ([]byte, error) {
	if v.Int < 0 || v.Int >= int64(24*time.Hour/time.Microsecond) {
		return out, fmt.Errorf("a time of %d microseconds: %w", v.Int, errValue)
	}
	return append(appendClock(append(out, '"'), v.Int*int64(time.Microsecond), 6), '"'), nil
}

// showTimestamp appends the timestamp that is count units after 1970-01-01. unit is in nanoseconds,
// and must divide a day.
func showTimestamp(out []byte, count, unit int64, digits int, zone string) ([]byte, error) {
	perDay := int64(24*time.Hour) / unit
	days, rest := count/perDay, count%perDay
	if rest < 0 {
		days, rest = days-1, rest+perDay
	}
	out = append(appendDate(append(out, '"'), days), 'T')
	return append(append(appendClock(out, rest*unit, digits), zone...), '"'), nil
}

// julian1970 is the Julian day of 1970-01-01.
const julian1970 = 2440588

// showOldTimestamp appends a timestamp that is stored as nanoseconds of the day and a Julian day.
func showOldTimestamp(out []byte, v parquet.Value) ([]byte, error) {
	nanos, day := binary.LittleEndian.Uint64(v.Bytes), int64(binary.LittleEndian.Uint32(v.Bytes[8:]))
	if nanos >= uint64(24*time.Hour) {
		return out, fmt.Errorf("a time of %d nanoseconds: %w", nanos, errValue)
	}
	out = append(appendDate(append(out, '"'), day-julian1970), 'T')
	return append(appendClock(out, int64(nanos), 6), `+00:00"`...), nil
}

func showString(out []byte, v parquet.Value) ([]byte, error) {
	if !utf8.Valid(v.Bytes) {
		return out, fmt.Errorf("a string is not UTF-8: %w", errValue)
	}
	return jsontext.AppendQuoted(out, string(v.Bytes)), nil
}

func showUUID(out []byte, v parquet.Value) ([]byte, error) {
	text := hex.EncodeToString(v.Bytes)
	return fmt.Appendf(out, `"%s-%s-%s-%s-%s"`, text[:8], text[8:12], text[12:16], text[16:20], text[20:]), nil
}

func showBytes(out []byte, v parquet.Value) ([]byte, error) {
	return append(hex.AppendEncode(append(out, '"'), v.Bytes), '"'), nil
}
