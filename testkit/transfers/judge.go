package transfers

import (
	"fmt"
	"maps"
	"slices"

	"moorage/testkit/servers"
)

// problemsMax is the maximum number of problems of one kind that are reported.
const problemsMax = 20

// judge compares a history with the versions of the tables.
type judge struct {
	chains map[string][]Version // by table; the first version is the version before the history
	events map[string]Event     // by transfer
	places map[string]place     // by location

	problems []string
}

// place is the place of a version in its table's chain.
type place struct {
	table string
	index int
}

// Judge returns the problems of a history. For each table, chains lists all versions that were
// current, from the version before the history to the last version. The chain of a table created
// during the history begins with an empty version.
func Judge(chains map[string][]Version, history History) []string {
	j := &judge{chains: chains, events: map[string]Event{}, places: map[string]place{}, problems: history.Failures}
	for _, event := range history.Events {
		j.events[event.ID] = event
	}
	for table, chain := range chains {
		for i, v := range chain {
			if v != (Version{}) {
				j.places[v.Location] = place{table, i}
			}
		}
	}
	j.versions()
	j.transfers()
	j.sums(history.Sweeps)
	j.order(history.Loads)
	return j.problems
}

func (j *judge) report(format string, args ...any) {
	j.problems = append(j.problems, fmt.Sprintf(format, args...))
}

// tables returns the names of all tables, in order.
func (j *judge) tables() []string { return slices.Sorted(maps.Keys(j.chains)) }

// versions compares each version with the previous version, and with the transfer that made it.
func (j *judge) versions() {
	for _, table := range j.tables() {
		chain := j.chains[table]
		for i := 1; i < len(chain); i++ {
			before, v := chain[i-1], chain[i]
			event, known := j.events[v.Transfer]
			part := slices.IndexFunc(event.Parts, func(p Part) bool { return p.Table == table })
			switch {
			case v.Base != before.Location:
				j.report("%s of %s was made on %s, but %s stands before it", v.Location, table, v.Base, before.Location)
			case !known || part < 0 || event.Parts[part].Mode == Requires:
				j.report("%s of %s was made by %q, which did not ask for it", v.Location, table, v.Transfer)
			case v.Counter != before.Counter+event.Parts[part].Change:
				j.report("an update was lost: %s has %d in %s, which had %d before it", event, v.Counter, table,
					before.Counter)
			}
		}
	}
}

// transfers checks which tables contain each transfer.
func (j *judge) transfers() {
	made := map[string]map[string]int{}
	for table, chain := range j.chains {
		for _, v := range chain[1:] {
			if made[v.Transfer] == nil {
				made[v.Transfer] = map[string]int{}
			}
			made[v.Transfer][table]++
		}
	}
	for _, id := range slices.Sorted(maps.Keys(j.events)) {
		event := j.events[id]
		wanted, there := 0, 0
		for _, p := range event.Parts {
			if p.Mode == Requires {
				continue
			}
			wanted++
			there += min(made[id][p.Table], 1)
			if made[id][p.Table] > 1 {
				j.report("%s happened %d times in %s", event, made[id][p.Table], p.Table)
			}
		}
		switch {
		case event.Outcome == servers.Acknowledged && there < wanted:
			j.report("%s was acknowledged and is in %d of %d tables", event, there, wanted)
		case event.Outcome == servers.Refused && there > 0:
			j.report("%s was refused and is in %d of %d tables", event, there, wanted)
		case there > 0 && there < wanted:
			j.report("%s, whose outcome is unknown, is in %d of %d tables", event, there, wanted)
		}
	}
}

// sums compares the sums of all counters at the beginning, at the end and in between.
func (j *judge) sums(sweeps []Sweep) {
	begin, end := 0, 0
	for _, chain := range j.chains {
		begin, end = begin+chain[0].Counter, end+chain[len(chain)-1].Counter
	}
	if begin != end {
		j.report("the sum of all counters was %d and is %d", begin, end)
	}
	last := map[int]map[string]string{} // each client's last locations, by table
	for _, sweep := range sweeps {
		if maps.Equal(last[sweep.Client], sweep.Tables) { // no table has changed in between
			sum := 0
			for table, location := range sweep.Tables {
				if at, known := j.places[location]; known {
					sum += j.chains[table][at.index].Counter
				}
			}
			if sum != begin {
				j.report("client %d saw the sum %d, want %d, in %v", sweep.Client, sum, begin, sweep.Tables)
			}
		}
		last[sweep.Client] = sweep.Tables
	}
}

// moved returns the index of the first version after a place whose head differs from that of the
// version at the place. If there is none, it returns the length of the chain.
func (j *judge) moved(at place) int {
	chain := j.chains[at.table]
	for i := at.index + 1; i < len(chain); i++ {
		if chain[i].Head != chain[at.index].Head {
			return i
		}
	}
	return len(chain)
}
