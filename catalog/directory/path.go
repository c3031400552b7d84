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
	"moorage/catalog/gate"
	"moorage/ledger"
	"moorage/registry"
	"moorage/storage"
)

// Bounds of the caches; an element takes a few hundred bytes.
const (
	pathsMax = 20_000
	namesMax = 100_000

	// longPathBytes limits the total length of a path's values that one read may return. A path may
	// have 32 levels, each with a megabyte of properties. If the values of a path are longer,
	// levels with more than longLevelBytes are read without their values.
	longPathBytes  = 256 << 10
	longLevelBytes = 8 << 10
)

// Path is a warehouse and a chain of namespaces in it.
type Path struct {
	Warehouse       registry.Warehouse
	warehouseRecord registry.Record
	levels          []level
	Storage         storage.Store
	version         *warehouseVersion
}

// level is one namespace on a path.
type level struct {
	record registry.Record // includes the value only if this is the last level of a path
	head   namespaceHead
	bytes  int // the length of the value
}

// namespaceHead holds the fields of a registry.Namespace that a path needs. The properties may be
// long, so only the few requests that need them decode them.
type namespaceHead struct {
	ID      registry.ID `json:"id"`
	Since   time.Time   `json:"since"`
	Creator string      `json:"creator"`
	// Protected is as in registry.Namespace.
	Protected bool `json:"protected"`
	// Properties has only the property that decides where tables are created.
	Properties struct {
		Location string `json:"location"`
	} `json:"properties"`
}

// ID returns the id of the last namespace, or of the warehouse if the path has no namespace.
func (p *Path) ID() registry.ID {
	if len(p.levels) == 0 {
		return p.Warehouse.ID
	}
	return p.levels[len(p.levels)-1].head.ID
}

// Depth returns the number of namespaces on the path.
func (p *Path) Depth() int { return len(p.levels) }

// Record returns the record of the last namespace, or of the warehouse if the path has no
// namespace.
func (p *Path) Record() registry.Record {
	if len(p.levels) == 0 {
		return p.warehouseRecord
	}
	return p.levels[len(p.levels)-1].record
}

// Above returns the containers on p in the form that an access decision needs: the namespaces,
// innermost first, and then the warehouse.
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

// IsProtected reports whether the last namespace of p, or the warehouse, is protected itself.
func (p *Path) IsProtected() bool {
	if len(p.levels) == 0 {
		return p.Warehouse.Protected
	}
	return p.levels[len(p.levels)-1].head.Protected
}

// Protection reports whether a container on p is protected. depth is the number of namespaces on p
// down to the innermost protected one, or 0 for the warehouse.
func (p *Path) Protection() (depth int, isProtected bool) {
	for i, level := range slices.Backward(p.levels) {
		if level.head.Protected {
			return i + 1, true
		}
	}
	return 0, p.Warehouse.Protected
}

// Unchanged requires that no container on p has changed since it was read.
func (p *Path) Unchanged() []registry.Condition {
	conditions := []registry.Condition{ledger.Unchanged(p.warehouseRecord)}
	for _, level := range p.levels {
		conditions = append(conditions, ledger.Unchanged(level.record))
	}
	return conditions
}

// Home returns the location below which tables at the end of p are created, without a trailing
// slash. It is the location of the last namespace that has the property `location`, or else of the
// warehouse. depth is the number of namespaces on p down to that namespace.
func (p *Path) Home() (location string, depth int) {
	for i, level := range slices.Backward(p.levels) {
		if location := storage.Trim(level.head.Properties.Location); location != "" {
			return location, i + 1
		}
	}
	return p.Warehouse.Location, 0
}

// object returns the last namespace of p, or the warehouse, in the form that an access decision
// needs. The parameter on has its name.
func (p *Path) object(on moorage.Identifier) gate.Object {
	return gate.Object{
		Ident: moorage.Identifier{Warehouse: on.Warehouse, Namespace: on.Namespace[:len(p.levels)]}, Path: p.Above(),
	}
}

