package identity

import (
	"net/netip"
	"sync"
	"time"
)

const (
	// failuresMax is the maximum number of refused credentials from one address in a second.
	// Verifying a signature takes up to 0.1 ms, so an address costs at most a two-hundredth of a
	// processor.
	failuresMax = 50
	// addressesMax is the maximum number of addresses that are counted separately. Further
	// addresses share one count.
	addressesMax = 10_000
	// Tokens can refer to keys that this node does not know. lookupsMax is the maximum number of
	// store lookups for such keys in a second, because forged tokens can name any number of keys.
	// When three quarters of lookupsMax are used up, an address that has caused lookupsShare
	// lookups may cause no more.
	lookupsMax, lookupsShare = 200, 10
)

// limiter counts the events of the present second, by address. It is safe for concurrent use.
type limiter struct {
	now func() time.Time
	max int // for one address
	// totalMax is the maximum number of events of all addresses together; 0 means no such limit.
	// With totalMax, the limit max applies only once three quarters of totalMax are used up. So a
	// single address can use most of the total, and the rest is left to other addresses.
	totalMax int

	mu     sync.Mutex // guards the fields below; no lock is taken under it
	second int64
	counts map[string]int
	total  int
}

func newLimiter(now func() time.Time, most int) *limiter {
	return &limiter{now: now, max: most, counts: map[string]int{}}
}

// minutesOf returns a clock that advances by one second in each minute. With it, a limiter counts
// by minutes.
func minutesOf(now func() time.Time) func() time.Time {
	return func() time.Time { return time.Unix(now().Unix()/60, 0) }
}

// newSharing returns a limiter that allows total events of all addresses together. share is the
// limit for one address near the total.
func newSharing(now func() time.Time, total, share int) *limiter {
	return &limiter{now: now, max: share, totalMax: total, counts: map[string]int{}}
}

// allows reports whether another failure of address is allowed.
func (l *limiter) allows(address string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.hasRoomLocked(l.keyLocked(address))
}

// add counts a failure of address. It returns false if there were already too many.
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

// hasRoomLocked reports whether another event may be counted under key. l.mu must be held.
func (l *limiter) hasRoomLocked(key string) bool {
	switch {
	case l.totalMax == 0, l.total >= l.totalMax/4*3 && l.total < l.totalMax:
		return l.counts[key] < l.max
	}
	return l.total < l.totalMax
}

// keyLocked returns the key under which address is counted in the present second. l.mu must be
// held.
func (l *limiter) keyLocked(address string) string {
	if second := l.now().Unix(); second != l.second {
		l.second, l.total = second, 0
		clear(l.counts)
	}
	// A client with an IPv6 address usually has 2^64 addresses.
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
