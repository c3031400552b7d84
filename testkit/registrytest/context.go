package registrytest

import (
	"context"
	"errors"

	"moorage/registry"
)

func contextEnded(h *harness) {
	etag := h.put(key("a"), registry.StateOwner, "1")
	live := h.ctx
	ended, cancel := context.WithCancel(live)
	cancel()
	h.ctx = ended
	errs := h.callAll()
	h.ctx = live
	for method, err := range errs {
		if !errors.Is(err, context.Canceled) || errors.Is(err, registry.ErrUnknown) {
			h.Errorf("%s with an ended context: %v, want context.Canceled and nothing else", method, err)
		}
	}
	h.wantRecord(h.get(key("a")), key("a"), etag, registry.StateOwner, "1")
}
