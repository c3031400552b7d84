package directory

import (
	"context"
	"slices"

	"github.com/maypok86/otter/v2"

	"moorage"
	"moorage/access"
	"moorage/catalog/gate"
	"moorage/ledger"
	"moorage/registry"
	"moorage/storage"
)

// Found is the pointer of a table or view from one read, with the place of its files.
type Found struct {
	Record  registry.Record
	Pointer registry.Pointer
	Storage storage.Store
	Place   storage.Place // the place that Storage reaches, from the record of the warehouse
	// Warehouse is the id of the warehouse.
	Warehouse registry.ID
	// Delegation is the delegation setting of the warehouse.
	Delegation []string
	// Secret is the id of the warehouse's secret. It is zero if the warehouse has no secret.
	Secret registry.ID
	// Above lists the containers: the namespaces, nearest first, and then the warehouse. Their ids
	// do not change while the pointer's namespace stays the same.
	Above []access.Object

	version *warehouseVersion // the version of the warehouse from which all fields except the pointer come
}

// Object returns r in the form that an access decision needs. ident is the name in the request.
func (r *Found) Object(ident moorage.Identifier) gate.Object {
	path := make([]access.Object, 0, len(r.Above)+1)
	return gate.Object{Ident: ident, Path: append(append(path, ObjectOf(r.Pointer)), r.Above...)}
}

// ObjectOf returns a table or view in the form that an access decision needs.
func ObjectOf(pointer registry.Pointer) access.Object {
	kind := access.Table
	if pointer.View {
		kind = access.View
	}
	return access.Object{ID: access.ID(pointer.ID), Kind: kind, Creator: pointer.Creator}
}

// Granted returns r with a changed pointer, for the next version of its record: it records that
// privileges are granted on the object.
func (r *Found) Granted() *Found {
	granted := *r
	granted.Pointer.Granted = true
	return &granted
}

// IsIn reports whether r is in the warehouse. It returns false if r is nil. A request that
// identifies a table or view by its uuid may change it only in the warehouse named in the request.
func (r *Found) IsIn(warehouse string) bool {
	return r != nil && r.Pointer.Warehouse == warehouse
}

// names caches the last known pointer of each name, with its value. Each use reads the pointer's
// record again, which contains its name and whether it is live. So an outdated entry is detected.
type names struct{ cache *otter.Cache[string, *Found] }

func newNames() *names {
	return &names{otter.Must(&otter.Options[string, *Found]{MaximumSize: namesMax})}
}

// NameKey returns a text that is unique for each identifier.
func NameKey(ident moorage.Identifier) string {
	return cacheKey(ident.Warehouse, ident.Namespace, ident.Name)
}

// get returns the last known target of the name with a NameKey.
func (n *names) get(key string) (*Found, bool) { return n.cache.GetIfPresent(key) }

// set caches found as the target of a name.
func (n *names) set(key string, found *Found) { n.cache.Set(key, found) }

func (n *names) forget(key string) { n.cache.Invalidate(key) }

// RememberMove caches a pointer that this node moved, so that the next reader need not decode it.
// The parameter to is its new version, write is the write that stored this version, and etag is the
// ETag that the store returned.
func (d *Directory) RememberMove(to *Found, write registry.Write, etag registry.ETag) {
	to.Record = registry.Record{Key: write.Key, ETag: etag, State: write.State, Value: write.Value}
	d.names.set(NameKey(to.Pointer.Identifier()), to)
}

// Latest returns the newest known version of a pointer that was moved. The parameters found and to
// are the versions before and after the move. Latest returns found if the ETag of the move is
// unknown, and otherwise to.
func Latest(found, to *Found) *Found {
	if to.Record.Exists() {
		return to
	}
	return found
}

// Find returns the live pointer of kind k called ident. Its error has kind k.Missing if there is no
// such pointer. The error is the same if the namespace is missing, because clients look for
// metadata tables such as ns.table.files this way. It is also the same if ident names an object of
// the other kind.
func (d *Directory) Find(ctx context.Context, k *Kind, ident moorage.Identifier) (*Found, error) {
	key := NameKey(ident)
	if known, ok := d.names.get(key); ok && k.IsOf(known.Pointer) {
		found, err := d.Reread(ctx, known)
		if err != nil {
			return nil, err
		}
		if found != nil && found.Pointer.Identifier().Equal(ident) {
			if found != known {
				d.names.set(key, found)
			}
			return found, nil
		}
		d.names.forget(key)
	}
	found, err := d.findFromRoot(ctx, k, ident)
	if err == nil {
		d.names.set(key, found)
	}
	return found, err
}

