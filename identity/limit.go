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
	// lookupsMax is how many unknown keys that tokens name are looked up in the store in a second.
	// Forged tokens can name any number of them. lookupsShare is how many lookups an address may
	// cause once three quarters of lookupsMax are used up.
	lookupsMax, lookupsShare = 200, 10
)

// limiter counts events by address in the present second. It is safe for concurrent use.
type limiter struct {
	now func() time.Time
	max int // for an address
	// totalMax bounds the events of all addresses together; 0 for no such bound. With it, max
	// counts only once three quarters of totalMax are used up. So a single address gets most of the
	// total, and leaves a part for the others.
	totalMax int

	mu     sync.Mutex // guards the fields below; leaf
	second int64
	counts map[string]int
	total  int
}

func newLimiter(now func() time.Time, most int) *limiter {
	return &limiter{now: now, max: most, counts: map[string]int{}}
}

// minutesOf returns a clock on which a minute lasts a second, so that a limiter counts by minutes.
func minutesOf(now func() time.Time) func() time.Time {
	return func() time.Time { return time.Unix(now().Unix()/60, 0) }
}

// newSharing returns a limiter of the events of all addresses together, in which each address has a
// share.
func newSharing(now func() time.Time, total, share int) *limiter {
	return &limiter{now: now, max: share, totalMax: total, counts: map[string]int{}}
}

// allows reports whether address may fail once more.
func (l *limiter) allows(address string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.hasRoomLocked(l.keyLocked(address))
}

// add counts a failure. It returns false if there were too many.
func (l *limiter) add(address string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	key := l.keyLocked(address)
	if !l.hasRoomLocked(key) {
		return false
	}
	l.counts[key]++
	l.total++
	return true
}

// hasRoomLocked reports whether one more event may be counted under key. l.mu must be held.
func (l *limiter) hasRoomLocked(key string) bool {
	switch {
	case l.totalMax == 0, l.total >= l.totalMax/4*3 && l.total < l.totalMax:
		return l.counts[key] < l.max
	}
	return l.total < l.totalMax
}

// keyLocked returns the key that an address is counted under in the present second. l.mu must be
// held.
func (l *limiter) keyLocked(address string) string {
	if second := l.now().Unix(); second != l.second {
		l.second, l.total = second, 0
		clear(l.counts)
	}
	// The owner of one IPv6 address usually has 2^64 of them.
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
