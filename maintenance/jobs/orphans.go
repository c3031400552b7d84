package jobs

import (
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"moorage"
	"moorage/catalog/documents"
	"moorage/ledger"
	"moorage/registry"
	"moorage/storage"
	"moorage/txlog"
)

const (
	// orphanAgeMin is the minimum age of an orphan. No commit takes that long. An operator may set
	// a different age.
	orphanAgeMin = 24 * time.Hour
	// listPage is the number of files listed at a time. Clouds list 1,000; a disk reads a whole
	// folder for each page.
	listPage = 10_000
	// A job needs an operator's confirmation if it finds more than orphansFew orphans, and they
	// have more than a given share of all bytes.
	orphansFew          = 100
	orphansShareInverse = 5
	// beginsMax is the maximum number of attempts to begin a job. Another attempt follows if a
	// commit was faster.
	beginsMax = 5
)

// OrphanSettings decide which unreachable files are deleted, and when.
type OrphanSettings struct {
	// OlderThan is the minimum age of a file when it is found.
	OlderThan time.Duration `json:"older-than"`
	// Quarantine is the time for which a file stays after it is found.
	Quarantine time.Duration `json:"quarantine"`
	// If Since is not zero, all files written before Since stay.
	Since time.Time `json:"since,omitzero"`
	// EqualAuthorities means that paths that differ only in scheme or authority refer to the same
	// place.
	EqualAuthorities bool `json:"equal-authorities,omitempty"`
	// Confirmed accepts that most files are orphans.
	Confirmed bool `json:"confirmed,omitempty"`
	// Adopt declares that files older than the table's claims belong to the table. The claims
	// record this for all later jobs.
	Adopt bool `json:"adopt,omitempty"`
	// Unsafe allows files younger than a day.
	Unsafe bool   `json:"unsafe,omitempty"`
	Rule   string `json:"-"`
	Caller string `json:"-"`
}

// DefaultOrphans returns the default settings.
func DefaultOrphans() OrphanSettings {
	const day = 24 * time.Hour
	return OrphanSettings{OlderThan: 3 * day, Quarantine: 10 * day}
}

// FindOrphans creates a job. The job lists the files in the locations of a table that no version of
// the table reaches. After the quarantine, the job deletes the listed files that are still
// unreachable. extra may be nil.
//
// Errors: HeldError, BlockedError, ErrBusy, and the errors of the catalog and of the store. After
// KindCommitUnknown the job may exist.
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
	look, err := j.look(ctx, at, input{})
	if err != nil {
		return Began{}, asHeld(err)
	}
	if err := ownFolder(ctx, j, store, warehouse); err != nil {
		return Began{}, err
	}
	if s.Adopt {
		if err := adoptFiles(ctx, j, at, s.Caller); err != nil {
			return Began{}, moorage.Annotate(op, pointer.String(), asHeld(err))
		}
	}
	began := Began{Table: version.Ident, Job: id}
	return began, j.beginOrphans(ctx, at, look, store, s, extra)
}

func checkOrphans(s OrphanSettings) error {
	if s.OlderThan < orphanAgeMin && !s.Unsafe {
		return moorage.Errorf(moorage.KindIllegalArgument,
			"Orphans are at least a day old: a younger file may belong to a commit that is under way")
	}
	return nil
}

// asHeld converts calledOff, which ends a job, to HeldError, which means that no job begins.
func asHeld(err error) error {
	if called, ok := errors.AsType[*calledOff](err); ok {
		return &HeldError{called.why}
	}
	return err
}

// beginOrphans writes the input and the record of a job on the version of the table in look.
func (j *Jobs) beginOrphans(ctx context.Context, at *job, look *look, store storage.Store, s OrphanSettings,
	extra Extra) error {
	value := at.value
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
	// The quarantine starts again when the orphans have been found.
	value.Created, value.Since, value.Touched = now, now, now
	value.NotBefore, value.WaitsFrom = now.Add(s.Quarantine), now
	key := registry.JobKey(value.Pointer, value.Kind)
	writes, err := ledger.Encode(ledger.Put(key, registry.StateCollecting, value))
	if err != nil {
		return err
	}
	for try := 1; ; try++ {
		batch := registry.Batch{Conditions: []registry.Condition{registry.Absent(key)}, Writes: writes}
		if extra != nil {
			var more registry.Batch
			if more.Conditions, more.Writes, err = extra(look.version); err != nil {
				break
			}
			batch.Conditions = append(batch.Conditions, more.Conditions...)
			batch.Writes = append(writes[:len(writes):len(writes)], more.Writes...)
		}
		_, err = j.ledger.Step(ctx, batch)
		failed, isFailed := registry.FailedCondition(err)
		if !isFailed {
			return ledger.StepError("jobs.beginOrphans", err)
		}
		if err = ErrBusy; failed.Key != registry.PointerKey(value.Pointer) || try == beginsMax {
			break
		}
		if look, err = j.look(ctx, at, input{}); err != nil { // there was a commit
			err = asHeld(err)
			break
		}
	}
	deleteFiles(context.WithoutCancel(ctx), j, store, value.Folder, []string{file.Location})
	return err
}

