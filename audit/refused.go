package audit

import (
	"sync"
	"time"
)

const (
	// refusedMax is the maximum number of pairs of address and reason that are counted in a minute.
	// Further pairs are counted under the address refusedOthers.
	refusedMax = 10_000
	// refusedOthers stands for all addresses that are not counted separately.
	refusedOthers = "others"
)

// refused counts refused credentials by address, reason and minute. The zero value is empty. It is
// safe for concurrent use.
type refused struct {
	mu     sync.Mutex // guards counts; no lock is taken under it
	counts map[refusal]int
	order  []refusal // the keys of counts, oldest first
}

type refusal struct {
	minute          int64 // number of the minute since 1970
	address, reason string
}

func (r *refused) add(address, reason string, now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	key := refusal{now.Unix() / 60, address, reason}
	if r.counts[key] == 0 {
		if len(r.order) >= refusedMax {
			key.address = refusedOthers
		}
		if r.counts[key] == 0 {
			r.order = append(r.order, key)
		}
	}
	if r.counts == nil {
		r.counts = make(map[refusal]int)
	}
	r.counts[key]++
}

// take returns a line for each count of the minutes before now, and removes these counts. If all is
// true, it takes all counts.
func (r *refused) take(now time.Time, all bool) (lines []Line) {
	r.mu.Lock()
	defer r.mu.Unlock()
	rest := r.order[:0]
	for _, key := range r.order {
		if !all && key.minute >= now.Unix()/60 {
			rest = append(rest, key)
			continue
		}
		lines = append(lines, Line{
			Time: time.Unix(key.minute*60, 0), Event: Refused, Address: key.address, Reason: key.reason,
			Count: r.counts[key],
		})
		delete(r.counts, key)
	}
	r.order = rest
	return lines
}
