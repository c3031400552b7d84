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
	"moorage/maintenance/reach"
	"moorage/registry"
	"moorage/storage"
)

const (
	// foreignReadMax is how much of a metadata file is read to find the uuid of its table, unpacked.
	// Writers put it in front.
	foreignReadMax = 1 << 20
	// foreignFilesMax is how many metadata files one look reads that another server wrote.
	foreignFilesMax = 10_000
)

// home is a location of a table, and the claim of it.
type home struct {
	location storage.Location
	claim    registry.LocationClaim
}

// homes are the locations of a table.
type homes []home

// keep reports whether a file that was written at this time may be of a table that lived there before.
func (h homes) keep(file string, written time.Time) bool {
	place, err := storage.Parse(file)
	if err != nil {
		return true
	}
	for _, home := range h {
		if home.location.Contains(place) {
			return home.claim.Keeps(written)
		}
	}
	return true // it is in none of them
}

// mayMark returns the claims of a table whose orphans are looked for, and adds what transactions name
// to set. It refuses if others may have files in the locations of the table: another table or view
// lives at, above or beneath one, or a tombstone is there.
//
// While the table holds its claims nobody can come to live there, and no tombstone can come. So it asks
// the records at, above and beneath its own locations, and not all tables.
func (j *Jobs) mayMark(ctx context.Context, look *look, set *reach.Set) (homes, error) {
	if err := addTransactions(ctx, j, set); err != nil {
		return nil, err
	}
	var found homes
	for _, location := range look.claims {
		claim, err := j.claimAt(ctx, look.table, location)
		if err != nil {
			return nil, err
		}
		found = append(found, home{location, claim})
	}
	return found, nil
}

// claimAt returns the claim of a table on one of its locations, if nothing else is there.
func (j *Jobs) claimAt(ctx context.Context, table registry.Pointer, location storage.Location) (
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
	if j.skip[checkDropped] {
		return claim, nil
	}
	if claim.Pointer != table.ID {
		return claim, &calledOff{fmt.Sprintf("another table or view has %s by now", at)}
	}
	other := func(record registry.Record) error {
		switch {
		case record.Key.Table == registry.TableTombstone:
			return &calledOff{fmt.Sprintf("a table or view that is gone lived at %s, and may have left files there. "+
				"Look at them, then clear that: moorage warehouse clear %s --location %s", record.Key.ID, table.Warehouse, record.Key.ID)}
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

// noForeign calls a job off if there is a metadata file of another table in the locations of the table.
func (j *Jobs) noForeign(ctx context.Context, look *look, set *reach.Set) error {
	return j.list(ctx, look, func(ctx context.Context, _ storage.Location, file storage.Listed, _ time.Time) error {
		return j.checkForeign(ctx, look, set, file)
	})
}

// checkForeign calls a job off if a file is a metadata file of another table: that table may live there
// in another catalog. The names of files that this server wrote for the table show it, and set has those
// that the document names. Only others are read.
func (j *Jobs) checkForeign(ctx context.Context, look *look, set *reach.Set, file storage.Listed) error {
	name := file.Location[strings.LastIndexByte(file.Location, '/')+1:]
	if !strings.Contains(name, ".metadata.json") || set.Has(file.Location) ||
		documents.WroteFor(look.table.ID, file.Location) || j.skip[checkForeign] {
		return nil
	}
	if look.foreign++; look.foreign > foreignFilesMax {
		return &BlockedError{fmt.Sprintf("there are more than %d metadata files of other servers in the location of "+
			"the table; delete those that nobody needs", foreignFilesMax)}
	}
	uuid, err := j.uuidIn(ctx, look, file.Location)
	switch {
	case errors.Is(err, storage.ErrNotFound), errors.Is(err, errNoMetadata), err == nil && strings.EqualFold(uuid, look.table.TableUUID):
		return nil
	case err != nil && (ctx.Err() != nil || moorage.KindOf(err) == moorage.KindUnavailable):
		return err
	case err != nil:
		return &calledOff{fmt.Sprintf("the metadata file %s cannot be read, and may be that of another table: %s",
			file.Location, wordsOf(err))}
	}
	return &calledOff{fmt.Sprintf("another table, %s, has the metadata file %s in its location",
		moorage.Cut(uuid, 100), file.Location)}
}

// errNoMetadata says that a file is that of no table, whatever its name says.
var errNoMetadata = errors.New("it is no metadata file")

// uuidIn returns the uuid of the table or view that a metadata file is of. It returns errNoMetadata for
// what no catalog could read.
func (j *Jobs) uuidIn(ctx context.Context, look *look, location string) (string, error) {
	body, _, err := look.version.Storage.Open(ctx, location)
	if err != nil {
		return "", j.budget.Note(location, err)
	}
	defer body.Close() //nolint:errcheck // it is read only
	var in io.Reader = io.LimitReader(body, foreignReadMax)
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

// orNoMetadata returns errNoMetadata, unless err is that of the storage.
func orNoMetadata(err error) error {
	_, noJSON := errors.AsType[*json.SyntaxError](err)
	if err == nil || noJSON || errors.Is(err, gzip.ErrHeader) || errors.Is(err, io.EOF) ||
		errors.Is(err, io.ErrUnexpectedEOF) {
		return errNoMetadata
	}
	return err
}

// adoptFiles notes in the claims of a table that the files from before are its own.
//
// Errors: calledOff if others may have files there.
func (j *Jobs) adoptFiles(ctx context.Context, at *job, caller string) error {
	look, err := j.look(ctx, at, input{})
	if err != nil {
		return err
	}
	set := reach.NewSet(0)
	reach.Named(look.document, look.version.Location, set.Add)
	if err := j.noForeign(ctx, look, set); err != nil {
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
