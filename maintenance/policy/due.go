package policy

import "time"

// Facts are what a change says of a version of a table that it made.
type Facts struct {
	// Known is false if the change said nothing. Then the table must be looked at.
	Known     bool
	Snapshots int64
	First     time.Time // of the first snapshot in the document; zero if there is none
	// Files is the total of data files; negative if nobody knows it.
	Files int64
	Rules string // hash of what the table itself says about its maintenance
}

// Base is how the last job of a kind left a table, and what was known of it then.
type Base struct {
	Rule      string // hash of the rule; empty: the kind was never looked at
	Rules     string // as in Facts
	Ran       time.Time
	Snapshots int64
	Files     int64
	// Interval is the cadence that the last pass set; zero: that of the rule.
	Interval time.Duration
}

// AheadMax is how far ahead of the store's clock a snapshot may be dated. A table with one that is
// further ahead waits.
const AheadMax = time.Hour

const (
	// lookDelay is when a table is looked at after its rules changed. Several changes mostly come
	// together.
	lookDelay = time.Minute
	// overdueMax is how long snapshots that may go wait for others, to go with them.
	overdueMax = 24 * time.Hour
	// firstPass is when a table's first pass for orphans is due.
	firstPass = time.Hour
)

// Due returns when a table is to be looked at for a type of job, which a commit with facts made at
// about now. Zero: not because of this commit. base is that of the type.
//
// A time that has passed means at once. The job looks at the live table, and decides by that alone:
// a time that is too early costs a look, and no commit is needed for one that is too late, because
// the next one sets it.
func Due(facts Facts, base Base, rule Rule, now time.Time) time.Time {
	switch {
	case !rule.IsActive():
		return time.Time{}
	case !facts.Known, base.Rule != "" && base.Rule != rule.Hash(), base.Rule != "" && base.Rules != facts.Rules:
		return now.Add(lookDelay)
	}
	switch rule.Type.Kind() {
	case Snapshots:
		return snapshotsDue(facts, base, rule, now)
	case Orphans:
		return orphansDue(base, rule, now)
	case Compact:
		return compactionDue(facts, base, rule, now)
	}
	return time.Time{}
}

// snapshotsDue returns when the oldest snapshot may go that came since the last run. What that left
// stays for reasons of its own, and the run itself said when to look at it again.
func snapshotsDue(facts Facts, base Base, rule Rule, now time.Time) time.Time {
	keep, first := rule.Count(MinSnapshotsToKeep), facts.First
	if !base.Ran.IsZero() {
		if keep = max(keep, base.Snapshots); base.Ran.After(first) {
			first = base.Ran
		}
	}
	surplus := facts.Snapshots - keep
	if surplus <= 0 || facts.First.IsZero() {
		return time.Time{}
	}
	if first.After(now.Add(AheadMax)) {
		return now.Add(lookDelay) // the look says what the table waits for
	}
	due := first.Add(rule.Duration(MaxSnapshotAgeHours))
	if surplus < rule.Count(MinSnapshotsToExpire) {
		due = due.Add(overdueMax)
	}
	return due
}

// orphansDue returns when the next pass is due after a commit.
func orphansDue(base Base, rule Rule, now time.Time) time.Time {
	if base.Ran.IsZero() {
		return now.Add(firstPass)
	}
	interval := base.Interval
	if interval <= 0 {
		interval = rule.Duration(IntervalDays)
	}
	return base.Ran.Add(interval)
}

// compactionDue returns when there are enough new files, and the table has rested.
func compactionDue(facts Facts, base Base, rule Rule, now time.Time) time.Time {
	if facts.Files < 0 || facts.Files-base.Files < rule.Count(MinInputFiles) {
		return time.Time{}
	}
	return now.Add(rule.Duration(SettleMinutes))
}