// Reread reads the pointer of known again. It returns known if nothing changed, and nil if the
// pointer is no longer live.
func (d *Directory) Reread(ctx context.Context, known *Found) (*Found, error) {
	records, err := d.getIn(ctx, []registry.Key{known.Record.Key}, known)
	if err != nil {
		return nil, err
	}
	return d.asOf(ctx, known, records[0])
}

// getIn reads the records at keys and, in the same call, the outdated warehouse records of known.
// It updates the known versions from the warehouse records, and returns only the records at keys.
func (d *Directory) getIn(ctx context.Context, keys []registry.Key, known ...*Found) ([]registry.Record, error) {
	began := d.now()
	var aged []*warehouseVersion
	asked := keys
	for _, k := range known {
		if !k.version.isStale() && !k.version.isFresh(began) && !slices.Contains(aged, k.version) {
			aged, asked = append(aged, k.version), append(asked, k.version.key)
		}
	}
	records, err := d.get(ctx, asked...)
	if err != nil {
		return nil, err
	}
	for i, each := range aged {
		each.saw(records[len(keys)+i], began)
	}
	return records[:len(keys)], nil
}

// RereadAll is like Reread, for several pointers in one read.
func (d *Directory) RereadAll(ctx context.Context, known []*Found) ([]*Found, error) {
	if len(known) == 0 {
		return nil, nil
	}
	keys := make([]registry.Key, len(known))
	for i, k := range known {
		keys[i] = k.Record.Key
	}
	records, err := d.getIn(ctx, keys, known...)
	if err != nil {
		return nil, err
	}
	now := make([]*Found, len(known))
	for i, record := range records {
		if now[i], err = d.asOf(ctx, known[i], record); err != nil {
			return nil, err
		}
	}
	return now, nil
}

// asOf returns known, updated from record, a later version of the pointer's record. It returns
// known unchanged if nothing changed, and nil if the pointer is no longer live.
func (d *Directory) asOf(ctx context.Context, known *Found, record registry.Record) (*Found, error) {
	switch {
	case !record.Exists() || record.State != registry.StateLive:
		return nil, nil
	case record.ETag == known.Record.ETag && !known.version.isStale():
		return known, nil
	}
	pointer, err := ledger.Decode[registry.Pointer](record)
	if err != nil {
		return nil, err
	}
	inPlace := pointer.Warehouse == known.Pointer.Warehouse && pointer.NamespaceID == known.Pointer.NamespaceID
	if inPlace && !known.version.isStale() {
		now := *known
		now.Record, now.Pointer = record, pointer
		return &now, nil
	}
	return d.moved(ctx, record, pointer)
}

// movedMax bounds the reads of a pointer that is moved repeatedly.
const movedMax = 20

// moved returns the pointer of record, after its namespace or the record of its warehouse has
// changed. It returns nil if the pointer is no longer live. It handles a pointer that was renamed
// or restored into another warehouse, and a warehouse that was recreated.
func (d *Directory) moved(ctx context.Context, record registry.Record, pointer registry.Pointer) (*Found, error) {
	for range movedMax {
		path, err := d.Path(ctx, pointer.Warehouse, pointer.Namespace)
		switch kind := moorage.KindOf(err); {
		case err == nil && path.ID() == pointer.NamespaceID:
			return d.newFound(record, pointer, path), nil
		case err != nil && kind != moorage.KindNoSuchWarehouse && kind != moorage.KindNoSuchNamespace:
			return nil, err
		}
		records, err := d.get(ctx, record.Key) // the pointer was moved again, or dropped
		if err != nil {
			return nil, err
		}
		if record = records[0]; !record.Exists() || record.State != registry.StateLive {
			return nil, nil
		}
		if pointer, err = ledger.Decode[registry.Pointer](record); err != nil {
			return nil, err
		}
	}
	return nil, moorage.Errorf(moorage.KindUnavailable, "The table is renamed repeatedly: %s", pointer.Identifier())
}

