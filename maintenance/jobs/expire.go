package jobs

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	"moorage"
	"moorage/catalog"
	"moorage/catalog/gate"
	"moorage/ledger"
	"moorage/metadata"
	"moorage/registry"
	"moorage/storage"
)

// SnapshotSettings decide which snapshots expire, and what happens to the files that only they
// reach.
type SnapshotSettings struct {
	// Retention applies unless the table's properties or refs have other values.
	Retention metadata.Retention
	// If KeepFiles is true, no file is deleted.
	KeepFiles bool
	// Delay is the time for which files stay after their snapshots expire, for readers that still
	// use them.
	Delay  time.Duration
	Rule   string // hash of the rule that requires the expiry
	Caller string // the requester of the expiry
}

// DefaultSnapshots returns the default settings. Source: Java TableProperties,
// MAX_SNAPSHOT_AGE_MS_DEFAULT, MIN_SNAPSHOTS_TO_KEEP_DEFAULT.
func DefaultSnapshots() SnapshotSettings {
	return SnapshotSettings{
		Retention: metadata.Retention{MaxSnapshotAge: 5 * 24 * time.Hour, MinSnapshots: 1}, Delay: 24 * time.Hour,
	}
}

// retentionOf returns the retention of document, with the values of r as defaults.
func retentionOf(document *metadata.Document, r metadata.Retention) (metadata.Retention, error) {
	for name, set := range map[string]func(int64){
		metadata.PropMaxSnapshotAge: func(n int64) { r.MaxSnapshotAge = milliseconds(n) },
		metadata.PropMinSnapshots:   func(n int64) { r.MinSnapshots = int(min(n, 1<<30)) },
		metadata.PropMaxRefAge:      func(n int64) { r.MaxRefAge = milliseconds(n) },
	} {
		value, ok := document.Property(name)
		if !ok {
			continue
		}
		n, err := strconv.ParseInt(value, 10, 64)
		if err != nil || n < 0 || n == 0 && name != metadata.PropMaxSnapshotAge {
			return r, &HeldError{fmt.Sprintf("the property %s is %q, which is not a number above zero", name,
				moorage.Cut(value, 50))}
		}
		set(n)
	}
	if r.MinSnapshots < 1 {
		return r, &HeldError{"a branch keeps at least one snapshot"}
	}
	return r, nil
}

// milliseconds returns n milliseconds, or the longest duration if that is shorter.
func milliseconds(n int64) time.Duration {
	const longest = int64(1<<63-1) / int64(time.Millisecond)
	return time.Duration(min(n, longest)) * time.Millisecond
}

// planExpiry returns the parts of document that expire.
func planExpiry(document *metadata.Document, s SnapshotSettings, now time.Time) (metadata.Expiry, error) {
	if why := held(document); why != "" {
		return metadata.Expiry{}, &HeldError{why}
	}
	retention, err := retentionOf(document, s.Retention)
	if err != nil {
		return metadata.Expiry{}, err
	}
	return metadata.PlanExpire(document, retention, now), nil
}

// Extra returns the caller's additional conditions and writes for the first step of a job. on is
// the version of the table that the step acts on. Each attempt calls it again. It returns ErrBusy
// if the job must not begin on that version.
type Extra func(on *catalog.Version) ([]registry.Condition, []registry.Write, error)

// Began is the result of the first step of a job.
type Began struct {
	Outcome   string      // OutcomeNothing or OutcomeDone; empty if a job exists
	Job       registry.ID // zero for OutcomeNothing
	Table     moorage.Identifier
	Snapshots int
	Refs      int
}

// Outcomes of an attempt to expire snapshots, in addition to OutcomeDone and OutcomeNothing.
const (
	commitLost   = "lost" // the table had a job, or a rule changed
	commitFailed = "failed"
)

