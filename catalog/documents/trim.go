package documents

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"moorage"
	"moorage/catalog/directory"
	"moorage/metadata"
	"moorage/registry"
	"moorage/storage"
)

const (
	// A commit may begin to delete files until trimBeginMax after it was planned. trimTimeout
	// bounds the deletion. Together they are well below registry.TrimFence.
	trimBeginMax = 20 * time.Second
	trimTimeout  = 20 * time.Second
)

// Trimmed holds the metadata files that left a table's log because of one commit, and must be
// deleted.
type Trimmed struct {
	Table *directory.Found // as last known to the commit
	Files []string
	trim  registry.Trim // the first of the trims that announce Files
}

// trims holds the announced deletions that this process has not finished. It is safe for concurrent
// use.
type trims struct {
	mu    sync.Mutex  // guards the fields below; no lock is taken under it
	node  registry.ID // identifies this process; zero until it announces a trim
	under map[registry.ID]time.Time
}

func newTrims() *trims { return &trims{under: make(map[registry.ID]time.Time)} }

// nodeID returns the random id of this process. draw creates it.
func (t *trims) nodeID(draw func() (registry.ID, error)) (registry.ID, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.node.IsZero() {
		return t.node, nil
	}
	var err error
	t.node, err = draw()
	return t.node, err
}

// begin records that the files of trim will be deleted. It forgets trims whose commits failed.
func (t *trims) begin(trim registry.Trim) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for id, at := range t.under {
		if trim.At.Sub(at) > registry.TrimFence {
			delete(t.under, id)
		}
	}
	t.under[trim.ID] = trim.At
}

func (t *trims) end(id registry.ID) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.under, id)
}

// isOver reports whether the deletions announced in trim are over: this process has finished them,
// or trim is too old.
func (t *trims) isOver(trim registry.Trim, now time.Time) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	_, under := t.under[trim.ID]
	return trim.Node == t.node && !under || !trim.IsFenced(now)
}

// Announce returns the files that the commit from base to next trims, if the table's properties
// request trims. It adds these files to pointer, which is written by the commit's Apply, so a later
// register sees them. It removes earlier announcements that are over.
func (d *Documents) Announce(pointer *registry.Pointer, base Document, next File, now time.Time) (Trimmed, error) {
	pointer.Trims = d.underTrims(pointer.Trims, now)
	after, isTable := next.Document.(*metadata.Document)
	if !isTable || !wantsTrims(after) { // a view has no metadata log
		return Trimmed{}, nil
	}
	trimmed := Trimmed{Files: slices.DeleteFunc(after.TrimmedSince(base.(*metadata.Document)), func(file string) bool {
		return file == next.Location || !WithinClaims(pointer.Claims, file)
	})}
	if len(trimmed.Files) == 0 {
		return trimmed, nil
	}
	node, err := d.trims.nodeID(d.ledger.NewID)
	if err != nil {
		return Trimmed{}, err
	}
	id, err := d.ledger.NewID()
	if err != nil {
		return Trimmed{}, err
	}
	for _, file := range trimmed.Files {
		folder, name := splitName(Normalised(file))
		last := len(pointer.Trims) - 1
		if last < 0 || pointer.Trims[last].ID != id || pointer.Trims[last].Folder != folder {
			pointer.Trims = append(pointer.Trims, registry.Trim{ID: id, Node: node, At: now, Folder: folder})
			last++
		}
		pointer.Trims[last].Files = append(pointer.Trims[last].Files, name)
	}
	trimmed.trim = pointer.Trims[len(pointer.Trims)-1]
	d.trims.begin(trimmed.trim)
	return trimmed, nil
}

// underTrims returns the trims that are not over.
func (d *Documents) underTrims(trims []registry.Trim, now time.Time) []registry.Trim {
	return slices.DeleteFunc(slices.Clone(trims), func(t registry.Trim) bool { return d.trims.isOver(t, now) })
}

// splitName splits a location after its last slash.
func splitName(location string) (folder, name string) {
	i := strings.LastIndexByte(location, '/')
	return location[:max(i, 0)], location[i+1:]
}

// CallOff records that the commit that announced trimmed did not happen.
func (d *Documents) CallOff(trimmed Trimmed) { d.trims.end(trimmed.trim.ID) }