// newFound returns the pointer of a record in the warehouse of path.
func (d *Directory) newFound(record registry.Record, pointer registry.Pointer, path *Path) *Found {
	return &Found{
		Record: record, Pointer: pointer, Storage: path.Storage,
		Place: d.PlaceOf(path.Warehouse), Warehouse: path.Warehouse.ID, Above: path.Above(),
		Delegation: path.Warehouse.Delegation, Secret: path.Warehouse.Secret.ID, version: path.version,
	}
}

// Along returns found, with its warehouse as it is in path. path leads to the namespace of found.
func (d *Directory) Along(path *Path, found *Found) *Found {
	return d.newFound(found.Record, found.Pointer, path)
}

// findFromRoot resolves ident by reads from the warehouse down. If the records remain inconsistent,
// it returns KindUnavailable after requestTimeout. This package never leaves records inconsistent.
func (d *Directory) findFromRoot(ctx context.Context, k *Kind, ident moorage.Identifier) (*Found, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	var found *Found
	err := d.ledger.Retry(ctx, moorage.KindUnavailable, func(int) error {
		path, entry, err := d.PathAndEntry(ctx, ident)
		if err != nil {
			if moorage.KindOf(err) == moorage.KindNoSuchNamespace {
				return k.NoSuch(ident)
			}
			return err
		}
		if entry.Record.State != k.State {
			return k.NoSuch(ident)
		}
		records, err := d.get(ctx, registry.PointerKey(entry.Value.Pointer))
		if err != nil {
			return err
		}
		if !records[0].Exists() || records[0].State != registry.StateLive {
			return ledger.ErrRetry // dropped or renamed since the entry was read
		}
		pointer, err := ledger.Decode[registry.Pointer](records[0])
		if err != nil {
			return err
		}
		if !pointer.Identifier().Equal(ident) || pointer.NamespaceID != path.ID() {
			return ledger.ErrRetry
		}
		found = d.newFound(records[0], pointer, path)
		return nil
	})
	return found, err
}

// Known returns the last known target of the name ident. It does not read the store.
func (d *Directory) Known(ident moorage.Identifier) (*Found, bool) {
	return d.names.get(NameKey(ident))
}

// FindAll is like Find, for several names. It reads the pointers of all known names in one call, so
// the results are from the same moment.
func (d *Directory) FindAll(ctx context.Context, k *Kind, idents []moorage.Identifier) ([]*Found, error) {
	found, err := d.knownNow(ctx, func(int) *Kind { return k }, idents)
	if err != nil {
		return nil, err
	}
	for i, ident := range idents {
		if found[i] == nil {
			if found[i], err = d.Find(ctx, k, ident); err != nil {
				return nil, err
			}
		}
	}
	return found, nil
}

// knownNow rereads the known pointers of idents in one read. kind(i) returns the expected kind of
// idents[i]. The result is nil for a name that is not cached, or that no longer has the cached
// pointer.
func (d *Directory) knownNow(ctx context.Context, kind func(i int) *Kind, idents []moorage.Identifier) (
	[]*Found, error) {
	found := make([]*Found, len(idents))
	known, places := make([]*Found, 0, len(idents)), make([]int, 0, len(idents))
	for i, ident := range idents {
		if hit, ok := d.Known(ident); ok && kind(i).IsOf(hit.Pointer) {
			known, places = append(known, hit), append(places, i)
		}
	}
	now, err := d.RereadAll(ctx, known)
	if err != nil {
		return nil, err
	}
	for n, i := range places {
		if now[n] != nil && now[n].Pointer.Identifier().Equal(idents[i]) {
			if found[i] = now[n]; now[n] != known[n] {
				d.names.set(NameKey(idents[i]), now[n])
			}
		}
	}
	return found, nil
}

// Entry is the record and value of an entry, which gives a pointer its name. Both are zero if it
// does not exist.
type Entry struct {
	Record registry.Record
	Value  registry.Entry
}

// ReadEntry reads the entry called name in the namespace of path.
func (d *Directory) ReadEntry(ctx context.Context, path *Path, name string) (Entry, error) {
	records, err := d.get(ctx, registry.EntryKey(path.ID(), name))
	if err != nil || !records[0].Exists() {
		return Entry{}, err
	}
	value, err := ledger.Decode[registry.Entry](records[0])
	return Entry{records[0], value}, err
}
