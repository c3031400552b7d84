package registrytest

import (
	"encoding/json"
	"fmt"
	"reflect"
	"testing"
	"time"

	"moorage/registry"
)

// EncodesAsJSON fails t unless a T writes itself as package encoding/json would write it. It tries
// a T with all of its members, with none, and with each of them zero or empty in turn, also members
// of structs and lists in it.
func EncodesAsJSON[T registry.Appender](t *testing.T) {
	t.Helper()
	var none T
	checkEncoding(t, none)
	for slot := range 1000 {
		f := filler{zeroed: slot}
		var value T
		f.fill(reflect.ValueOf(&value).Elem())
		checkEncoding(t, value)
		if slot > f.slots { // none was left to be zeroed
			return
		}
	}
	t.Errorf("%T has too many members to leave out each", none)
}

func checkEncoding(t *testing.T, value registry.Appender) {
	t.Helper()
	want, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	const before = "before"
	if got, err := value.AppendJSON([]byte(before)); err != nil || string(got) != before+string(want) {
		t.Errorf("wrote %s, %v\nwant  %s%s", got, err, before, want)
	}
	if got, err := registry.Encode(value); err != nil || string(got) != string(want) {
		t.Errorf("encoded as %s, %v\nwant       %s", got, err, want)
	}
}

// filler gives values to all parts of a value, except one slot.
type filler struct {
	zeroed int // the slot that gets none; beyond the last: all do
	slots  int // that were met
}

func (f *filler) fill(v reflect.Value) {
	slot := f.slots
	f.slots++
	if slot == f.zeroed {
		return
	}
	if v.Type() == reflect.TypeFor[time.Time]() {
		v.Set(reflect.ValueOf(time.Date(2026, 11, 22, 3, 4, 5, slot, time.FixedZone("", 3600*(slot%3)))))
		return
	}
	if v.Type() == reflect.TypeFor[registry.Unknown]() {
		return // what a record was read with
	}
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			f.fill(v.Field(i))
		}
	case reflect.Slice:
		f.fillSlice(v)
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		for range slot % 3 {
			key, element := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
			f.fill(key)
			f.fill(element)
			v.SetMapIndex(key, element)
		}
	case reflect.Array:
		for i := range v.Len() {
			v.Index(i).SetUint(uint64(slot + i))
		}
	case reflect.String:
		texts := []string{"plain", "quoted \" \\ <&>", "control \x00\n\x7f", "not UTF-8 \xff", "ä \u2028 😀", "'`/"}
		v.SetString(fmt.Sprint(texts[slot%len(texts)], slot))
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		v.SetUint(uint64(slot%255) + 1)
	default:
		panic(fmt.Sprintf("registrytest: cannot fill a %s", v.Type()))
	}
}

// fillSlice makes v two elements long or, for the slot behind it, empty.
func (f *filler) fillSlice(v reflect.Value) {
	slot := f.slots
	f.slots++
	if slot == f.zeroed {
		v.Set(reflect.MakeSlice(v.Type(), 0, 0))
		return
	}
	v.Set(reflect.MakeSlice(v.Type(), 2, 2))
	for i := range v.Len() {
		f.fill(v.Index(i))
	}
}
