package due

import (
	"context"
	"fmt"
	"time"

	"moorage"
	"moorage/catalog"
	"moorage/ledger"
	"moorage/maintenance/jobs"
	"moorage/maintenance/policy"
	"moorage/metadata"
	"moorage/registry"
)

const (
	// pausePause is the time until the planner checks a paused table again. If a job already works
	// on the table, the planner checks the table jobPause after the planned continuation of the
	// job.
	pausePause = 10 * time.Minute
	jobPause   = time.Hour
	// seenMin is the minimum time that the server must have known a snapshot before it may expire.
	// The snapshot's timestamp does not count, because it comes from a client's clock. If the
	// rule's maximum age is shorter than seenMin, the maximum age is used instead.
	seenMin = time.Hour
	// formerPause is the time between two searches for files that have left the table's metadata
	// log. A search covers all versions younger than the retention of change records. For every
	// hundred of these versions, it reads one metadata file.
	formerPause = 24 * time.Hour
)

// Outcomes of checks, as spelled in schedules and metrics.
const (
	outcomeDone    = "done"
	outcomeNothing = "nothing"
	outcomeLater   = "later"
	outcomeBlocked = "blocked"
	outcomeHeld    = "held"
	outcomeOff     = "off"
)

// check is a check of one table that is due.
type check struct {
	*Planner
	pointer registry.ID
	kind    policy.Kind
	at      time.Time
	key     registry.Key

	table    registry.Pointer
	schedule Schedule
	job      registry.KindSchedule // the kind's part of the schedule
	pauses   registry.Record
	policies *policy.Matcher
	rule     policy.Rule          // by policies and the version that was read
	summary  registry.Summary     // of the version that was read
	met      bool                 // whether the summary is known
	version  registry.Condition   // requires the version of the table that was read first
	required []registry.Condition // for settle: the check's basis is unchanged
	now      time.Time            // by the store's clock
	outcome  string
}

func (l *check) run(ctx context.Context) error {
	now, err := l.ledger.Time(ctx)
	if err != nil {
		return err
	}
	l.now = now
	records, err := l.ledger.Get(ctx, registry.PointerKey(l.pointer), registry.ScheduleKey(l.pointer),
		registry.DueBlockedKey(l.pointer, string(l.kind)), registry.PauseKey(),
		registry.JobKey(l.pointer, string(l.kind)))
	if err != nil {
		return err
	}
	if l.schedule, err = DecodeSchedule(l.pointer, records[1]); err != nil {
		return err
	}
	l.schedule.Value = AsOf(l.schedule.Value, l.now)
	l.job = l.schedule.Value.Job(string(l.kind))
	if !l.job.Due.Equal(l.at) {
		// The schedule has a different time, so this due record is obsolete.
		return l.apply(ctx, Change{Writes: []registry.Write{registry.Delete(l.key)}})
	}
	if !records[0].Exists() {
		l.outcome = outcomeOff
		return l.apply(ctx, l.schedule.End())
	}
	if l.table, err = ledger.Decode[registry.Pointer](records[0]); err != nil {
		return err
	}
	l.version = registry.ETagIs(records[0].Key, records[0].ETag)
	switch {
	case records[0].State != registry.StateLive || l.table.View:
		return l.settle(ctx, outcomeOff, time.Time{}, "")
	case records[4].Exists():
		job, err := ledger.Decode[registry.Job](records[4])
		if err != nil {
			return err
		}
		next := l.now
		if job, _ = job.AsOf(l.now); job.NotBefore.After(next) {
			next = job.NotBefore
		}
		return l.settle(ctx, outcomeLater, next.Add(jobPause), "")
	case records[2].Exists():
		l.job.Held = HeldBlocked
		return l.settle(ctx, outcomeBlocked, time.Time{}, l.job.Error)
	}
	l.pauses = records[3]
	if paused, err := jobs.IsPaused(l.pauses, l.table); paused || err != nil { // an unreadable pause pauses all
		return l.settle(ctx, outcomeLater, l.now.Add(pausePause), "")
	}
	if !l.enter(ctx, l.table.Warehouse, l.kind, l.pointer) {
		return nil // the table stays due
	}
	defer l.leave(l.pointer)
	lane := l.lanes[l.kind]
	select {
	case lane <- struct{}{}:
		defer func() { <-lane }()
	case <-ctx.Done():
		return ctx.Err()
	}
	return l.decide(ctx)
}

