package jobs

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"moorage"
	"moorage/ledger"
	"moorage/maintenance/reach"
	"moorage/registry"
	"moorage/storage"
	"moorage/txlog"
)

const (
	// orphanAgeMin is how old an orphan is at least: no commit takes that long. An operator may
	// say otherwise.
	orphanAgeMin = 24 * time.Hour
	// listPage is how many files are listed at a time. Clouds list 1,000; a disk reads a whole
	// folder for them.
	listPage = 10_000
	// More orphans than orphansFew, with more than a share of all bytes, need an operator's word.
	orphansFew          = 100
	orphansShareInverse = 5
)

// OrphanSettings say which files that nobody reaches are deleted, and when.
type OrphanSettings struct {
	// OlderThan is how old a file is at least when it is found.
	OlderThan time.Duration `json:"older-than"`
	// Quarantine is how long it stays after that.
	Quarantine time.Duration `json:"quarantine"`
	// Since, unless it is zero, keeps files that are older than that.
	Since time.Time `json:"since,omitzero"`
	// EqualAuthorities says that paths which differ only in scheme or authority are one place.
	EqualAuthorities bool `json:"equal-authorities,omitempty"`
	// Confirmed says that it is right if most files are orphans.
	Confirmed bool `json:"confirmed,omitempty"`
	// Adopt says that files from before the table lived at its locations are its own. That is kept
	// with the locations, for all later jobs.
	Adopt bool `json:"adopt,omitempty"`
	// Unsafe lets files be younger than a day.
	Unsafe bool   `json:"unsafe,omitempty"`
	Rule   string `json:"-"`
	Caller string `json:"-"`
}

// DefaultOrphans returns the settings of somebody who says nothing.
func DefaultOrphans() OrphanSettings {
	const day = 24 * time.Hour
	return OrphanSettings{OlderThan: 3 * day, Quarantine: 10 * day}
}

// FindOrphans makes a job that lists the files in the locations of a table which no version of it
// reaches. It deletes them when the quarantine is over, unless they are reached then. extra may be
// nil.
//
// Errors: HeldError, BlockedError, ErrBusy, those of the catalog and of the store. After
// KindCommitUnknown there may be the job.
func (j *Jobs) FindOrphans(ctx context.Context, pointer registry.ID, s OrphanSettings, extra Extra) (Began, error) {
	const op = "jobs.FindOrphans"
	if err := checkOrphans(s); err != nil {
		return Began{}, err
	}
	if err := j.believeClock(ctx); err != nil {
		return Began{}, moorage.Annotate(op, pointer.String(), err)
	}
	version, table, err := j.tables.TableByID(ctx, pointer)
	if err != nil {
		return Began{}, moorage.Annotate(op, pointer.String(), err)
	}
	id, err := j.ledger.NewID()
	if err != nil {
		return Began{}, err
	}
	warehouse, store, err := j.tables.WarehouseLocation(ctx, table.Warehouse)
	if err != nil {
		return Began{}, err
	}
	folder, err := jobsFolder(ctx, j.ledger, warehouse)
	if err != nil {
		return Began{}, moorage.Annotate(op, pointer.String(), err)
	}
	value := registry.Job{
		ID: id, Kind: KindOrphans, Pointer: pointer, UUID: table.TableUUID, Rule: s.Rule, Caller: s.Caller,
		Folder: storage.Join(folder, id.String()), Node: j.owner,
	}
	at := &job{value: value}
	if _, err := j.look(ctx, at, input{}); err != nil {
		return Began{}, asHeld(err)
	}
	if err := ownFolder(ctx, j, store, warehouse); err != nil {
		return Began{}, err
	}
	if s.Adopt {
		if err := j.adoptFiles(ctx, at, s.Caller); err != nil {
			return Began{}, moorage.Annotate(op, pointer.String(), asHeld(err))
		}
	}
	began := Began{Table: version.Ident, Job: id}
	return began, j.beginOrphans(ctx, value, store, s, extra)
}

