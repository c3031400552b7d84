package directory

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/maypok86/otter/v2"

	"moorage"
	"moorage/access"
	"moorage/catalog/guard"
	"moorage/ledger"
	"moorage/registry"
	"moorage/storage"
)

// Bounds of what is remembered between requests; an element is a few hundred bytes.
const (
	pathsMax = 20_000
	namesMax = 100_000

	// longPathBytes is how long the values of a path are together which is no longer read at once.
	// A path may have 32 levels, with a megabyte of properties each. Of its levels, those with more
	// than longLevelBytes are read without their values.
	longPathBytes  = 256 << 10
	longLevelBytes = 8 << 10
)

// Path is a warehouse and the namespaces that lead to one of them.
type Path struct {
	Warehouse       registry.Warehouse
	warehouseRecord registry.Record
	levels          []level
	Storage         storage.Store
	home            *home
}

// level is one namespace on a chain.
type level struct {
	record registry.Record // with its value only at the end of a path
	head   namespaceHead
	bytes  int // of the value
}

// namespaceHead is what a chain needs of a registry.Namespace. Few requests need the properties,
// which may be long, so only they decode them.
type namespaceHead struct {
	ID      registry.ID `json:"id"`
	Since   time.Time   `json:"since"`
	Creator string      `json:"creator"`
	// Properties has the one property that decides where tables go.
	Properties struct {
		Location string `json:"location"`
	} `json:"properties"`
}

// ID returns the id of the last namespace, that of the warehouse if there is none.
func (p *Path) ID() registry.ID {
	if len(p.levels) == 0 {
		return p.Warehouse.ID
	}
	return p.levels[len(p.levels)-1].head.ID
}

// Depth returns how many namespaces there are on the path.
func (p *Path) Depth() int { return len(p.levels) }

// Record returns the record of the last namespace, that of the warehouse if there is none.
func (p *Path) Record() registry.Record {
	if len(p.levels) == 0 {
		return p.warehouseRecord
	}
	return p.levels[len(p.levels)-1].record
}

// Above returns what decisions need of p: the namespaces of the path, the last one first, and last
// the warehouse.
func (p *Path) Above() []access.Object {
	objects := make([]access.Object, 0, len(p.levels)+1)
	for _, level := range slices.Backward(p.levels) {
		objects = append(objects, access.Object{
			ID: access.ID(level.head.ID), Kind: access.Namespace, Creator: level.head.Creator,
		})
	}
	return append(objects, access.Object{
		ID: access.ID(p.Warehouse.ID), Kind: access.Warehouse, Creator: p.Warehouse.Creator,
	})
}

// Up returns p without its last namespace.
func (p *Path) Up() *Path {
	up := *p
	up.levels = p.levels[:len(p.levels)-1]
	return &up
}

// Home returns the location that is nearest to the end of p, without a slash at its end, and how
// many namespaces lead to it: that of the last namespace with the property `location`, or that of
// the warehouse.
func (p *Path) Home() (location string, depth int) {
	for i, level := range slices.Backward(p.levels) {
		if location := storage.Trim(level.head.Properties.Location); location != "" {
			return location, i + 1
		}
	}
	return p.Warehouse.Location, 0
}

// object returns the last namespace of p, or the warehouse, which leads to on.
func (p *Path) object(on moorage.Identifier) guard.Object {
	return guard.Object{
		Ident: moorage.Identifier{Warehouse: on.Warehouse, Namespace: on.Namespace[:len(p.levels)]}, Path: p.Above(),
	}
}

// since returns when the present state of record began.
func (p *Path) since() time.Time {
	if len(p.levels) == 0 {
		return p.Warehouse.Since
	}
	return p.levels[len(p.levels)-1].head.Since
}

// paths remembers the way to a namespace, so that the next request reads all of it at once.
type paths struct {
	cache *otter.Cache[string, *cachedPath]
}

// cachedPath is how a namespace was reached. A key holds the id of the parent, so keys that still
// lead somewhere are right.
type cachedPath struct {
	keys   []registry.Key
	levels []level     // as they were found, without their values
	id     registry.ID // of the namespace
	bytes  int         // of the values of all
}

// newCachedPath returns the way to the end of p, which was reached by keys.
func newCachedPath(keys []registry.Key, p *Path) *cachedPath {
	levels, bytes := slices.Clone(p.levels), 0
	for i := range levels {
		levels[i].record.Value = nil
		bytes += levels[i].bytes
	}
	return &cachedPath{keys, levels, p.ID(), bytes}
}

func newPaths() *paths {
	return &paths{otter.Must(&otter.Options[string, *cachedPath]{MaximumSize: pathsMax})}
}