// decide acts on the table's present version and the policies that apply to it.
func (l *check) decide(ctx context.Context) error {
	version, _, err := l.tableByID(ctx, l.pointer)
	if err != nil {
		return l.failed(ctx, err)
	}
	document := version.Document.(*metadata.Document)
	l.met, l.summary = true, registry.Summary(document.Summary())
	l.policies = l.config.Policies.Current()
	l.rule = l.ruleOf(version)
	if !l.rule.IsActive() {
		if settled, err := l.requireUnchanged(ctx, l.policies); err != nil || !settled {
			return err // the table stays due
		}
		// The hash stays: if the rule returns, it continues from the earlier results.
		l.job.Held = l.rule.Held
		outcome := outcomeOff
		if l.rule.Enabled {
			outcome = outcomeHeld
		}
		return l.settle(ctx, outcome, time.Time{}, l.rule.Held)
	}
	l.job.Rule = l.rule.Hash()
	required, err := l.requires(ctx, l.policies)
	if err != nil || required == nil {
		return l.failed(ctx, err)
	}
	unpaused, err := jobs.RequirePauses(ctx, l.ledger, l.pauses)
	if err != nil {
		return l.failed(ctx, err)
	}
	required = append(required, unpaused)
	if l.kind == policy.Orphans {
		return l.findOrphans(ctx, required)
	}
	return l.expire(ctx, document, required)
}

// ruleOf returns the rule of a version of the table.
func (l *check) ruleOf(version *catalog.Version) policy.Rule {
	t, _ := policy.TypeOf(l.kind)
	properties := version.Document.(*metadata.Document).Properties()
	return policy.Effective(l.policies.Chain(l.pointer, version.Ident), properties)[t]
}

// isOther reports whether the rule of a version differs from that of the version that was read.
func (l *check) isOther(version *catalog.Version) bool {
	return l.ruleOf(version).Hash() != l.rule.Hash()
}

// snapshotAhead explains why no snapshot of the table may expire now. It returns "" if snapshots
// may expire. A snapshot's time comes from its writer's clock. If that time is ahead of the store's
// clock, one of the two clocks is wrong, and it is not known which snapshots are old.
func (l *check) snapshotAhead(document *metadata.Document) string {
	limit := l.now.Add(policy.AheadMax).UnixMilli()
	for snapshot := range document.Snapshots() {
		if snapshot.TimestampMS > limit {
			return fmt.Sprintf("The snapshot %d is dated %s, which is ahead of the store's clock. "+
				"The table waits until then, or until the snapshot is gone", snapshot.ID,
				time.UnixMilli(snapshot.TimestampMS).UTC().Format(time.RFC3339))
		}
	}
	return ""
}

// requireUnchanged makes settle require that the table's version and the policies of matcher are
// unchanged. It returns false if the policies have changed, because a changed policy may have made
// the table due.
func (l *check) requireUnchanged(ctx context.Context, matcher *policy.Matcher) (bool, error) {
	l.outcome = outcomeLater
	fresh, required, err := l.config.Policies.ReloadFor(ctx, l.table.Warehouse)
	if err != nil || required == nil || fresh.Hash() != matcher.Hash() {
		return false, err
	}
	l.required = append(required, l.version)
	return true, nil
}

// requires returns conditions that fail if the policies differ from matcher. If the policies
// already differ, it returns nil, and the table stays due.
func (l *check) requires(ctx context.Context, matcher *policy.Matcher) ([]registry.Condition, error) {
	warehouse, conditions, err := l.config.Policies.ConditionsFor(ctx, matcher, l.table.Warehouse)
	if !warehouse.IsZero() {
		l.schedule.Value.Warehouse = warehouse
	}
	return conditions, err
}

