package identity

import (
	"net/netip"
	"sync"
	"time"
)

const (
	// failuresMax is how many credentials of one address may be refused in a second. Verifying a
	// signature takes up to 0.1 ms, so an address costs at most a two-hundredth of a processor.
	failuresMax = 50
	// addressesMax bounds the memory. Addresses beyond it share one count.
	addressesMax = 10_000
)

// limiter counts by address what happened in the present second. It is safe for concurrent use.
type limiter struct {
	now func() time.Time
	max int

	mu     sync.Mutex // guards the fields below; leaf
	second int64
	counts map[string]int
}

func newLimiter(now func() time.Time, most int) *limiter {
	return &limiter{now: now, max: most, counts: map[string]int{}}
}

// allows reports whether address may fail once more.
func (l *limiter) allows(address string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.counts[l.keyLocked(address)] < l.max
}

// add counts a failure. It returns false if there were too many.
func (l *limiter) add(address string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	key := l.keyLocked(address)
	if l.counts[key] >= l.max {
		return false
	}
	l.counts[key]++
	return true
}

// keyLocked returns under which key an address is counted, in the present second. l.mu must be
// held.
func (l *limiter) keyLocked(address string) string {
	if second := l.now().Unix(); second != l.second {
		l.second = second
		clear(l.counts)
	}
	// Who has one IPv6 address mostly has 2^64 of them.
	if ip, err := netip.ParseAddr(address); err == nil && ip.Is6() && !ip.Is4In6() {
		if prefix, err := ip.WithZone("").Prefix(64); err == nil {
			address = prefix.String()
		}
	}
	if _, known := l.counts[address]; !known && len(l.counts) >= addressesMax {
		return ""
	}
	return address
}