func checkOrphans(s OrphanSettings) error {
	if s.OlderThan < orphanAgeMin && !s.Unsafe {
		return moorage.Errorf(moorage.KindIllegalArgument,
			"Orphans are at least a day old: a younger file may belong to a commit that is under way")
	}
	return nil
}

// asHeld turns the reason why a job would be called off into one why it does not begin.
func asHeld(err error) error {
	if called, ok := errors.AsType[*calledOff](err); ok {
		return &HeldError{called.why}
	}
	return err
}

// beginOrphans writes the input and the record of a job.
func (j *Jobs) beginOrphans(ctx context.Context, value registry.Job, store storage.Store, s OrphanSettings,
	extra Extra) error {
	body, err := json.Marshal(input{Version: inputVersion, Orphans: &s})
	if err != nil {
		return err
	}
	file, err := writeFile(ctx, j.ledger, store, value.Folder, "input", "input", 0, body)
	if err != nil {
		return moorage.E("jobs.beginOrphans", value.Folder, moorage.KindUnavailable, err)
	}
	now, err := j.ledger.Time(ctx)
	if err != nil {
		return err
	}
	value.Input = &file
	// Once the orphans are found, the quarantine begins again.
	value.Created, value.Since, value.Touched = now, now, now
	value.NotBefore, value.WaitsFrom = now.Add(s.Quarantine), now
	key := registry.JobKey(value.Pointer, value.Kind)
	writes, err := ledger.Encode(ledger.Put(key, registry.StateCollecting, value))
	if err != nil {
		return err
	}
	batch := registry.Batch{Conditions: []registry.Condition{registry.Absent(key)}, Writes: writes}
	if extra != nil {
		conditions, more, err := extra()
		if err != nil {
			return err
		}
		batch.Conditions, batch.Writes = append(batch.Conditions, conditions...), append(batch.Writes, more...)
	}
	_, err = j.ledger.Step(ctx, batch)
	if _, failed := registry.FailedCondition(err); failed {
		deleteFiles(context.WithoutCancel(ctx), j, store, value.Folder, []string{file.Location})
		return ErrBusy
	}
	return ledger.StepError("jobs.beginOrphans", err)
}

// mark lists the orphans in the claims of a table. set has what its versions reach. It returns what
// else it kept.
func (j *Jobs) mark(ctx context.Context, look *look, s OrphanSettings, set *reach.Set, to sink) (
	[]registry.KeptOf, error) {
	homes, err := j.mayMark(ctx, look, set)
	if err != nil {
		return nil, err
	}
	m := &marking{
		jobs: j, look: look, settings: s, set: set, to: to, kept: make(map[string]int64), homes: homes,
	}
	if err := j.list(ctx, look, m.add); err != nil {
		return nil, err
	}
	return keptOf(m.kept), m.judge()
}

// list calls visit with each file in the claims of a table. now is the time by the clock of the storage.
func (j *Jobs) list(ctx context.Context, look *look,
	visit func(ctx context.Context, claim storage.Location, file storage.Listed, now time.Time) error) error {
	lister, ok := look.version.Storage.(storage.Lister)
	if !ok {
		return &BlockedError{"the storage cannot list files"}
	}
	for _, claim := range look.claims {
		if claim.Path == "/" {
			return &calledOff{"the location of the table is all of its storage"}
		}
		for after := ""; ; {
			if err := j.budget.List(ctx, claim.String()); err != nil {
				return err
			}
			page, err := lister.List(ctx, claim.String(), after, listPage)
			if err != nil {
				return j.budget.Note(claim.String(), err)
			}
			for _, file := range page.Files {
				if err := visit(ctx, claim, file, page.Now); err != nil {
					return err
				}
			}
			if after = page.Next; after == "" {
				break
			}
		}
	}
	return nil
}

// addTransactions adds the files that transactions name.
func addTransactions(ctx context.Context, j *Jobs, set *reach.Set) error {
	return j.ledger.Scan(ctx, registry.TableTransaction, "", "", func(record registry.Record) (bool, error) {
		transaction, err := ledger.Decode[txlog.Transaction](record)
		if err != nil {
			return false, &BlockedError{fmt.Sprintf("the transaction %s cannot be read", record.Key.ID)}
		}
		for _, file := range transaction.Files {
			set.Add(file)
		}
		return true, nil
	})
}