// AboveAt returns those containers of Above that got their present state before a time. If it
// leaves out a container, it also leaves out all containers within it. So the result has no
// container that got its name later.
func (p *Path) AboveAt(at time.Time) []access.Object {
	if p.Warehouse.Since.After(at) {
		return nil
	}
	earlier := *p
	for i, level := range p.levels {
		if level.head.Since.After(at) {
			earlier.levels = p.levels[:i]
			break
		}
	}
	return earlier.Above()
}

// Since returns the time when the last namespace, or the warehouse, got its present state.
func (p *Path) Since() time.Time {
	if len(p.levels) == 0 {
		return p.Warehouse.Since
	}
	return p.levels[len(p.levels)-1].head.Since
}

// paths caches the records on the path to a namespace, so that the next request reads all of them
// at once.
type paths struct {
	cache *otter.Cache[string, *cachedPath]
}

// cachedPath holds the keys and levels on the path to a namespace. A key contains the id of the
// parent, so if a key still has a record, it is the right one.
type cachedPath struct {
	keys   []registry.Key
	levels []level     // as read, without their values
	id     registry.ID // of the namespace
	bytes  int         // the total length of the values
}

// newCachedPath returns the cache entry of p. keys are the keys of its records.
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

// cacheKey joins the names with bytes that no name can contain.
func cacheKey(warehouse string, ns moorage.Namespace, name string) string {
	return warehouse + "\x00" + strings.Join(ns, moorage.LevelSeparator) + "\x00" + name
}

// Path returns the warehouse called name and the namespaces that lead to ns. A missing warehouse is
// KindNoSuchWarehouse. A missing namespace is KindNoSuchNamespace, and Path also returns the
// existing part of the path. It reports an object as missing only after reads from the warehouse
// down, never from the cache.
func (d *Directory) Path(ctx context.Context, name string, ns moorage.Namespace) (*Path, error) {
	p, _, err := d.pathAnd(ctx, name, ns, nil)
	return p, err
}

// PathAndEntry is like Path for the namespace of ident, but also returns the entry of ident. It
// needs only one read if the path is cached.
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

// pathAnd is like Path, but also reads the key that extra returns for the ID of the namespace.
// extra may be nil. If it is not nil, the record of a long namespace may come without its value.
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

// readCachedPath reads all records of a cached path at once. It returns ledger.ErrRetry or an error
// of newPath if the path is outdated.
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
		return nil, registry.Record{}, ledger.ErrRetry // another namespace has the name now
	}
	if extra == nil {
		return p, registry.Record{}, nil
	}
	return p, records[len(records)-1], nil
}

// pathFromRoot reads one level after another, and returns the keys that it read. A level that is
// long and cached is read without its value. This includes the last level, unless withValue is
// true.
func (d *Directory) pathFromRoot(ctx context.Context, name string, ns moorage.Namespace, withValue bool) (
	*Path, []registry.Key, error) {
	if moorage.ValidateName("warehouse name", name) != nil { // no key can have this name
		return nil, nil, gate.NoSuchWarehouse(name)
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
			return p, nil, gate.NoSuchNamespace(ns)
		}
		if err := p.follow([]registry.Key{key}, records, level); err != nil {
			return nil, nil, err
		}
		keys = append(keys, key)
	}
	return p, keys, nil
}

// longestKnown returns the cached path to ns, or to its nearest parent with a cached path. It
// returns nil if no such path is cached.
func (d *Directory) longestKnown(name string, ns moorage.Namespace) *cachedPath {
	for levels := len(ns); levels > 0; levels-- {
		if known, ok := d.paths.cache.GetIfPresent(cacheKey(name, ns[:levels], "")); ok {
			return known
		}
	}
	return nil
}

// levelAt returns a slice with level i of a cached path, if that level was found at key. Otherwise
// the slice is empty.
func (c *cachedPath) levelAt(i int, key registry.Key) []level {
	if c == nil || i >= len(c.levels) || c.keys[i+1] != key {
		return nil
	}
	return c.levels[i : i+1]
}

// unchanged returns a slice with the record at key, without its value, if that record has not
// changed since the level known was read. It lists keys with the prefix key; key itself sorts
// first.
func (d *Directory) unchanged(ctx context.Context, key registry.Key, known level) ([]registry.Record, error) {
	records, err := d.ledger.ListKeys(ctx, key.Table, key.ID, "", 1)
	if err != nil || len(records) == 0 || records[0].Key != key || records[0].ETag != known.record.ETag {
		return nil, err
	}
	return records, nil
}

