package registrytest

import (
	"bytes"
	"encoding"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"moorage/registry"
)

// KeepsUnknown fails t unless reading and writing a T keeps JSON members for which T has no field.
// It checks T itself, and every struct within T.
func KeepsUnknown[T registry.Value](t *testing.T) {
	t.Helper()
	sample, added := laterSample(reflect.TypeFor[T](), 0)
	value, err := json.Marshal(sample)
	if err != nil {
		t.Fatal(err)
	}
	record := registry.Record{Key: registry.FormatKey(), ETag: registry.ETag{1}, Value: value}
	read, err := registry.Decode[T](record)
	if err != nil {
		t.Fatalf("decode %s: %v", value, err)
	}
	changed := read // like an operation that changes the value that it read
	written, err := registry.Encode(changed)
	if err != nil {
		t.Fatal(err)
	}
	if got := bytes.Count(written, []byte(laterName)); got != added {
		t.Errorf("%T: %d of %d members survived:\n%s\nwas written as\n%s", read, got, added, value, written)
	}
	var want, got any
	if err := json.Unmarshal(value, &want); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(written, &got); err != nil {
		t.Fatalf("%s is no JSON: %v", written, err)
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%T:\n%s\nwas written as\n%s", read, value, written)
	}
	record.Value = written
	again, err := registry.Decode[T](record)
	if err != nil {
		t.Fatalf("decode %s: %v", written, err)
	}
	if second, err := registry.Encode(again); err != nil || !bytes.Equal(second, written) {
		t.Errorf("%s\nwas written again as %s, %v", written, second, err)
	}
}

// laterName is the prefix of the names of members that a later version might add.
const laterName = "member of a later version"

// laterSample returns the JSON form of a value of type t. Every struct in it has a member of a
// later version; added is the number of these members. Different n give different values.
func laterSample(t reflect.Type, n int) (sample any, added int) {
	if t.Kind() == reflect.Pointer {
		return laterSample(t.Elem(), n)
	}
	if reflect.PointerTo(t).Implements(reflect.TypeFor[encoding.TextUnmarshaler]()) {
		return textOf(t, n), 0
	}
	switch t.Kind() {
	case reflect.Struct:
		return laterObject(t, n)
	case reflect.Slice:
		first, more := laterSample(t.Elem(), n+1)
		second, _ := laterSample(t.Elem(), n+2)
		return []any{first, second}, 2 * more
	case reflect.Map:
		return map[string]any{fmt.Sprint("any name ", n): "x", laterName[:6]: `quoted " \ {[,]}`}, 0
	case reflect.Bool:
		return true, 0
	case reflect.String:
		return fmt.Sprintf(`text %d " \ {"a":[1}`, n), 0
	}
	return n%200 + 1, 0
}

// laterObject is like laterSample, for a struct.
func laterObject(t reflect.Type, n int) (sample map[string]any, added int) {
	sample = map[string]any{
		fmt.Sprint(laterName, n):      map[string]any{"a": []any{1.5, nil, true, "]}", map[string]any{}}, "b": `"\`},
		fmt.Sprint(laterName, " ", n): n,
	}
	added = len(sample)
	for i := range t.NumField() {
		if name, _, _ := strings.Cut(t.Field(i).Tag.Get("json"), ","); name != "" {
			value, more := laterSample(t.Field(i).Type, n+7*i)
			sample[name], added = value, added+more
		}
	}
	return sample, added
}

// textOf returns a text that t accepts. t must be a type that decodes itself.
func textOf(t reflect.Type, n int) string {
	value := reflect.New(t).Elem()
	filled := filler{zeroed: -1, slots: n}
	if t.Kind() == reflect.Uint8 {
		value.SetUint(1)
	} else {
		filled.fill(value)
	}
	text, err := value.Interface().(encoding.TextMarshaler).MarshalText()
	if err != nil {
		panic(fmt.Sprintf("registrytest: write a %s: %v", t, err))
	}
	return string(text)
}