// Expire expires snapshots of a table. Unless s.KeepFiles is set, Expire also creates the job that
// deletes the files reached only by those snapshots. extra may be nil.
//
// Errors: HeldError; ErrBusy; the errors of catalog.Maintain. After KindCommitUnknown the snapshots
// may have expired, and the job may exist.
func (j *Jobs) Expire(ctx context.Context, pointer registry.ID, s SnapshotSettings, extra Extra) (Began, error) {
	const op = "jobs.Expire"
	if err := j.believeClock(ctx); err != nil {
		return Began{}, moorage.Annotate(op, pointer.String(), err)
	}
	version, table, err := j.tables.TableByID(ctx, pointer)
	if err != nil {
		return Began{}, moorage.Annotate(op, pointer.String(), err)
	}
	if why := frozen(table); why != "" {
		return Began{}, &HeldError{why}
	}
	now, err := j.ledger.Time(ctx)
	if err != nil {
		return Began{}, err
	}
	expiry, err := planExpiry(version.Document.(*metadata.Document), s, now)
	if err != nil {
		return Began{}, err
	}
	if expiry.IsEmpty() { // then Expire writes nothing, not even an upgraded format
		j.stats.committed(OutcomeNothing)
		return Began{Table: version.Ident, Outcome: OutcomeNothing}, nil
	}
	warehouse, store, err := j.tables.WarehouseLocation(ctx, table.Warehouse)
	if err != nil {
		return Began{}, moorage.Annotate(op, pointer.String(), err)
	}
	id, err := j.ledger.NewID()
	if err != nil {
		return Began{}, err
	}
	folder, err := jobsFolder(ctx, j.ledger, warehouse)
	if err != nil {
		return Began{}, moorage.Annotate(op, pointer.String(), err)
	}
	began := Began{Table: version.Ident}
	e := &expiring{
		jobs: j, settings: s, extra: extra, store: store, uuid: table.TableUUID,
		job: registry.Job{
			ID: id, Kind: KindSnapshots, Pointer: pointer, UUID: table.TableUUID, Rule: s.Rule, Caller: s.Caller,
			Folder: storage.Join(folder, id.String()), Node: j.owner,
		},
	}
	_, changed, err := j.tables.Maintain(ctx, pointer, catalog.MaintenanceEdit{
		Verb: gate.Expire, Plan: e.plan, Beside: e.writesOf,
	})
	switch {
	case errors.Is(err, catalog.ErrBeside), errors.Is(err, ErrBusy):
		j.stats.committed(commitLost)
		return began, ErrBusy
	case err != nil:
		j.stats.committed(commitFailed)
		return began, err
	case !changed:
		j.stats.committed(OutcomeNothing)
		began.Outcome = OutcomeNothing
		return began, nil
	}
	j.stats.committed(OutcomeDone)
	began.Job, began.Snapshots, began.Refs = id, len(e.expiry.Snapshots), len(e.expiry.Refs)
	if s.KeepFiles {
		began.Outcome = OutcomeDone
	}
	j.log.InfoContext(ctx, "snapshots expired", "table", version.Ident.String(), "snapshots", began.Snapshots,
		"refs", began.Refs, "job", id, "caller", s.Caller)
	return began, nil
}

// TrimFormer deletes metadata files that left a table's metadata log so long ago that no change
// record refers to them any more. An interrupted call is harmless, and the next one continues.
// TrimFormer creates no job and no version of the table. It deletes nothing once the table forbids
// deletions or is paused, or once allows, which may be nil, returns an error for its version.
//
// Errors: HeldError; the errors of allows and of catalog.TrimFormer.
func (j *Jobs) TrimFormer(ctx context.Context, pointer registry.ID, allows func(*catalog.Version) error) (
	catalog.Former, error) {
	const op = "jobs.TrimFormer"
	if j.former == 0 {
		return catalog.Former{}, nil
	}
	if err := j.believeClock(ctx); err != nil {
		return catalog.Former{}, moorage.Annotate(op, pointer.String(), err)
	}
	mayTrim := func(ctx context.Context, version *catalog.Version) error {
		if err := j.mayTrim(ctx, version); err != nil || allows == nil {
			return err
		}
		return allows(version)
	}
	version, _, err := j.tables.TableByID(ctx, pointer)
	if err == nil {
		err = mayTrim(ctx, version)
	}
	if err != nil {
		return catalog.Former{}, moorage.Annotate(op, pointer.String(), err)
	}
	former, err := j.tables.TrimFormer(ctx, pointer, j.former, mayTrim)
	if former.Files > 0 {
		j.log.InfoContext(ctx, "metadata files that left the metadata log are deleted, or were gone",
			"table", version.Ident.String(), "files", former.Files)
	}
	return former, moorage.Annotate(op, pointer.String(), err)
}