// cacheKey joins names with bytes that none of them may contain.
func cacheKey(warehouse string, ns moorage.Namespace, name string) string {
	return warehouse + "\x00" + strings.Join(ns, moorage.LevelSeparator) + "\x00" + name
}

// Roots returns the locations below which the warehouse's tables may live.
func (d *Directory) Roots(warehouse registry.Warehouse) []string {
	roots := append([]string{warehouse.Location}, warehouse.AllowedLocations...)
	return append(roots, d.allowedLocations...)
}

// Path returns the warehouse called name and the namespaces that lead to ns. A missing warehouse is
// KindNoSuchWarehouse; a missing namespace is KindNoSuchNamespace, and the chain is returned as
// far as it exists. That something is missing is always the result of reads from the warehouse
// down, never of what is remembered.
func (d *Directory) Path(ctx context.Context, name string, ns moorage.Namespace) (*Path, error) {
	p, _, err := d.pathAnd(ctx, name, ns, nil)
	return p, err
}

// PathAndEntry is Path for the namespace of ident, together with the entry of that name: one read
// if the way is known.
func (d *Directory) PathAndEntry(ctx context.Context, ident moorage.Identifier) (*Path, Entry, error) {
	p, record, err := d.pathAnd(ctx, ident.Warehouse, ident.Namespace, func(namespace registry.ID) registry.Key {
		return registry.EntryKey(namespace, ident.Name)
	})
	if err != nil || !record.Exists() {
		return p, Entry{}, err
	}
	value, err := ledger.Decode[registry.Entry](record)
	return p, Entry{record, value}, err
}

// pathAnd is Path, and reads one key more, which depends on the id of the namespace; extra may be
// nil. With extra, the record of a long namespace may come without its value.
func (d *Directory) pathAnd(ctx context.Context, name string, ns moorage.Namespace,
	extra func(namespace registry.ID) registry.Key) (*Path, registry.Record, error) {
	cacheKey := cacheKey(name, ns, "")
	if known, ok := d.paths.cache.GetIfPresent(cacheKey); ok && known.bytes <= longPathBytes {
		p, record, err := d.readCachedPath(ctx, name, known, extra)
		if err == nil && !p.isAsIn(known) {
			d.paths.cache.Set(cacheKey, newCachedPath(known.keys, p))
		}
		if err == nil || moorage.KindOf(err) == moorage.KindUnavailable || ctx.Err() != nil {
			return p, record, err
		}
		d.paths.cache.Invalidate(cacheKey)
	}
	p, keys, err := d.pathFromRoot(ctx, name, ns, extra == nil)
	if err != nil {
		return p, registry.Record{}, err
	}
	d.paths.cache.Set(cacheKey, newCachedPath(keys, p))
	if extra == nil {
		return p, registry.Record{}, nil
	}
	records, err := d.get(ctx, extra(p.ID()))
	if err != nil {
		return nil, registry.Record{}, err
	}
	return p, records[0], nil
}

// readCachedPath reads all of a way at once; ledger.ErrRetry or an error of newPath if it leads
// nowhere any more.
func (d *Directory) readCachedPath(ctx context.Context, name string, known *cachedPath,
	extra func(registry.ID) registry.Key) (*Path, registry.Record, error) {
	keys := known.keys
	if extra != nil {
		keys = append(keys[:len(keys):len(keys)], extra(known.id))
	}
	began := d.now()
	records, err := d.get(ctx, keys...)
	if err != nil {
		return nil, registry.Record{}, err
	}
	p, err := d.newPath(ctx, records[0], name, began)
	if err != nil {
		return nil, registry.Record{}, err
	}
	levels := len(known.keys) - 1
	if err := p.follow(known.keys[1:], records[1:1+levels], known.levels); err != nil {
		return nil, registry.Record{}, err
	}
	if p.ID() != known.id {
		return nil, registry.Record{}, ledger.ErrRetry // another one has the name now
	}
	if extra == nil {
		return p, registry.Record{}, nil
	}
	return p, records[len(records)-1], nil
}

