package histories

import "math"

// period limits the time in which a version was current, as far as a history shows it. The version
// became current between from and to, and was no longer current after until.
type period struct{ from, to, until int64 }

// periods holds the periods of the versions that are known to have been current, by location. The
// search for an order is short only if each call has few possible places. A commit that waits for
// others takes long, so the period of its version reduces the number of its possible places.
type periods map[string]period

// periods returns the periods of the versions that were seen.
func (k *Checker) periods(events []Event, seen map[string]int64) periods {
	calls := map[string]Event{}
	last := map[string]int64{} // for each version, when the last call with it in the answer began
	for _, event := range events {
		calls[event.Call.ID] = event
		if event.Answer.Err == nil {
			last[event.Answer.Location] = max(last[event.Answer.Location], event.From)
		}
	}
	all := periods{}
	var from func(location string) int64
	from = func(location string) int64 {
		if known, ok := all[location]; ok {
			return known.from
		}
		v, earliest := k.files[location], int64(0)
		for _, author := range v.authors {
			earliest = max(earliest, calls[author].From)
		}
		if v.base != "" {
			earliest = max(earliest, from(v.base), last[v.base])
		}
		all[location] = period{from: earliest, to: math.MaxInt64, until: math.MaxInt64}
		return earliest
	}
	for location := range seen {
		from(location)
	}
	for location, to := range seen {
		made := all[location]
		made.to = to
		all[location] = made
		if base, ok := all[k.files[location].base]; ok {
			base.until = min(base.until, to)
			all[k.files[location].base] = base
		}
	}
	return all
}

// arePossible returns false if a version was seen before it could have been made.
func (p periods) arePossible() bool {
	for _, made := range p {
		if made.from > made.to {
			return false
		}
	}
	return true
}

// narrow returns event with a shorter time: the part in which the call can have happened according
// to the period of the version in its answer. If no time remains, it returns event unchanged.
func (p periods) narrow(event Event) Event {
	answered, ok := p[event.Answer.Location]
	if !ok {
		return event
	}
	last := answered.until
	if event.Call.Action.Writes() {
		last = answered.to
	}
	if from, to := max(event.From, answered.from), min(event.To, last); from <= to {
		event.From, event.To = from, to
	}
	return event
}
