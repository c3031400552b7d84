package registry_test

import (
	"encoding/json"
	"testing"
	"time"

	"moorage/registry"
	"moorage/registry/registrytest"
)

func TestValuesThatEncodeThemselves(t *testing.T) {
	t.Parallel()
	t.Run("pointer", func(t *testing.T) { t.Parallel(); registrytest.EncodesAsJSON[registry.Pointer](t) })
	t.Run("change", func(t *testing.T) { t.Parallel(); registrytest.EncodesAsJSON[registry.Change](t) })
}

// A year that RFC 3339 cannot write is refused, as package encoding/json does.
func TestEncodeRefusesTimesWithoutAForm(t *testing.T) {
	t.Parallel()
	never := time.Date(10_000, 1, 1, 0, 0, 0, 0, time.UTC)
	for _, value := range []registry.Value{registry.Pointer{Since: never}, registry.Pointer{ReplayableUntil: never}, registry.Change{Time: never}, registry.Task{Created: never}} {
		if encoded, err := registry.Encode(value); err == nil {
			t.Errorf("%T was encoded as %s", value, encoded)
		}
	}
}

// Each byte alone, because one that needs an escape hides that another one was forgotten.
func TestAppendText(t *testing.T) {
	t.Parallel()
	texts := []string{"", "plain", "\u2028", "\u2029", "\ufffd", "\U0001f600", "\xed\xa0\x80", "\xc3(", "\xf0\x9f\x98"}
	for b := range 256 {
		texts = append(texts, string([]byte{byte(b)}), "a"+string([]byte{byte(b)})+"z")
		for at := range 8 { // of eight bytes that are looked at together
			texts = append(texts, "abcdefgh"+"ABCDEFGH"[:at]+string([]byte{byte(b)})+"ABCDEFGH"[at+1:]+"z")
		}
	}
	for _, text := range texts {
		want, err := json.Marshal(text)
		if err != nil {
			t.Fatal(err)
		}
		if got := registry.AppendText([]byte("x"), text); string(got) != "x"+string(want) {
			t.Errorf("%q is written as %s, want x%s", text, got, want)
		}
	}
}

func FuzzPointerEncodes(f *testing.F) { registrytest.EncodesFuzzedAsJSON[registry.Pointer](f) }

func FuzzChangeEncodes(f *testing.F) { registrytest.EncodesFuzzedAsJSON[registry.Change](f) }
