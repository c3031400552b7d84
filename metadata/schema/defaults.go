package schema

import (
	"encoding/hex"
	"math"
	"math/big"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/apache/iceberg-go"

	"moorage"
	"moorage/internal/jsontext"
)

// The JSON form of a default value depends on its type ("JSON single-value serialization" of the
// table specification). Defaults are stored as the client sent them, so 64-bit integers, decimals
// and 0.0 keep every digit. They are parsed only for comparisons and checks.

var (
	datePattern    = regexp.MustCompile(`^(-\d{4,6}|\+\d{5,6}|\d{4})-(\d\d)-(\d\d)$`)
	timePattern    = regexp.MustCompile(`^(\d\d):(\d\d)(?::(\d\d)(?:\.(\d{1,9}))?)?$`)
	offsetPattern  = regexp.MustCompile(`(?i)^(.*)(?:Z|[+-]00:00(?::00)?)$`)
	decimalLiteral = regexp.MustCompile(`^([+-]?)(\d*)(?:\.(\d*))?(?:[eE]([+-]?\d{1,10}))?$`)
	uuidPattern    = regexp.MustCompile(`^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$`)
)

const (
	yearMax       = 200000 // 64-bit timestamps and 32-bit dates allow even later years
	nanosPerDay   = int64(24 * time.Hour)
	secondsPerDay = 24 * 60 * 60
)

func (f *field) text(at jsontext.Span) string { return string(f.schema.Raw[at.Start:at.End]) }

func (f *field) hasInitialDefault() bool { return f.initialDefault != jsontext.Span{} }

// checkDefault refuses a default that the Java reference could not read back.
// Source: Java SingleValueParser.fromJson and NestedField.castDefault.
func (f *field) checkDefault(at jsontext.Span) error {
	if at == (jsontext.Span{}) {
		return nil
	}
	literal := f.text(at)
	if f.typ.isNested() {
		return moorage.Errorf(moorage.KindIllegalArgument,
			"Invalid default value for %s: %s (must be null)", f.typ.String(), jsontext.Clip(literal))
	}
	if _, ok := canonicalDefault(f.typ, literal); !ok || f.typ.isFloat() && !strings.ContainsAny(literal, ".eE") {
		return moorage.Errorf(moorage.KindIllegalArgument,
			"Cannot parse default as a %s value: %s (column %s)", f.typ.String(), jsontext.Clip(literal), f.fullName())
	}
	return nil
}

// sameDefault reports whether two defaults are the same value.
func sameDefault(f *field, fAt jsontext.Span, g *field, gAt jsontext.Span) bool {
	if fAt == (jsontext.Span{}) || gAt == (jsontext.Span{}) {
		return fAt == gAt
	}
	a, b := f.text(fAt), g.text(gAt)
	if a == b {
		return true
	}
	x, ok := canonicalDefault(f.typ, a)
	y, okY := canonicalDefault(g.typ, b)
	return ok && okY && x == y
}

// canonicalDefault returns a text that is equal for equal values of the primitive type t. It
// returns false if the literal (JSON) is not a value of t.
func canonicalDefault(t *fieldType, literal string) (string, bool) {
	switch t.primitive.(type) {
	case iceberg.BooleanType:
		return literal, literal == "true" || literal == "false"
	case iceberg.Int32Type:
		return canonicalInt(literal, 32)
	case iceberg.Int64Type:
		return canonicalInt(literal, 64)
	case iceberg.Float32Type:
		return canonicalFloat(literal, 32)
	case iceberg.Float64Type:
		return canonicalFloat(literal, 64)
	}
	if literal == "" || literal[0] != '"' {
		return "", false
	}
	text := jsontext.Unquote([]byte(literal))
	switch p := t.primitive.(type) {
	case iceberg.StringType:
		return text, true
	case iceberg.DecimalType:
		return canonicalDecimal(text, p)
	case iceberg.UUIDType:
		return strings.ToLower(text), uuidPattern.MatchString(text)
	case iceberg.FixedType:
		lower := strings.ToLower(text)
		_, err := hex.DecodeString(text)
		return lower, err == nil && len(text) == 2*p.Len()
	case iceberg.BinaryType:
		_, err := hex.DecodeString(text)
		return strings.ToLower(text), err == nil
	}
	return canonicalTime(t.primitive, text)
}

func canonicalInt(literal string, bits int) (string, bool) {
	n, err := strconv.ParseInt(literal, 10, bits)
	return strconv.FormatInt(n, 10), err == nil
}

