package rebase

import (
	"context"
	"time"

	"github.com/maypok86/otter/v2"

	"moorage/catalog/directory"
	"moorage/catalog/documents"
	"moorage/manifests"
	"moorage/metadata"
	"moorage/registry"
	"moorage/storage"
)

// Rebaser moves appends. It is safe for concurrent use.
type Rebaser struct {
	directory *directory.Directory
	documents *documents.Documents
	config    Config
	reader    manifests.Reader
	cache     *cache
	// warehouses caches, by warehouse id, whether the warehouse refuses every rebase.
	warehouses *otter.Cache[registry.ID, warehouseAnswer]
}

const (
	// warehousesMax is the maximum number of cached warehouses.
	warehousesMax = 10_000
	// warehouseKeptFor is how long a node may use a cached value of the warehouse property.
	warehouseKeptFor = 5 * time.Second
)

// Config holds the settings of a Rebaser. All members are required.
type Config struct {
	// Refused is called with the reason when an append is not moved although its table and its
	// request consent. It must not block.
	Refused func(metadata.Misfit)
	Now     func() time.Time
}

// warehouseAnswer records whether a warehouse refuses every rebase, and when that was read.
type warehouseAnswer struct {
	refuses bool
	read    time.Time
}

// New returns a Rebaser of tables in names.
func New(names *directory.Directory, docs *documents.Documents, config Config) *Rebaser {
	return &Rebaser{
		directory: names, documents: docs, config: config, cache: newCache(),
		warehouses: otter.Must(&otter.Options[registry.ID, warehouseAnswer]{MaximumSize: warehousesMax}),
	}
}

// Table is a table as found by one read.
type Table struct {
	Found    *directory.Found
	Document *metadata.Document
}

// IsWanted reports whether an append to t may be moved: the table and the request consent, and the
// warehouse does not refuse. If the warehouse cannot be read, it counts as refusing.
func (r *Rebaser) IsWanted(ctx context.Context, t Table, request Choice) bool {
	property, _ := t.Document.Property(metadata.PropAppendRebase)
	if !consents(property, request) {
		return false
	}
	refuses, err := r.warehouseRefuses(ctx, t.Found)
	return err == nil && !refuses
}

// warehouseRefuses reports whether the warehouse of a table has the property of this package, whose
// only value is off. The answer is cached for warehouseKeptFor, because many late appends need it
// at the same time.
func (r *Rebaser) warehouseRefuses(ctx context.Context, table *directory.Found) (bool, error) {
	now := r.config.Now()
	if known, ok := r.warehouses.GetIfPresent(table.Warehouse); ok && now.Sub(known.read).Abs() < warehouseKeptFor {
		return known.refuses, nil
	}
	path, err := r.directory.Path(ctx, table.Pointer.Warehouse, nil)
	if err != nil {
		return false, err
	}
	_, refuses := path.Warehouse.Properties[metadata.PropAppendRebase]
	r.warehouses.Set(path.Warehouse.ID, warehouseAnswer{refuses, now})
	return refuses, nil
}

// Prepare reads the files that are needed to move the append a into the cache, before the turn of
// the commit begins. It reports whether the append could be put on top of the head of its branch in
// t. late is true if the append does not apply to that head unchanged.
func (r *Rebaser) Prepare(ctx context.Context, t Table, env metadata.Env, a metadata.Append, late bool) bool {
	o, misfit := t.Document.Chain(env).Onto(a)
	if misfit == metadata.Fits {
		misfit = r.prepare(ctx, t, a, o)
	}
	if misfit != metadata.Fits && late {
		r.config.Refused(misfit)
	}
	return misfit == metadata.Fits
}

// prepare reads the files that are needed to move the append a onto the head in o. It returns the
// reason why the append does not fit there, or metadata.Fits.
func (r *Rebaser) prepare(ctx context.Context, t Table, a metadata.Append, o metadata.Onto) metadata.Misfit {
	room := r.documents.Room().Enter(t.Found.Pointer.Warehouse)
	defer room.GiveBack() // the cache has its own bound
	reader := &files{
		reader: &r.reader, cache: r.cache, found: t.Found, room: room, waits: true, docs: r.documents,
	}
	_, _, _, misfit := look(ctx, reader, a, o)
	return misfit
}

// Moves collects the moved appends of one version of a table. It belongs to one goroutine.
type Moves struct {
	rebaser *Rebaser
	table   Table
	chain   *metadata.Chain
	files   *files
	lists   []storage.File
	bytes   int // the total length of the lists
}

// Begin begins the moves of one version of t, which is built by chain. The memory for files that
// are read is taken from room.
func (r *Rebaser) Begin(t Table, chain *metadata.Chain, room *documents.Share) *Moves {
	return &Moves{
		rebaser: r, table: t, chain: chain,
		files: &files{
			reader: &r.reader, cache: r.cache, made: make(map[string]*manifests.List), found: t.Found, room: room,
			docs: r.documents,
		},
	}
}

