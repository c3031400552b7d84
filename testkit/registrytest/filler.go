package registrytest

import (
	"fmt"
	"reflect"
	"time"

	"moorage/registry"
)

// filler fills all parts of a value, except one. The parts are called slots.
type filler struct {
	zeroed int // index of the slot that stays empty; if out of range, all slots are filled
	slots  int // number of slots visited so far
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
		return // the unknown members kept from reading
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

// fillSlice makes v two elements long. The slice itself is another slot; if that slot stays empty,
// so does v.
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