// canonicalFloat accepts any JSON number that is finite in the type. A number without fraction and
// exponent is an integer for Java, which refuses it. checkDefault refuses it too, but documents
// that already have such a default can still be read.
func canonicalFloat(literal string, bits int) (string, bool) {
	if literal == "" || literal[0] != '-' && (literal[0] < '0' || literal[0] > '9') {
		return "", false
	}
	x, err := strconv.ParseFloat(literal, bits)
	return strconv.FormatUint(math.Float64bits(x), 16), err == nil
}

func canonicalDecimal(text string, t iceberg.DecimalType) (string, bool) {
	m := decimalLiteral.FindStringSubmatch(text)
	if m == nil || m[2]+m[3] == "" {
		return "", false
	}
	exponent := 0
	if m[4] != "" {
		var err error
		if exponent, err = strconv.Atoi(m[4]); err != nil {
			return "", false
		}
	}
	digits := strings.TrimLeft(m[2]+m[3], "0")
	if len(m[3])-exponent != t.Scale() || len(digits) > t.Precision() {
		return "", false
	}
	if digits == "" {
		return "0", true
	}
	if m[1] == "-" {
		return "-" + digits, true
	}
	return digits, true
}

// canonicalTime parses dates and times. It returns false for every other type.
func canonicalTime(t iceberg.Type, text string) (string, bool) {
	switch t.(type) {
	case iceberg.DateType:
		days, ok := parseDate(text)
		return strconv.FormatInt(days, 10), ok
	case iceberg.TimeType:
		nanos, ok := parseTimeOfDay(text)
		return strconv.FormatInt(nanos/1000, 10), ok
	case iceberg.TimestampType:
		return canonicalTimestamp(text, time.Microsecond)
	case iceberg.TimestampNsType:
		return canonicalTimestamp(text, time.Nanosecond)
	case iceberg.TimestampTzType, iceberg.TimestampTzNsType:
		m := offsetPattern.FindStringSubmatch(text)
		if m == nil {
			return "", false
		}
		if _, nanos := t.(iceberg.TimestampTzNsType); nanos {
			return canonicalTimestamp(m[1], time.Nanosecond)
		}
		return canonicalTimestamp(m[1], time.Microsecond)
	}
	return "", false
}

// canonicalTimestamp reads a timestamp without offset and returns its distance from the epoch. A
// timestamp that 64 bits of nanoseconds cannot hold is not a value of a nanosecond type.
func canonicalTimestamp(text string, unit time.Duration) (string, bool) {
	date, clock, found := strings.Cut(strings.ToUpper(text), "T")
	days, ok := parseDate(date)
	nanos, okClock := parseTimeOfDay(clock)
	if !found || !ok || !okClock {
		return "", false
	}
	if unit == time.Microsecond {
		return strconv.FormatInt(days*(nanosPerDay/1000)+nanos/1000, 10), true
	}
	n := new(big.Int).Mul(big.NewInt(days), big.NewInt(nanosPerDay))
	n.Add(n, big.NewInt(nanos))
	return n.String(), n.IsInt64()
}

// parseDate reads an ISO date as days from the epoch.
func parseDate(text string) (int64, bool) {
	m := datePattern.FindStringSubmatch(text)
	if m == nil {
		return 0, false
	}
	year, month, day := atoi(m[1]), atoi(m[2]), atoi(m[3])
	date := time.Date(year, time.Month(month), day, 0, 0, 0, 0, time.UTC)
	exists := date.Year() == year && int(date.Month()) == month && date.Day() == day
	seconds := date.Unix()
	return seconds / secondsPerDay, exists && -yearMax <= year && year <= yearMax
}

// parseTimeOfDay reads an ISO time as nanoseconds from midnight.
func parseTimeOfDay(text string) (int64, bool) {
	m := timePattern.FindStringSubmatch(text)
	if m == nil {
		return 0, false
	}
	hour, minute, second := atoi(m[1]), atoi(m[2]), atoi(m[3])
	nanos := atoi((m[4] + "000000000")[:9])
	total := time.Duration(hour)*time.Hour + time.Duration(minute)*time.Minute +
		time.Duration(second)*time.Second + time.Duration(nanos)
	return int64(total), hour < 24 && minute < 60 && second < 60
}

// atoi parses digits that a pattern has matched. It returns 0 if there are no digits.
func atoi(digits string) int {
	n, err := strconv.Atoi(digits)
	if err != nil {
		return 0
	}
	return n
}