// expire begins an expiry of snapshots, or settles why there is none.
func (l *check) expire(ctx context.Context, document *metadata.Document, required []registry.Condition) error {
	if ahead := l.snapshotAhead(document); ahead != "" {
		return l.settle(ctx, outcomeLater, l.now.Add(jobPause), ahead)
	}
	schedule, known := l.schedule.Value, l.knownFor()
	if schedule.Seq > 0 && l.now.Before(schedule.SeqAt.Add(known)) {
		// The server has not known the snapshots for long enough to trust their timestamps.
		return l.settle(ctx, outcomeLater, schedule.SeqAt.Add(known), "")
	}
	if schedule.Seq == 0 && l.summary.Seq > 0 && known > 0 {
		l.recordSeq()
		return l.settle(ctx, outcomeLater, l.now.Add(known), "")
	}
	if known == 0 {
		schedule.Seq = 0
	}
	settings := SnapshotSettings(l.rule, schedule.Seq)
	began, err := l.config.Jobs.Expire(ctx, l.pointer, settings, l.extra(required))
	if err != nil {
		return l.failed(ctx, err)
	}
	outcome := outcomeDone
	if began.Outcome == jobs.OutcomeNothing {
		outcome = outcomeNothing
		l.required = append(required[:len(required):len(required)], l.version)
	} else {
		l.began()
		if err := l.readAgain(ctx); err != nil {
			return err // the next check finds the job
		}
	}
	former := l.trimFormer(ctx, settings, required)
	return l.ran(ctx, outcome, settings, former)
}

// trimFormer deletes metadata files that have left the metadata log. It returns the time of the
// next search, or zero if no further file is known to become too old. If trimFormer fails, the
// snapshots still expire, and a later check deletes the files. It deletes no file once required,
// the conditions of the policies and pauses, no longer hold.
func (l *check) trimFormer(ctx context.Context, settings jobs.SnapshotSettings,
	required []registry.Condition) time.Time {
	if settings.KeepFiles {
		return time.Time{}
	}
	if next := l.job.Former.Add(formerPause); next.After(l.now) && l.job.Mode != ModeOperator {
		return next
	}
	former, err := l.config.Jobs.TrimFormer(ctx, l.pointer, func(present *catalog.Version) error {
		hold, err := l.stillHold(ctx, required)
		if err == nil && (!hold || l.isOther(present)) {
			err = jobs.ErrBusy
		}
		return err
	})
	if err != nil {
		l.log.WarnContext(ctx, "could not delete metadata files that left the metadata log; the next check goes on",
			"table", l.table.Identifier().String(), "error", moorage.OneLine(err.Error()))
		return l.now.Add(jobPause)
	}
	if former == (catalog.Former{}) {
		return time.Time{}
	}
	l.job.Former = l.now
	if former.Files > 0 {
		l.rereadVersion(ctx)
	}
	return former.Next
}

// stillHold reports whether conditions hold now.
func (l *check) stillHold(ctx context.Context, conditions []registry.Condition) (bool, error) {
	keys := make([]registry.Key, len(conditions))
	for i, condition := range conditions {
		keys[i] = condition.Key
	}
	records, err := l.ledger.Get(ctx, keys...)
	if err != nil {
		return false, err
	}
	for i, condition := range conditions {
		if !condition.Met(records[i]) {
			return false, nil
		}
	}
	return true, nil
}

// rereadVersion makes the check use the table record that TrimFormer wrote, unless the table has a
// newer version.
func (l *check) rereadVersion(ctx context.Context) {
	records, err := l.ledger.Get(ctx, registry.PointerKey(l.pointer))
	if err != nil || !records[0].Exists() {
		return
	}
	now, err := ledger.Decode[registry.Pointer](records[0])
	if err != nil || now.MetadataLocation != l.table.MetadataLocation || now.Registration != l.table.Registration ||
		!now.Identifier().Equal(l.table.Identifier()) {
		return
	}
	written := registry.ETagIs(records[0].Key, records[0].ETag)
	for i, condition := range l.required {
		if condition == l.version {
			l.required[i] = written
		}
	}
	l.version = written
}