// mark lists the orphans in the claims of a table. set has the files that the table's versions
// reach. mark returns counts of the files that it kept.
func (j *Jobs) mark(ctx context.Context, look *look, s OrphanSettings, set *pathSet, to sink) (
	[]registry.KeptOf, error) {
	homes, err := j.mayMark(ctx, look, set)
	if err != nil {
		return nil, err
	}
	m := &marking{
		jobs: j, look: look, settings: s, set: set, to: to, kept: make(map[string]int64), homes: homes,
	}
	if err := listAll(ctx, j, look, m.add); err != nil {
		return nil, err
	}
	return keptOf(m.kept), m.judge()
}

// marking is one call of mark.
type marking struct {
	jobs     *Jobs
	look     *look
	settings OrphanSettings
	set      *pathSet
	to       sink
	kept     map[string]int64
	homes    homes

	files, bytes, allBytes int64
	mismatch               string // an orphan whose path differs from a live file's only in scheme or authority
}

// add lists a file within a claim if the file is an orphan. now is the time by the storage's clock.
func (m *marking) add(ctx context.Context, claim storage.Location, file storage.Listed, now time.Time) error {
	m.allBytes += file.Bytes
	if err := checkForeignFile(ctx, m.jobs, m.look, m.set, file); err != nil {
		return err
	}
	below := strings.TrimPrefix(file.Location, claim.String())
	age := now.Sub(file.Modified)
	switch {
	case m.set.Has(file.Location), isHidden(below):
		return nil
	case !isOwn(m.look.claims, file.Location):
		return nil // metadata files
	case file.Modified.IsZero(), age < m.settings.OlderThan:
		return nil
	case file.Modified.Before(m.settings.Since):
		return nil
	case m.homes.keep(file.Location, file.Modified):
		m.kept[keptBefore]++
		return nil
	case m.set.HasElsewhere(file.Location):
		m.kept[keptLookAlike]++
		if !m.settings.EqualAuthorities && m.mismatch == "" {
			m.mismatch = file.Location
		}
		return nil
	case m.set.LooksLike(file.Location):
		m.kept[keptLookAlike]++
		return nil
	}
	m.files, m.bytes = m.files+1, m.bytes+file.Bytes
	return m.to.add(ctx, KindOrphans, Listed{Path: file.Location, Bytes: file.Bytes, Modified: file.Modified})
}

// isHidden reports whether a part of the path marks the file as one that engines ignore. Source:
// Java HiddenPathFilter.
func isHidden(below string) bool {
	return strings.Contains(below, "/_") || strings.Contains(below, "/.") || strings.Contains(below, "/"+Folder+"/")
}

// judge returns an error if an operator should check the results.
func (m *marking) judge() error {
	switch {
	case m.mismatch != "":
		return &BlockedError{fmt.Sprintf("the table names a file that differs from %s in scheme or authority only; "+
			"say whether both are one place", m.mismatch)}
	case m.files > orphansFew && m.bytes*orphansShareInverse > m.allBytes && !m.settings.Confirmed:
		return &BlockedError{fmt.Sprintf("%d files with %d of %d bytes would be orphans; confirm that this is right: "+
			"moorage maintain job retry ID --confirm", m.files, m.bytes, m.allBytes)}
	}
	return nil
}

// asListed returns the files of a batch that have the same size and time in the storage as in the
// list.
func (g *guard) asListed(ctx context.Context, batch []Listed) ([]Listed, error) {
	var same []Listed
	for _, file := range batch {
		found, err := g.look.version.Storage.Stat(ctx, file.Path)
		switch {
		case errors.Is(err, storage.ErrNotFound):
		case err != nil:
			return nil, g.jobs.budget.Note(file.Path, err)
		case found.Bytes != file.Bytes, !sameSecond(found.Modified, file.Modified):
			g.kept[keptChanged]++
		default:
			same = append(same, file)
		}
	}
	return same, nil
}

// sameSecond reports whether two times of one file differ by less than a second. Some servers round
// one of the times.
func sameSecond(a, b time.Time) bool { return a.Sub(b).Abs() < time.Second }