// pathFromRoot reads one level after the other, and returns the keys that it read. It reads long
// levels without their values where the way to them is known; that of the end too, unless
// withValue.
func (d *Directory) pathFromRoot(ctx context.Context, name string, ns moorage.Namespace, withValue bool) (
	*Path, []registry.Key, error) {
	if moorage.ValidateName("warehouse name", name) != nil { // no key could have it
		return nil, nil, guard.NoSuchWarehouse(name)
	}
	keys := []registry.Key{registry.WarehouseKey(name)}
	began := d.now()
	records, err := d.get(ctx, keys...)
	if err != nil {
		return nil, nil, err
	}
	p, err := d.newPath(ctx, records[0], name, began)
	if err != nil {
		return nil, nil, err
	}
	known := d.longestKnown(name, ns)
	for i, levelName := range ns {
		key := registry.NamespaceKey(p.Warehouse.ID, p.ID(), levelName)
		level := known.levelAt(i, key)
		var records []registry.Record
		isEnd := i == len(ns)-1
		if len(level) > 0 && level[0].bytes > longLevelBytes && !(isEnd && withValue) {
			records, err = d.unchanged(ctx, key, level[0])
		}
		if err == nil && len(records) == 0 {
			records, err = d.get(ctx, key)
		}
		if err != nil {
			return nil, nil, err
		}
		if !records[0].Exists() {
			return p, nil, guard.NoSuchNamespace(ns)
		}
		if err := p.follow([]registry.Key{key}, records, level); err != nil {
			return nil, nil, err
		}
		keys = append(keys, key)
	}
	return p, keys, nil
}

// longestKnown returns the way to the last namespace on the way to ns to which one is known; nil:
// to none.
func (d *Directory) longestKnown(name string, ns moorage.Namespace) *cachedPath {
	for levels := len(ns); levels > 0; levels-- {
		if known, ok := d.paths.cache.GetIfPresent(cacheKey(name, ns[:levels], "")); ok {
			return known
		}
	}
	return nil
}

// levelAt returns the level number i of a way, if it was found at key, as one of a list.
func (c *cachedPath) levelAt(i int, key registry.Key) []level {
	if c == nil || i >= len(c.levels) || c.keys[i+1] != key {
		return nil
	}
	return c.levels[i : i+1]
}

// unchanged returns the record at key without its value, as one of a list, if it is still the one
// of a level. Of the keys that begin with a key, that one is the first.
func (d *Directory) unchanged(ctx context.Context, key registry.Key, known level) ([]registry.Record, error) {
	records, err := d.ledger.ListKeys(ctx, key.Table, key.ID, "", 1)
	if err != nil || len(records) == 0 || records[0].Key != key || records[0].ETag != known.record.ETag {
		return nil, err
	}
	return records, nil
}

// newPath begins a chain at a warehouse's record, which was read by a call that began at that time.
func (d *Directory) newPath(ctx context.Context, record registry.Record, name string, began time.Time) (
	*Path, error) {
	if !record.Exists() {
		d.homes.forget(name)
		return nil, guard.NoSuchWarehouse(name)
	}
	warehouse, err := ledger.Decode[registry.Warehouse](record)
	if err != nil {
		return nil, err
	}
	place := d.PlaceOf(warehouse)
	place.Warehouse = name
	store, err := d.storages.open(ctx, place)
	switch {
	case errors.Is(err, storage.ErrUnavailable):
		return nil, moorage.E("directory.newPath", name, moorage.KindUnavailable, err)
	case err != nil:
		return nil, moorage.E("directory.newPath", name, moorage.KindInternal, err)
	}
	return &Path{
		Warehouse: warehouse, warehouseRecord: record, Storage: store,
		home: d.homes.at(name, record, PlaceKey(place), began),
	}, nil
}

// isAsIn reports whether the namespaces of p are those that a way knows, in the same versions.
func (p *Path) isAsIn(known *cachedPath) bool {
	return slices.EqualFunc(p.levels, known.levels, func(a, b level) bool { return a.record.ETag == b.record.ETag })
}

// follow appends the namespaces of records, which were found at keys, as long as each is the child
// of the one before; ledger.ErrRetry if one is not. Those that known has in the same version are
// not decoded.
func (p *Path) follow(keys []registry.Key, records []registry.Record, known []level) error {
	for i, record := range records {
		if !record.Exists() || !strings.HasPrefix(keys[i].ID, registry.NamespacePrefix(p.Warehouse.ID, p.ID())) {
			return ledger.ErrRetry
		}
		if last := len(p.levels) - 1; last >= 0 {
			p.levels[last].record.Value = nil // only that of the end is ever asked for
		}
		next := level{record: record, bytes: len(record.Value)}
		if i < len(known) && known[i].record.ETag == record.ETag {
			next.head, next.bytes = known[i].head, known[i].bytes
		} else {
			var err error
			if next.head, err = registry.DecodePart[namespaceHead](record); err != nil {
				return ledger.Undecoded(record, err)
			}
		}
		p.levels = append(p.levels, next)
	}
	return nil
}