// IsTrimmed reports whether a commit, or a run of TrimFormer, may be about to delete the file at
// location. trims are the trims of the pointer, or of its tombstone.
func (d *Documents) IsTrimmed(trims []registry.Trim, location string) bool {
	folder, name := splitName(Normalised(location))
	now := d.now()
	at, ok := drawnAt(location)
	return slices.ContainsFunc(trims, func(t registry.Trim) bool {
		return t.Folder == folder && (slices.Contains(t.Files, name) || ok && at.Before(t.Before)) && t.IsFenced(now)
	})
}

// DeleteTrimmed deletes the announced files of each element of all, with one read of the pointers
// and one call of each storage. It keeps a file that the table names again because of a register. A
// failure leaves orphans. So does a commit that was so slow that registers may soon accept its
// files.
func (d *Documents) DeleteTrimmed(ctx context.Context, now time.Time, all []Trimmed) {
	all = slices.DeleteFunc(all, func(t Trimmed) bool { return len(t.Files) == 0 || now.Sub(t.trim.At) > trimBeginMax })
	if len(all) == 0 {
		return
	}
	ctx, cancel := moorage.Detached(ctx, trimTimeout)
	defer cancel()
	d.deleteTrimmed(ctx, all)
	if ctx.Err() != nil {
		return // a call of the storage may still take effect
	}
	for _, t := range all {
		d.trims.end(t.trim.ID)
	}
}

// deleteTrimmed does the work of DeleteTrimmed until ctx ends.
func (d *Documents) deleteTrimmed(ctx context.Context, all []Trimmed) {
	known := make([]*directory.Found, len(all))
	for i, t := range all {
		known[i] = t.Table
	}
	now, err := d.directory.RereadAll(ctx, known)
	if err != nil {
		d.log.WarnContext(ctx, "could not check whether old metadata files are in use, they stay", "error", err)
		return
	}
	type place struct {
		store storage.Store
		files []string
	}
	places := make(map[string]*place) // by placeKey: a Store need not be comparable
	for i, t := range all {
		unnamed, err := d.unnamed(ctx, t, now[i])
		if err != nil {
			d.log.WarnContext(ctx, "could not check whether old metadata files are in use, they stay",
				"ident", t.Table.Pointer.Identifier(), "error", err)
		}
		if len(unnamed) == 0 {
			continue
		}
		key := directory.PlaceKey(t.Table.Place)
		if places[key] == nil {
			places[key] = &place{store: t.Table.Storage}
		}
		places[key].files = append(places[key].files, unnamed...)
	}
	for _, p := range places {
		if err := deleteFiles(ctx, p.store, p.files); err != nil {
			d.log.WarnContext(ctx, "could not delete old metadata files",
				"files", len(p.files), "error", moorage.OneLine(err.Error()))
		}
	}
}

// unnamed returns the files of t that are neither the current metadata file nor in its metadata
// log, in any spelling. The parameter now is the pointer to the current metadata file. For a table
// that is not live it returns no files, because a register may restore the table with any of them.
// While the version that trimmed the files is current, all of them are unnamed.
func (d *Documents) unnamed(ctx context.Context, t Trimmed, now *directory.Found) ([]string, error) {
	switch now {
	case nil:
		return nil, nil
	case t.Table:
		return t.Files, nil
	}
	present, err := d.Of(ctx, RefOf(now.Pointer, now.Storage))
	if err != nil {
		return nil, err
	}
	names := map[string]bool{Normalised(now.Pointer.MetadataLocation): true}
	for _, entry := range present.(*metadata.Document).MetadataLog() {
		names[Normalised(entry.MetadataLocation)] = true
	}
	return slices.DeleteFunc(t.Files, func(file string) bool { return names[Normalised(file)] }), nil
}

// Normalised returns the normalised spelling of a location. It returns other texts unchanged.
func Normalised(location string) string {
	if spelled, err := storage.NormaliseFile(location); err == nil {
		return spelled
	}
	return location
}

// wantsTrims reports whether a table's properties request that metadata files which leave its
// metadata log are deleted.
func wantsTrims(document Document) bool {
	wanted, set := document.Property(propDeleteAfterCommit)
	if !set {
		return false
	}
	enabled, err := strconv.ParseBool(wanted)
	return err == nil && enabled
}

// WithinClaims reports whether a file is within one of a table's claimed locations.
func WithinClaims(claims []string, location string) bool {
	return slices.ContainsFunc(claims, func(claim string) bool {
		inside, err := storage.Within(claim, location)
		return err == nil && inside
	})
}
