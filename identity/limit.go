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
	// lookupsMax is how many keys are looked up in the store in a second, because tokens name them.
	// Forged tokens name as many others. lookupsShare is how many of them an address may cause once
	// three quarters are used up.
	lookupsMax, lookupsShare = 200, 10
)

// limiter counts by address what happened in the present second. It is safe for concurrent use.
type limiter struct {
	now func() time.Time
	max int // for an address
	// totalMax bounds what all addresses do together; 0: nothing does. With it max counts only once
	// three quarters of it are used up, so that an address alone gets most of what there is, and
	// leaves something for the others.
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

// newSharing returns a limiter of what all addresses do together, in which each has a share.
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

// hasRoomLocked reports whether what is counted under key may happen once more. l.mu must be held.
func (l *limiter) hasRoomLocked(key string) bool {
	switch {
	case l.totalMax == 0, l.total >= l.totalMax/4*3 && l.total < l.totalMax:
		return l.counts[key] < l.max
	}
	return l.total < l.totalMax
}

// keyLocked returns under which key an address is counted, in the present second. l.mu must be
// held.
func (l *limiter) keyLocked(address string) string {
	if second := l.now().Unix(); second != l.second {
		l.second, l.total = second, 0
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