// Lists returns the manifest lists of the moved appends. They must be written before a record names
// the version.
func (m *Moves) Lists() []storage.File { return m.lists }

// listsBytesMax bounds the lists of one version.
const listsBytesMax = 64 << 20

// Add tries to put the append a on top of the head of its branch in the chain, and reports whether
// it succeeded. If not, the chain is unchanged.
func (m *Moves) Add(ctx context.Context, a metadata.Append) bool {
	misfit := m.add(ctx, a)
	if misfit != metadata.Fits {
		m.rebaser.config.Refused(misfit)
	}
	return misfit == metadata.Fits
}

func (m *Moves) add(ctx context.Context, a metadata.Append) metadata.Misfit {
	o, misfit := m.chain.Onto(a)
	if misfit != metadata.Fits {
		return misfit
	}
	sent, head, merged, misfit := look(ctx, m.files, a, o)
	if misfit != metadata.Fits {
		return misfit
	}
	list, raw, err := newList(sent, head, merged, a, o)
	if err != nil {
		return misfitDifferent
	}
	size := list.Size() + len(raw)
	if m.bytes+size > listsBytesMax || m.files.take(ctx, m.files.room, int64(size)) != nil {
		return misfitMany
	}
	location, err := m.rebaser.documents.NameList(m.table.Document, a.Snapshot.ID)
	if err != nil {
		return misfitUnread
	}
	if joined, _ := m.chain.Add(a.On(o, location, len(merged.kept))); joined != metadata.Joined {
		return misfitDifferent
	}
	m.bytes += size
	m.lists = append(m.lists, storage.File{Location: location, Body: raw})
	m.files.made[location] = list
	m.files.cache.put(m.files.place(location), kept{list: list})
	return metadata.Fits
}

// look reads the lists and manifests of the append a and of the head in o. It returns the reason
// why the append does not fit on top of o, or metadata.Fits. The lists of the append and of the
// head both contain most entries of the list that the client saw.
func look(ctx context.Context, f *files, a metadata.Append, o metadata.Onto) (
	sent, head *manifests.List, m merge, misfit metadata.Misfit) {
	var seen *manifests.List
	var err error
	if a.Snapshot.HasParent {
		if seen, err = f.list(ctx, o.Seen.ManifestList, nil); err != nil {
			return nil, nil, m, misfitUnread
		}
	}
	if sent, err = f.list(ctx, a.Snapshot.ManifestList, seen); err != nil {
		return nil, nil, m, misfitUnread
	}
	if head, err = f.list(ctx, o.Head.ManifestList, seen); err != nil {
		return nil, nil, m, misfitUnread
	}
	if m, misfit = mergeOf(a, o, sent, seen, head); misfit != metadata.Fits {
		return nil, nil, m, misfit
	}
	return sent, head, m, lookInside(ctx, f, m, o)
}

// lookInside reads the manifests that the append adds, and the manifests that its client did not
// see. No file may be in both: the client may already have added the file in an earlier attempt
// that it took for failed.
func lookInside(ctx context.Context, f *files, m merge, o metadata.Onto) metadata.Misfit {
	own := make([]*contents, len(m.own))
	for i, e := range m.own {
		c, err := f.manifest(ctx, e)
		if err != nil {
			return misfitUnread
		}
		if misfit := c.fits(e, o.FormatVersion); misfit != metadata.Fits {
			return misfit
		}
		own[i] = c
	}
	for _, e := range m.foreign {
		c, err := f.manifest(ctx, e)
		if err != nil {
			return misfitUnread
		}
		for _, mine := range own {
			if mine.meets(c) {
				return misfitTwice
			}
		}
	}
	return metadata.Fits
}

// newList returns the manifest list of the append a, moved on top of the head in o. It returns the
// list in parsed and in encoded form.
func newList(sent, head *manifests.List, m merge, a metadata.Append, o metadata.Onto) (*manifests.List, []byte, error) {
	number := func(n int64) manifests.Number { return manifests.Number{Value: n, Valid: true} }
	header := manifests.Header{
		FormatVersion: int64(o.FormatVersion), SnapshotID: a.Snapshot.ID, ParentID: o.Head.ID,
		SequenceNumber: o.SequenceNumber,
	}
	if o.FormatVersion >= 3 {
		header.FirstRowID = number(o.FirstRowID)
	}
	added := make([]manifests.Record, 0, len(m.own))
	for _, e := range m.own {
		r := manifests.Record{Entry: e, SequenceNumber: number(o.SequenceNumber)}
		if e.MinSequenceNumber == a.Snapshot.SequenceNumber {
			r.MinSequenceNumber = number(o.SequenceNumber)
		}
		if o.FormatVersion >= 3 {
			r.FirstRowID = number(e.FirstRowID.Value - a.FirstRowID + o.FirstRowID)
		}
		added = append(added, r)
	}
	list, err := manifests.NewList(header, added, m.kept, sent, head)
	if err != nil {
		return nil, nil, err
	}
	raw, err := list.Encode()
	return list, raw, err
}