// knownFor returns the time that the server must have known a snapshot before it may expire.
func (l *check) knownFor() time.Duration {
	return min(seenMin, l.rule.Duration(policy.MaxSnapshotAgeHours))
}

// findOrphans begins a job that searches for orphan files, unless the last pass was recent. So a
// table that forbade the job for a while keeps its schedule.
func (l *check) findOrphans(ctx context.Context, required []registry.Condition) error {
	if next := l.nextPass(); next.After(l.now) {
		return l.settle(ctx, outcomeLater, next, "")
	}
	_, err := l.config.Jobs.FindOrphans(ctx, l.pointer, OrphanSettings(l.rule), l.extra(required))
	if err != nil {
		return l.failed(ctx, err)
	}
	l.outcome = outcomeDone
	l.began()
	return nil
}

// nextPass returns when the next pass for orphans is due. It returns zero if there was no pass, or
// if an operator requested one.
func (l *check) nextPass() time.Time {
	if l.job.Last.IsZero() || l.job.Mode == ModeOperator {
		return time.Time{}
	}
	base := policy.Base{
		Rule: l.rule.Hash(), Rules: l.summary.Rules, Ran: l.job.Last, Interval: l.job.Base.Interval,
	}
	return policy.Due(policy.Facts{Known: true, Rules: l.summary.Rules}, base, l.rule, l.now)
}

func (l *check) began() {
	l.mu.Lock()
	l.stats.Began[string(l.kind)]++
	l.mu.Unlock()
	l.config.Began()
}

// SnapshotSettings returns the settings that a rule requires. seen is the sequence number of the
// last snapshot that the server has known for long enough. If seen is 0, the server has known all
// snapshots for long enough.
func SnapshotSettings(rule policy.Rule, seen int64) jobs.SnapshotSettings {
	return jobs.SnapshotSettings{
		Retention: metadata.Retention{
			MaxSnapshotAge: rule.Duration(policy.MaxSnapshotAgeHours),
			MinSnapshots:   int(rule.Count(policy.MinSnapshotsToKeep)),
			MaxRefAge:      rule.Duration(policy.MaxRefAgeHours), SeenSequence: seen,
		},
		KeepFiles: rule.Text(policy.Files) == policy.FilesKeep, Delay: rule.Duration(policy.DeleteDelayHours),
		Rule: rule.Hash(), Caller: askerOf(rule),
	}
}

// askerOf returns the name of the requester of a rule's jobs: the policy that enabled the rule.
func askerOf(rule policy.Rule) string {
	if rule.From.Level == policy.LevelServer {
		return "policy of the server"
	}
	return "policy of " + string(rule.From.Level) + " " + rule.From.Name
}

// OrphanSettings returns the settings that a rule requires. Files that are older than the rule
// stay, unless the rule includes them.
func OrphanSettings(rule policy.Rule) jobs.OrphanSettings {
	settings := jobs.OrphanSettings{
		OlderThan: rule.Duration(policy.UnreferencedDays), Quarantine: rule.Duration(policy.NonCurrentDays),
		EqualAuthorities: rule.Text(policy.EqualAuthorities) == "true",
		Unsafe:           rule.Unsafe, Rule: rule.Hash(), Caller: askerOf(rule),
	}
	if rule.Text(policy.IncludeOlder) != "true" {
		settings.Since = rule.Since
	}
	return settings
}

