package registrytest

import "time"

// clockDifferenceMax is the maximum difference, in a test, between a store's clock and this
// process's. Both run on one machine.
const clockDifferenceMax = time.Minute

func timeOneClock(h *harness) {
	began := time.Now()
	first, err := h.store.Time(h.ctx)
	if err != nil {
		h.Fatalf("time: %v", err)
	}
	h.put(key("a"), 0, "1")
	second, err := h.store.Time(h.ctx)
	if err != nil {
		h.Fatalf("time: %v", err)
	}
	if second.Before(first) {
		h.Errorf("the time was %s, and after an Apply %s", first, second)
	}
	if first.Before(began.Add(-clockDifferenceMax)) || second.After(time.Now().Add(clockDifferenceMax)) {
		h.Errorf("the time was %s and %s, when this process's was %s", first, second, began)
	}
}