// newPath begins a path at record, the record of a warehouse. began is when the read of record
// began.
func (d *Directory) newPath(ctx context.Context, record registry.Record, name string, began time.Time) (
	*Path, error) {
	if !record.Exists() {
		d.versions.forget(name)
		return nil, gate.NoSuchWarehouse(name)
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
		version: d.versions.versionIn(name, record, PlaceKey(place), began),
	}, nil
}

// isAsIn reports whether p has the same versions of the same namespaces as a cached path.
func (p *Path) isAsIn(known *cachedPath) bool {
	return slices.EqualFunc(p.levels, known.levels, func(a, b level) bool { return a.record.ETag == b.record.ETag })
}

// follow appends the namespaces of records, which were found at keys. It returns ledger.ErrRetry if
// a namespace is not the child of its predecessor. It does not decode a namespace whose version
// equals that in known.
func (p *Path) follow(keys []registry.Key, records []registry.Record, known []level) error {
	for i, record := range records {
		if !record.Exists() || !strings.HasPrefix(keys[i].ID, registry.NamespacePrefix(p.Warehouse.ID, p.ID())) {
			return ledger.ErrRetry
		}
		if last := len(p.levels) - 1; last >= 0 {
			p.levels[last].record.Value = nil // only the last value is ever used
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

// LivePath is like Path, for a caller that will create an object in ns. While a drop of the
// namespace or warehouse searches for children, LivePath waits. If the process of the drop has
// died, LivePath makes the namespace live again. If the drop takes too long, the error is
// KindUnavailable.
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

// LivePathAndEntry is like LivePath for the namespace of ident, but also returns the entry of
// ident.
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

// DroppingStale is the age at which a record in state dropping counts as abandoned by a dead node.
// The next request that reads such a record makes it live again (PutBack).
const DroppingStale = 30 * time.Second

// LiveWait is the maximum time that a create waits for a drop in progress.
const LiveWait = 5 * time.Second

// isStale reports whether the dropping mark on the last record of p was left by a dead node. The
// time of a mark and its age use the store's clock, which may have been set back. A mark with a
// time in the future has an unknown age, so it counts as stale. If the drop is still in progress,
// it sets its mark again.
func (d *Directory) isStale(ctx context.Context, p *Path) (bool, error) {
	now, err := d.ledger.Time(ctx)
	if err != nil {
		return false, err
	}
	return now.Sub(p.Since()).Abs() > DroppingStale, nil
}

// PutBack makes the namespace or warehouse at the end of p live again, after a drop has left it in
// state dropping. It requires the version of the record in p, and writes a new version. So if the
// drop is still in progress, its Apply fails.
func (d *Directory) PutBack(ctx context.Context, name string, ns moorage.Namespace, p *Path) error {
	const operation = "put-back"
	ident := moorage.Identifier{Warehouse: name, Namespace: ns}
	change, err := d.ledger.NewChange(ctx, moorage.System(operation), operation, ident)
	if err != nil {
		return err
	}
	_, err = d.SetState(ctx, change, p, registry.StateLive)
	if _, failed := registry.FailedCondition(err); failed {
		return nil // another operation changed the record first; the caller checks again
	}
	return ledger.IgnoreRetry(err)
}

// SetState rewrites the last record of p with another state, and returns p with the new record. If
// the store's answer was lost, it returns nil without an error, and the caller must read the path
// again.
func (d *Directory) SetState(ctx context.Context, change registry.Change, p *Path, state registry.State) (
	*Path, error) {
	now := d.now()
	if state == registry.StateDropping { // other nodes check the age of this time
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
		next.Warehouse.Last = next.Warehouse.Written(state, change)
	} else {
		last := &next.levels[len(next.levels)-1]
		namespace, err := ledger.Decode[registry.Namespace](last.record)
		if err != nil {
			return nil, err
		}
		namespace.Since = now
		namespace.Last = namespace.Written(state, change)
		last.head.Since = namespace.Since
		record, value = &last.record, &namespace
	}
	writes, err := ledger.Encode(ledger.Replace(*record, state, value))
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