const (
	// foreignReadMax is the maximum number of unpacked bytes of a metadata file that are read to
	// find its table's uuid. Writers put the uuid near the start.
	foreignReadMax = 1 << 20
	// foreignFilesMax is the maximum number of other servers' metadata files that one search reads.
	foreignFilesMax = 10_000
)

// listAll calls visit with each file in the claims of a table. now is the time by the storage's
// clock.
func listAll(ctx context.Context, j *Jobs, look *look,
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

// addTransactions adds the files that transactions refer to.
func addTransactions(ctx context.Context, j *Jobs, set *pathSet) error {
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

// mayMark returns the claims of a table, and adds the files of transactions to set. It fails if
// another object may have files in the table's locations: if another table, a view or a tombstone
// is at, above or below one of them.
//
// While the table holds its claims, no other table or tombstone can appear there. So it is enough
// to read the records at, above and below the table's own locations.
func (j *Jobs) mayMark(ctx context.Context, look *look, set *pathSet) (homes, error) {
	if err := addTransactions(ctx, j, set); err != nil {
		return nil, err
	}
	var found homes
	for _, location := range look.claims {
		claim, err := claimAt(ctx, j, look.table, location)
		if err != nil {
			return nil, err
		}
		found = append(found, home{location, claim})
	}
	return found, nil
}

// claimAt returns the claim of a table on one of its locations. It fails if another object has a
// record there.
func claimAt(ctx context.Context, j *Jobs, table registry.Pointer, location storage.Location) (
	claim registry.LocationClaim, err error) {
	at := location.String()
	keys := []registry.Key{registry.LocationKey(at), registry.TombstoneKey(at)}
	for _, folder := range location.Ancestors() {
		keys = append(keys, registry.LocationKey(folder.String()), registry.TombstoneKey(folder.String()))
	}
	records, err := j.ledger.Get(ctx, keys...)
	if err != nil {
		return claim, err
	}
	if records[0].State == registry.StateOwner {
		if claim, err = ledger.Decode[registry.LocationClaim](records[0]); err != nil {
			return claim, &BlockedError{fmt.Sprintf("the claim of %s cannot be read", at)}
		}
	}
	if claim.Pointer != table.ID {
		return claim, &calledOff{fmt.Sprintf("another table or view has %s by now", at)}
	}
	other := func(record registry.Record) error {
		switch {
		case record.Key.Table == registry.TableTombstone:
			return &calledOff{fmt.Sprintf("a former table or view was at %s, and may have left files there. "+
				"Check them, then run: moorage warehouse clear %s --location %s",
				record.Key.ID, moorage.ShellWord(table.Warehouse), moorage.ShellWord(record.Key.ID))}
		case record.State == registry.StateOwner:
			return &calledOff{fmt.Sprintf("another table or view, at %s, has files in its location", record.Key.ID)}
		}
		return nil
	}
	for _, record := range records[1:] {
		if !record.Exists() {
			continue
		}
		if err := other(record); err != nil {
			return claim, err
		}
	}
	for _, kind := range []registry.Table{registry.TableLocation, registry.TableTombstone} {
		err := j.ledger.Scan(ctx, kind, at+"/", "", func(record registry.Record) (bool, error) {
			return true, other(record)
		})
		if err != nil {
			return claim, err
		}
	}
	return claim, nil
}

// noForeign calls a job off if another table has a metadata file in the locations of the table.
func noForeign(ctx context.Context, j *Jobs, look *look, set *pathSet) error {
	return listAll(ctx, j, look, func(ctx context.Context, _ storage.Location, file storage.Listed, _ time.Time) error {
		return checkForeignFile(ctx, j, look, set, file)
	})
}

// noForeign calls the function noForeign with the state of g.
func (g *guard) noForeign(ctx context.Context) error { return noForeign(ctx, g.jobs, g.look, g.set) }

// checkForeignFile returns calledOff if file is a metadata file of another table, which may be live
// in another catalog. It recognises this server's files for the table by their names, and files of
// the document because they are in set. It reads only other files.
func checkForeignFile(ctx context.Context, j *Jobs, look *look, set *pathSet, file storage.Listed) error {
	name := file.Location[strings.LastIndexByte(file.Location, '/')+1:]
	if !strings.Contains(name, ".metadata.json") || set.Has(file.Location) ||
		documents.WroteFor(look.table.WarehouseID, look.table.TableUUID, file.Location) {
		return nil
	}
	if look.foreign++; look.foreign > foreignFilesMax {
		return &BlockedError{fmt.Sprintf("there are more than %d metadata files of other servers in the location of "+
			"the table; delete those that are not needed", foreignFilesMax)}
	}
	uuid, err := uuidIn(ctx, j, look, file.Location)
	switch {
	case errors.Is(err, storage.ErrNotFound), errors.Is(err, errNoMetadata),
		err == nil && strings.EqualFold(uuid, look.table.TableUUID):
		return nil
	case err != nil && (ctx.Err() != nil || moorage.KindOf(err) == moorage.KindUnavailable):
		return err
	case err != nil:
		return &calledOff{fmt.Sprintf("the metadata file %s cannot be read, and may be that of another table: %s",
			file.Location, err)}
	}
	return &calledOff{fmt.Sprintf("another table, %s, has the metadata file %s in its location",
		moorage.Cut(uuid, 100), file.Location)}
}

// errNoMetadata means that a file is not a metadata file despite its name.
var errNoMetadata = errors.New("it is no metadata file")

// uuidIn returns the uuid of the table or view in a metadata file. It returns errNoMetadata for a
// file that no catalog could read.
func uuidIn(ctx context.Context, j *Jobs, look *look, location string) (string, error) {
	body, _, err := look.version.Storage.Open(ctx, location)
	if err != nil {
		return "", j.budget.Note(location, err)
	}
	defer body.Close() //nolint:errcheck // it is only read
	in := io.LimitReader(body, foreignReadMax)
	if strings.Contains(location[strings.LastIndexByte(location, '/'):], ".gz") {
		unpacked, err := gzip.NewReader(in)
		if err != nil {
			return "", orNoMetadata(err)
		}
		in = io.LimitReader(unpacked, foreignReadMax)
	}
	decoder := json.NewDecoder(in)
	if token, err := decoder.Token(); err != nil || token != json.Delim('{') {
		return "", orNoMetadata(err)
	}
	for decoder.More() {
		member, err := decoder.Token()
		if err != nil {
			return "", err
		}
		if member == "table-uuid" || member == "view-uuid" {
			var uuid string
			err := decoder.Decode(&uuid)
			return uuid, err
		}
		var skipped json.RawMessage
		if err := decoder.Decode(&skipped); err != nil {
			return "", err
		}
	}
	return "", errors.New("it has no uuid in front")
}

// orNoMetadata returns errNoMetadata, unless err comes from the storage.
func orNoMetadata(err error) error {
	_, noJSON := errors.AsType[*json.SyntaxError](err)
	if err == nil || noJSON || errors.Is(err, gzip.ErrHeader) || errors.Is(err, io.EOF) ||
		errors.Is(err, io.ErrUnexpectedEOF) {
		return errNoMetadata
	}
	return err
}

// adoptFiles records, in the claims on a table's locations, that older files in those locations
// belong to the table.
//
// Errors: calledOff if other tables may have files there.
func adoptFiles(ctx context.Context, j *Jobs, at *job, caller string) error {
	look, err := j.look(ctx, at, input{})
	if err != nil {
		return err
	}
	set := newPathSet(0)
	eachNamed(look.document, look.version.Location, set.Add)
	if err := noForeign(ctx, j, look, set); err != nil {
		return err
	}
	return j.ledger.Retry(ctx, moorage.KindUnavailable, func(int) error {
		homes, err := j.mayMark(ctx, look, set)
		if err != nil {
			return err
		}
		now, err := j.ledger.Time(ctx)
		if err != nil {
			return err
		}
		keys := make([]registry.Key, len(homes))
		for i, home := range homes {
			keys[i] = registry.LocationKey(home.location.String())
		}
		records, err := j.ledger.Get(ctx, keys...)
		if err != nil {
			return err
		}
		var batch registry.Batch
		for _, record := range records {
			claim, err := ledger.Decode[registry.LocationClaim](record)
			if err != nil {
				return err
			}
			if record.State != registry.StateOwner || claim.Pointer != look.table.ID {
				return ledger.ErrRetry
			}
			if !claim.Adopted.IsZero() {
				continue
			}
			claim.Adopted, claim.AdoptedBy = now, caller
			writes, err := ledger.Encode(ledger.Put(record.Key, record.State, claim))
			if err != nil {
				return err
			}
			batch.Conditions = append(batch.Conditions, ledger.Unchanged(record))
			batch.Writes = append(batch.Writes, writes...)
		}
		if len(batch.Writes) == 0 {
			return nil
		}
		_, err = j.ledger.Step(ctx, batch)
		if _, failed := registry.FailedCondition(err); failed {
			return ledger.ErrRetry
		}
		return ledger.StepError("jobs.adoptFiles", err)
	})
}
