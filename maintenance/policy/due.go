package policy

import "time"

// Facts holds the facts that a change records about the table version that it created.
type Facts struct {
	// Known is false if the change recorded no facts. Then the planner must check the table.
	Known     bool
	Snapshots int64
	First     time.Time // of the first snapshot in the document; zero if there is no snapshot
	// Files is the number of data files. It is negative if the number is unknown.
	Files int64
	Rules string // hash of the maintenance settings in the table itself
}

// Base is the state of a table after the last job of a kind, with the table's rules at that time.
type Base struct {
	Rule      string // hash of the rule; empty if the kind was never checked
	Rules     string // as in Facts
	Ran       time.Time
	Snapshots int64
	Files     int64
	// Interval is the cadence that the last pass set; zero means the interval of the rule.
	Interval time.Duration
}

// AheadMax is how far a snapshot's time may be ahead of the store's clock. If a table has a
// snapshot that is further ahead, none of its snapshots expires.
const AheadMax = time.Hour

// FewPause is the time for which a small number of old snapshots wait for more, so that they expire
// together.
const FewPause = 24 * time.Hour

const (
	// lookDelay is the time from a change of a table's rules to the check of the table. The delay
	// exists because several changes often come together.
	lookDelay = time.Minute
	// firstPass is the time until a table's first pass for orphans.
	firstPass = time.Hour
)

// Due returns when the planner must check a table for a type of job. It is called for a commit that
// recorded facts at about time now. base is the state after the type's last job. A zero result
// means that the commit makes nothing due.
//
// If the result is in the past, the check is due at once. The job reads the live table, and its
// decision depends on nothing else. So a time that is too early costs one check. No later commit
// has to correct a time that is too late, because the next check sets it again.
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

// snapshotsDue returns when the oldest snapshot since the last run may expire. Earlier snapshots do
// not matter: the last run kept them for a reason, and itself set the time of the next check.
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
		return now.Add(lookDelay) // the check finds out what the table waits for
	}
	due := first.Add(rule.Duration(MaxSnapshotAgeHours))
	if surplus < rule.Count(MinSnapshotsToExpire) {
		due = due.Add(FewPause)
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

// If the table has enough new files, compactionDue returns when it will have gone without a commit
// for long enough.
func compactionDue(facts Facts, base Base, rule Rule, now time.Time) time.Time {
	if facts.Files < 0 || facts.Files-base.Files < rule.Count(MinInputFiles) {
		return time.Time{}
	}
	return now.Add(rule.Duration(SettleMinutes))
}