// mayTrim returns a HeldError if no metadata file of a table may be deleted now.
func (j *Jobs) mayTrim(ctx context.Context, version *catalog.Version) error {
	why := cmp.Or(frozen(version.Found.Pointer), held(version.Document.(*metadata.Document)))
	if why == "" {
		records, err := j.ledger.Get(ctx, registry.PauseKey())
		if err != nil {
			return err
		}
		if isPaused(ctx, j, records[0], version.Found.Pointer) {
			why = "its maintenance is paused"
		}
	}
	if why != "" {
		return &HeldError{why}
	}
	return nil
}

// expiring is one call of Expire.
type expiring struct {
	jobs     *Jobs
	settings SnapshotSettings
	extra    Extra
	store    storage.Store // of the warehouse
	uuid     string
	job      registry.Job
	expiry   metadata.Expiry // of the last attempt
}

func (e *expiring) plan(base *metadata.Document, now time.Time) ([]metadata.Update, error) {
	var err error
	e.expiry, err = planExpiry(base, e.settings, now)
	if err != nil {
		return nil, err
	}
	return e.expiry.Updates(), nil
}

// writesOf returns the writes that accompany the commit: the writes of the job and of the caller.
// If no file must be deleted, it returns the write of a run instead of a job.
func (e *expiring) writesOf(ctx context.Context, before, next *catalog.Version) (catalog.Beside, error) {
	beside := catalog.Beside{Rule: e.settings.Rule}
	if e.extra != nil {
		var err error
		if beside.Conditions, beside.Writes, err = e.extra(before); err != nil {
			return beside, err
		}
	}
	now, err := e.jobs.ledger.Time(ctx)
	if err != nil {
		return beside, err
	}
	value := e.job
	value.Created, value.Since, value.Touched = now, now, now
	value.NotBefore, value.WaitsFrom = now.Add(e.settings.Delay), now
	value.Totals.Snapshots = int64(len(e.expiry.Snapshots))
	if e.settings.KeepFiles {
		run := runOf(value, OutcomeDone, "", now)
		key := registry.RunKey(value.Pointer, now, value.ID)
		writes, err := ledger.Encode(ledger.Put(key, registry.StateNone, run.value))
		beside.Writes = append(beside.Writes, writes...)
		return beside, err
	}
	in := inputOf(before.Document.(*metadata.Document), next.Document.(*metadata.Document))
	body, err := json.Marshal(in)
	if err != nil {
		return beside, err
	}
	file, err := writeFile(ctx, e.jobs.ledger, e.store, value.Folder, "input", "input", int64(len(in.Expired)), body)
	if err != nil {
		return beside, moorage.E("jobs.writesOf", value.Folder, moorage.KindUnavailable, err)
	}
	beside.Lost = func(ctx context.Context) {
		deleteFiles(context.WithoutCancel(ctx), e.jobs, e.store, value.Folder, []string{file.Location})
	}
	value.Input = &file
	key := registry.JobKey(value.Pointer, value.Kind)
	writes, err := ledger.Encode(ledger.Put(key, registry.StateCollecting, value))
	beside.Conditions = append(beside.Conditions, registry.Absent(key))
	beside.Writes = append(beside.Writes, writes...)
	return beside, err
}

// inputOf returns the parts of before that next no longer has.
func inputOf(before, next *metadata.Document) input {
	in := input{Version: inputVersion}
	for snapshot := range before.Snapshots() {
		if next.HasSnapshot(snapshot.ID) {
			continue
		}
		in.Expired = append(in.Expired, expired{
			ID: snapshot.ID, List: snapshot.ManifestList, Manifests: snapshot.Manifests, Encrypted: snapshot.Encrypted,
		})
	}
	in.Stats = before.StatisticsOf(in.ids())
	return in
}
