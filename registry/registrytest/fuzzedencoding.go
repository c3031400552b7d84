package registrytest

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"reflect"
	"testing"
	"time"

	"moorage/registry"
)

// EncodesFuzzedAsJSON runs f, which makes a T of the input. It fails if the T does not write itself
// as package encoding/json writes it, or if only one of the two refuses it. EncodesAsJSON meets
// every member for certain. This one meets contents that nobody thought of: texts that are not
// UTF-8, and times that have no form.
func EncodesFuzzedAsJSON[T registry.Appender](f *testing.F) {
	f.Helper()
	for _, text := range []string{"", "plain", "\"\\/<>&'`", "\x00\x1f\x7f\b\f\n\r\t", "\xff\xc3\xed\xa0\x80",
		"ä\u2028\u2029\ufffd😀", "a\xf0\x9f\x98"} {
		// Each slot of a value begins with a byte that says whether it is there, and how long.
		// There is one seed for each length.
		for length := range byte(8) {
			f.Add(bytes.Repeat(append([]byte{length, byte(len(text))}, text...), 16))
		}
	}
	for _, year := range []int16{-1, 0, 1, 2026, 9999, 10_000} {
		for _, minutes := range []int16{0, -90, 24*60 - 1, 24 * 60} {
			moment := append(binary.BigEndian.AppendUint16([]byte{1}, uint16(year)), 1, 2, 3, 4, 5, 6, 7, 8)
			f.Add(bytes.Repeat(binary.BigEndian.AppendUint16(moment, uint16(minutes)), 12))
		}
	}
	f.Fuzz(func(t *testing.T, input []byte) {
		var value T
		d := drawer(input)
		d.fill(reflect.ValueOf(&value).Elem())
		want, wantErr := json.Marshal(value)
		got, err := registry.Encode(value)
		if (err == nil) != (wantErr == nil) || !bytes.Equal(got, want) {
			t.Errorf("wrote %s, %v\nwant  %s, %v", got, err, want, wantErr)
		}
	})
}

// drawer is what is left of an input from which a value is made. Behind its end there are zeros.
type drawer []byte

// take returns the next n bytes.
func (d *drawer) take(n int) []byte {
	taken := make([]byte, n)
	*d = (*d)[copy(taken, *d):]
	return taken
}

// below returns a number from 0 to n-1.
func (d *drawer) below(n int) int { return int(d.take(1)[0]) % n }

// text returns bytes of any kind, not UTF-8 only.
func (d *drawer) text() string { return string(d.take(d.below(32))) }

// time returns a time of any year, in a zone that is up to three weeks away from UTC. In most years
// times have no form.
func (d *drawer) time() time.Time {
	year, seconds, nanos := d.int16(), binary.BigEndian.Uint32(d.take(4)), binary.BigEndian.Uint32(d.take(4))
	return time.Date(year, 1, 1, 0, 0, int(seconds), int(nanos%1e9), time.FixedZone("", 60*d.int16()))
}

func (d *drawer) int16() int { return int(int16(binary.BigEndian.Uint16(d.take(2)))) }

// fill gives v what is drawn.
func (d *drawer) fill(v reflect.Value) {
	if v.Type() == reflect.TypeFor[time.Time]() {
		if d.below(4) > 0 {
			v.Set(reflect.ValueOf(d.time()))
		}
		return
	}
	if v.Type() == reflect.TypeFor[registry.Unknown]() {
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			d.fill(v.Field(i))
		}
	case reflect.Slice:
		if length := d.below(4) - 1; length >= 0 { // else nil
			v.Set(reflect.MakeSlice(v.Type(), length, length))
			for i := range length {
				d.fill(v.Index(i))
			}
		}
	case reflect.Map:
		if length := d.below(4) - 1; length >= 0 {
			v.Set(reflect.MakeMap(v.Type()))
			for range length {
				key, element := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
				d.fill(key)
				d.fill(element)
				v.SetMapIndex(key, element)
			}
		}
	case reflect.Array:
		if d.below(4) > 0 {
			for i, b := range d.take(v.Len()) {
				v.Index(i).SetUint(uint64(b))
			}
		}
	case reflect.String:
		v.SetString(d.text())
	case reflect.Bool:
		v.SetBool(d.below(2) == 1)
	case reflect.Uint8:
		v.SetUint(uint64(d.take(1)[0]))
	default:
		panic(fmt.Sprintf("registrytest: cannot fill a %s", v.Type()))
	}
}