// marking is one call of mark.
type marking struct {
	jobs     *Jobs
	look     *look
	settings OrphanSettings
	set      *reach.Set
	to       sink
	kept     map[string]int64
	homes    homes

	files, bytes, allBytes int64
	mismatch               string // an orphan that differs from a live file in scheme or authority only
}

// add lists a file of a claim if it is an orphan. now is the time by the clock of the storage.
func (m *marking) add(ctx context.Context, claim storage.Location, file storage.Listed, now time.Time) error {
	m.allBytes += file.Bytes
	if err := m.jobs.checkForeign(ctx, m.look, m.set, file); err != nil {
		return err
	}
	below := strings.TrimPrefix(file.Location, claim.String())
	age := now.Sub(file.Modified)
	switch {
	case m.set.Has(file.Location) && !m.jobs.skip[checkNamed], isHidden(below):
		return nil
	case !reach.IsOwn(m.look.claims, file.Location) && !m.jobs.skip[checkOwn]:
		return nil // metadata files
	case file.Modified.IsZero(), age < m.settings.OlderThan && !m.jobs.skip[checkAge]:
		return nil
	case file.Modified.Before(m.settings.Since) && !m.jobs.skip[checkOldest]:
		return nil
	case m.homes.keep(file.Location, file.Modified) && !m.jobs.skip[checkBefore]:
		m.kept[keptBefore]++
		return nil
	case m.set.HasElsewhere(file.Location):
		m.kept[keptLookAlike]++
		if !m.settings.EqualAuthorities && m.mismatch == "" {
			m.mismatch = file.Location
		}
		return nil
	case m.set.LooksLike(file.Location) && !m.jobs.skip[checkLookLike]:
		m.kept[keptLookAlike]++
		return nil
	}
	m.files, m.bytes = m.files+1, m.bytes+file.Bytes
	return m.to.add(ctx, KindOrphans, Listed{Path: file.Location, Bytes: file.Bytes, Modified: file.Modified})
}

// isHidden reports whether a part of a path begins as engines begin names of what is not data.
// Source: Java HiddenPathFilter.
func isHidden(below string) bool {
	return strings.Contains(below, "/_") || strings.Contains(below, "/.") || strings.Contains(below, "/"+Folder+"/")
}

// judge refuses what an operator should look at.
func (m *marking) judge() error {
	switch {
	case m.mismatch != "":
		return &BlockedError{fmt.Sprintf("the table names a file that differs from %s in scheme or authority only; "+
			"say whether both are one place", m.mismatch)}
	case m.files > orphansFew && m.bytes*orphansShareInverse > m.allBytes && !m.settings.Confirmed &&
		!m.jobs.skip[checkShare]:
		return &BlockedError{fmt.Sprintf("%d files with %d of %d bytes would be orphans; confirm that this is right: "+
			"moorage maintain job retry ID --confirm", m.files, m.bytes, m.allBytes)}
	}
	return nil
}

// asListed returns those files of a batch that are in the storage as the list says.
func (g *guard) asListed(ctx context.Context, batch []Listed) ([]Listed, error) {
	var same []Listed
	for _, file := range batch {
		found, err := g.look.version.Storage.Stat(ctx, file.Path)
		switch {
		case errors.Is(err, storage.ErrNotFound):
		case err != nil:
			return nil, g.jobs.budget.Note(file.Path, err)
		case (found.Bytes != file.Bytes || !sameSecond(found.Modified, file.Modified)) && !g.jobs.skip[checkFile]:
			g.kept[keptChanged]++
		default:
			same = append(same, file)
		}
	}
	return same, nil
}

// sameSecond reports whether two times of one file agree: some servers round one of them.
func sameSecond(a, b time.Time) bool { return a.Sub(b).Abs() < time.Second }