// LivePath is Path for a caller that is about to make something below ns. While a drop looks
// through the namespace (or warehouse), LivePath waits. If that drop died it makes the namespace
// live again. If the drop takes too long the error is KindUnavailable.
func (d *Directory) LivePath(ctx context.Context, name string, ns moorage.Namespace) (*Path, error) {
	ctx, cancel := context.WithTimeout(ctx, LiveWait)
	defer cancel()
	for attempt := 0; ; attempt++ {
		p, err := d.Path(ctx, name, ns)
		if err != nil {
			return p, err
		}
		if p.Record().State == registry.StateLive {
			return p, nil
		}
		stale, err := d.isStale(ctx, p)
		if err != nil {
			return nil, err
		}
		if stale {
			if err := d.PutBack(ctx, name, ns, p); err != nil {
				return nil, err
			}
			continue
		}
		if d.ledger.Pause(ctx, attempt+4) != nil {
			return nil, moorage.Errorf(moorage.KindUnavailable, "Namespace is being dropped: %s", ns)
		}
	}
}

// LivePathAndEntry is LivePath for the namespace of ident, together with the entry of that name.
func (d *Directory) LivePathAndEntry(ctx context.Context, ident moorage.Identifier) (*Path, Entry, error) {
	p, found, err := d.PathAndEntry(ctx, ident)
	if err != nil || p.Record().State == registry.StateLive {
		return p, found, err
	}
	if p, err = d.LivePath(ctx, ident.Warehouse, ident.Namespace); err != nil {
		return nil, Entry{}, err
	}
	found, err = d.ReadEntry(ctx, p, ident.Name)
	return p, found, err
}

// DroppingStale is the age from which a record in state dropping is taken for the remains of a node
// that died, and put back by the next request that meets it.
const DroppingStale = 30 * time.Second

// LiveWait bounds how long a creator waits for a drop that is under way.
const LiveWait = 5 * time.Second

// isStale reports whether the mark of a drop on the last record of p is the remains of a node that
// died. Marks and their age go by the store's clock, which may have been set back. Nobody knows the
// age of a mark from the future, so it is stale: a drop that is under way and is put back marks
// again.
func (d *Directory) isStale(ctx context.Context, p *Path) (bool, error) {
	now, err := d.ledger.Time(ctx)
	if err != nil {
		return false, err
	}
	return now.Sub(p.since()).Abs() > DroppingStale, nil
}

// PutBack makes a namespace or warehouse live again that a drop left in state dropping. Its
// condition is the version that was seen, so it also fences that drop, should it still be under
// way.
func (d *Directory) PutBack(ctx context.Context, name string, ns moorage.Namespace, p *Path) error {
	const operation = "put-back"
	ident := moorage.Identifier{Warehouse: name, Namespace: ns}
	change, err := d.ledger.NewChange(ctx, moorage.System(operation), operation, ident)
	if err != nil {
		return err
	}
	_, err = d.SetState(ctx, change, p, registry.StateLive)
	if _, failed := registry.FailedCondition(err); failed {
		return nil // somebody else was here first; the caller looks again
	}
	return ledger.IgnoreRetry(err)
}

// SetState writes the last record of p again with another state, and returns p as it is then; nil
// without an error if that has to be read, because the store's answer was lost.
func (d *Directory) SetState(ctx context.Context, change registry.Change, p *Path, state registry.State) (
	*Path, error) {
	now := d.now()
	if state == registry.StateDropping { // whose age others judge
		var err error
		if now, err = d.ledger.Time(ctx); err != nil {
			return nil, err
		}
	}
	next := *p
	next.levels = slices.Clone(p.levels)
	record, value := &next.warehouseRecord, registry.Value(&next.Warehouse)
	if len(next.levels) == 0 {
		next.Warehouse.Since = now
	} else {
		last := &next.levels[len(next.levels)-1]
		namespace, err := ledger.Decode[registry.Namespace](last.record)
		if err != nil {
			return nil, err
		}
		namespace.Since = now
		last.head.Since = namespace.Since
		record, value = &last.record, &namespace
	}
	writes, err := ledger.Encode(ledger.Put(record.Key, state, value))
	if err != nil {
		return nil, err
	}
	change.Items = []registry.Item{registry.ContainerItem(change.Ident, p.ID())}
	etags, err := d.ledger.Apply(ctx, ledger.Mutation{
		Change:     change,
		Conditions: []registry.Condition{registry.ETagIs(record.Key, record.ETag)},
		Writes:     writes,
	})
	if err != nil || etags == nil {
		return nil, err
	}
	record.ETag, record.State, record.Value = etags[0], state, writes[0].Value
	return &next, nil
}