// extra returns additional conditions and writes for the first Apply of a job. The conditions
// require that the policies, the pauses and the table's schedule are unchanged. The writes remove
// the due time. No job begins on a version that has another rule or is paused, because its table
// opted out or was renamed.
func (l *check) extra(required []registry.Condition) jobs.Extra {
	return func(on *catalog.Version) ([]registry.Condition, []registry.Write, error) {
		paused, err := jobs.IsPaused(l.pauses, on.Found.Pointer)
		if err != nil || paused || l.isOther(on) {
			return nil, nil, jobs.ErrBusy
		}
		conditions := required[:len(required):len(required)]
		if l.kind == policy.Orphans { // the commit of an expiry requires its version itself
			conditions = append(conditions, ledger.Unchanged(on.Found.Record))
		}
		job := l.job
		job.Due, job.Last, job.Outcome, job.Error, job.Held = time.Time{}, l.now, outcomeDone, "", ""
		job.Tries, job.Laters, job.LaterSince = 0, 0, time.Time{}
		after := l.schedule.Value.With(job)
		after.Rules = l.summary.Rules
		change, err := l.schedule.Move(after)
		return append(conditions, change.Conditions...), change.Writes, err
	}
}

// readAgain reads the schedule, which the first Apply of the job has written, and then the table.
func (l *check) readAgain(ctx context.Context) error {
	schedules, err := ReadSchedules(ctx, l.ledger, l.pointer)
	if err != nil {
		return err
	}
	l.schedule, l.job = schedules[0], schedules[0].Value.Job(string(l.kind))
	version, _, err := l.tableByID(ctx, l.pointer)
	if err != nil {
		return err
	}
	l.summary = registry.Summary(version.Document.Summary())
	return nil
}

// ran records the outcome of an expiry, and when the next snapshots or metadata files are old
// enough.
func (l *check) ran(ctx context.Context, outcome string, settings jobs.SnapshotSettings, former time.Time) error {
	next, err := l.nextExpiry(ctx, settings)
	if err != nil {
		return l.failed(ctx, err)
	}
	if soonest := l.now.Add(jobs.LaterPause); !former.IsZero() && former.Before(soonest) {
		former = soonest
	}
	if !former.IsZero() && (next.IsZero() || former.Before(next)) {
		next = former
	}
	l.job.Last = l.now
	l.job.Base = registry.ScheduleBase{
		Snapshots: l.summary.Snapshots, Files: max(l.summary.Files, 0), Deletes: max(l.summary.Deletes, 0),
		Bytes: max(l.summary.Bytes, 0), Seq: l.summary.Seq,
	}
	l.recordSeq()
	return l.settle(ctx, outcome, next, "")
}

// recordSeq records which snapshots the server knows at present.
func (l *check) recordSeq() { l.schedule.Value.Seq, l.schedule.Value.SeqAt = l.summary.Seq, l.now }

// nextExpiry returns when the next snapshot becomes old enough to expire. It returns zero if no
// snapshot is still too young.
func (l *check) nextExpiry(ctx context.Context, settings jobs.SnapshotSettings) (time.Time, error) {
	plan, err := l.config.Jobs.PlanSnapshots(ctx, l.pointer, settings)
	if err != nil {
		return time.Time{}, err
	}
	version, _, err := l.tableByID(ctx, l.pointer)
	if err != nil {
		return time.Time{}, err
	}
	young := make(map[int64]bool)
	for _, kept := range plan.Expiry.Kept {
		if kept.Why == metadata.WhyYoung || kept.Why == metadata.WhyUnseen {
			young[kept.ID] = true
		}
	}
	if len(young) == 0 {
		return time.Time{}, nil
	}
	first := int64(1<<63 - 1)
	for snapshot := range version.Document.(*metadata.Document).Snapshots() {
		if young[snapshot.ID] {
			first = min(first, snapshot.TimestampMS)
		}
	}
	next := time.UnixMilli(first).Add(l.rule.Duration(policy.MaxSnapshotAgeHours))
	if int64(len(young)) < l.rule.Count(policy.MinSnapshotsToExpire) {
		next = next.Add(policy.FewPause)
	}
	if soonest := l.now.Add(max(l.knownFor(), jobs.LaterPause)); next.Before(soonest) {
		next = soonest
	}
	return next, nil
}
