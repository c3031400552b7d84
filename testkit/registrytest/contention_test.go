package registrytest

import (
	"crypto/rand"
	"errors"
	"testing"

	"moorage/registry"
	"moorage/registry/memory"
)

// A read that fails under contention is reported as an error of its goroutine. A panic there would
// also end the tests of all other stores.
func TestReadsFailUnderContention(t *testing.T) {
	t.Parallel()
	for _, failing := range []string{MethodGet, MethodList} {
		store := Faulty(memory.New(rand.Reader), func(_ int, method string) Action {
			if method == failing {
				return Fail
			}
			return Pass
		})
		h := newHarness(t, store)
		if err := h.applyAndRead(1, 0); !errors.Is(err, ErrInjected) {
			t.Errorf("%s fails behind an Apply: got %v, want ErrInjected", failing, err)
		}
	}
	h := newHarness(t, Faulty(memory.New(rand.Reader), Nth(2, Fail)))
	h.put(key("a"), registry.StateOwner, "")
	if created, err := h.createOrRead(key("a"), 0); created || !errors.Is(err, ErrInjected) {
		t.Errorf("Get fails behind a refused create: created %t, %v, want ErrInjected", created, err)
	}
}
