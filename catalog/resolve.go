package catalog

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/maypok86/otter/v2"

	"moorage"
	"moorage/ledger"
	"moorage/registry"
	"moorage/storage"
)

// Bounds of what is remembered between requests; an element is a few hundred bytes.
const (
	chainsMax = 20_000
	namesMax  = 100_000
)

// chain is a warehouse and the namespaces that lead to one of them.
type chain struct {
	warehouse       registry.Warehouse
	warehouseRecord registry.Record
	levels          []level
	storage         storage.Store
}

// level is one namespace on a chain.
type level struct {
	record registry.Record
	head   namespaceHead
}

// namespaceHead is what a chain needs of a registry.Namespace. Few requests need the properties, which may be long, so only they
// decode them.
type namespaceHead struct {
	ID    registry.ID `json:"id"`
	Since time.Time   `json:"since"`
}

// id returns the id of the last namespace, that of the warehouse if there is none.
func (ch *chain) id() registry.ID {
	if len(ch.levels) == 0 {
		return ch.warehouse.ID
	}
	return ch.levels[len(ch.levels)-1].head.ID
}

// record returns the record of the last namespace, that of the warehouse if there is none.
func (ch *chain) record() registry.Record {
	if len(ch.levels) == 0 {
		return ch.warehouseRecord
	}
	return ch.levels[len(ch.levels)-1].record
}

// since returns when the present state of record began.
func (ch *chain) since() time.Time {
	if len(ch.levels) == 0 {
		return ch.warehouse.Since
	}
	return ch.levels[len(ch.levels)-1].head.Since
}

// chains remembers the way to a namespace, so that the next request reads all of it at once.
type chains struct {
	cache *otter.Cache[string, way]
}

// way is how a namespace was reached. A key holds the id of the parent, so keys that still lead
// somewhere are right.
type way struct {
	keys   []registry.Key
	levels []level     // as they were found, without their values
	id     registry.ID // of the namespace
}

// newWay returns the way to the end of ch, which was reached by keys.
func newWay(keys []registry.Key, ch *chain) way {
	levels := slices.Clone(ch.levels)
	for i := range levels {
		levels[i].record.Value = nil
	}
	return way{keys, levels, ch.id()}
}

func newChains() *chains {
	return &chains{otter.Must(&otter.Options[string, way]{MaximumSize: chainsMax})}
}

// cacheKey joins names with bytes that none of them may contain.
func cacheKey(warehouse string, ns moorage.Namespace, name string) string {
	return warehouse + "\x00" + strings.Join(ns, moorage.LevelSeparator) + "\x00" + name
}

// roots returns the locations below which the warehouse's tables may live.
func (c *Catalog) roots(warehouse registry.Warehouse) []string {
	roots := append([]string{warehouse.Location}, warehouse.AllowedLocations...)
	return append(roots, c.allowedLocations...)
}

// resolveChain returns the warehouse called name and the namespaces that lead to ns. A missing warehouse is
// KindNoSuchWarehouse; a missing namespace is KindNoSuchNamespace, and the chain is returned as
// far as it exists. That something is missing is always the result of reads from the warehouse
// down, never of what is remembered.
func (c *Catalog) resolveChain(ctx context.Context, name string, ns moorage.Namespace) (*chain, error) {
	ch, _, err := c.resolveChainAnd(ctx, name, ns, nil)
	return ch, err
}

// resolveEntry is resolveChain for the namespace of ident, together with the entry of that name: one read if
// the way is known.
func (c *Catalog) resolveEntry(ctx context.Context, ident moorage.Identifier) (*chain, entry, error) {
	ch, record, err := c.resolveChainAnd(ctx, ident.Warehouse, ident.Namespace, func(namespace registry.ID) registry.Key {
		return registry.EntryKey(namespace, ident.Name)
	})
	if err != nil || !record.Exists() {
		return ch, entry{}, err
	}
	value, err := ledger.Decode[registry.Entry](record)
	return ch, entry{record, value}, err
}

// resolveChainAnd is resolveChain, and reads one key more, which depends on the id of the namespace; extra may be nil.
func (c *Catalog) resolveChainAnd(ctx context.Context, name string, ns moorage.Namespace, extra func(namespace registry.ID) registry.Key) (*chain, registry.Record, error) {
	cacheKey := cacheKey(name, ns, "")
	if known, ok := c.chains.cache.GetIfPresent(cacheKey); ok {
		ch, record, err := c.followWay(ctx, name, known, extra)
		if err == nil && !ch.isAsIn(known) {
			c.chains.cache.Set(cacheKey, newWay(known.keys, ch))
		}
		if err == nil || moorage.KindOf(err) == moorage.KindUnavailable || ctx.Err() != nil {
			return ch, record, err
		}
		c.chains.cache.Invalidate(cacheKey)
	}
	ch, keys, err := c.walkChain(ctx, name, ns)
	if err != nil {
		return ch, registry.Record{}, err
	}
	c.chains.cache.Set(cacheKey, newWay(keys, ch))
	if extra == nil {
		return ch, registry.Record{}, nil
	}
	records, err := c.ledger.Get(ctx, extra(ch.id()))
	if err != nil {
		return nil, registry.Record{}, err
	}
	return ch, records[0], nil
}

// followWay reads all of a way at once; ledger.ErrRetry or an error of newChain if it leads nowhere any more.
func (c *Catalog) followWay(ctx context.Context, name string, known way, extra func(registry.ID) registry.Key) (*chain, registry.Record, error) {
	keys := known.keys
	if extra != nil {
		keys = append(keys[:len(keys):len(keys)], extra(known.id))
	}
	records, err := c.ledger.Get(ctx, keys...)
	if err != nil {
		return nil, registry.Record{}, err
	}
	ch, err := c.newChain(ctx, records[0], name)
	if err != nil {
		return nil, registry.Record{}, err
	}
	levels := len(known.keys) - 1
	if err := ch.follow(known.keys[1:], records[1:1+levels], known.levels); err != nil {
		return nil, registry.Record{}, err
	}
	if ch.id() != known.id {
		return nil, registry.Record{}, ledger.ErrRetry // made anew under the same name
	}
	if extra == nil {
		return ch, registry.Record{}, nil
	}
	return ch, records[len(records)-1], nil
}

// walkChain reads one level after the other, and returns the keys that it read.
func (c *Catalog) walkChain(ctx context.Context, name string, ns moorage.Namespace) (*chain, []registry.Key, error) {
	keys := []registry.Key{registry.WarehouseKey(name)}
	records, err := c.ledger.Get(ctx, keys...)
	if err != nil {
		return nil, nil, err
	}
	ch, err := c.newChain(ctx, records[0], name)
	if err != nil {
		return nil, nil, err
	}
	for _, levelName := range ns {
		key := registry.NamespaceKey(ch.warehouse.ID, ch.id(), levelName)
		records, err := c.ledger.Get(ctx, key)
		if err != nil {
			return nil, nil, err
		}
		if !records[0].Exists() {
			return ch, nil, moorage.Errorf(moorage.KindNoSuchNamespace, "Namespace does not exist: %s", ns)
		}
		if err := ch.follow([]registry.Key{key}, records, nil); err != nil {
			return nil, nil, err
		}
		keys = append(keys, key)
	}
	return ch, keys, nil
}

// newChain begins a chain at a warehouse's record.
func (c *Catalog) newChain(ctx context.Context, record registry.Record, name string) (*chain, error) {
	if !record.Exists() {
		return nil, moorage.Errorf(moorage.KindNoSuchWarehouse, "Warehouse does not exist: %s", name)
	}
	warehouse, err := ledger.Decode[registry.Warehouse](record)
	if err != nil {
		return nil, err
	}
	store, err := c.storages.open(ctx, c.placeOf(warehouse))
	switch {
	case errors.Is(err, storage.ErrUnavailable):
		return nil, moorage.E("catalog.newChain", name, moorage.KindUnavailable, err)
	case err != nil:
		return nil, moorage.E("catalog.newChain", name, moorage.KindInternal, err)
	}
	return &chain{warehouse: warehouse, warehouseRecord: record, storage: store}, nil
}

// isAsIn reports whether the namespaces of ch are those that a way knows, in the same versions.
func (ch *chain) isAsIn(known way) bool {
	return slices.EqualFunc(ch.levels, known.levels, func(a, b level) bool { return a.record.ETag == b.record.ETag })
}

// follow appends the namespaces of records, which were found at keys, as long as each is the
// child of the one before; ledger.ErrRetry if one is not. Those that known has in the same version are not decoded.
func (ch *chain) follow(keys []registry.Key, records []registry.Record, known []level) error {
	for i, record := range records {
		if !record.Exists() || !strings.HasPrefix(keys[i].ID, registry.NamespacePrefix(ch.warehouse.ID, ch.id())) {
			return ledger.ErrRetry
		}
		if i < len(known) && known[i].record.ETag == record.ETag {
			ch.levels = append(ch.levels, level{record, known[i].head})
			continue
		}
		head, err := registry.DecodePart[namespaceHead](record)
		if err != nil {
			return ledger.Undecoded(record, err)
		}
		ch.levels = append(ch.levels, level{record, head})
	}
	return nil
}

// resolveLive is resolveChain for whoever is about to make something below ns: it waits while the
// namespace (or warehouse) is being looked through by a drop, puts it back if that drop died, and
// answers KindUnavailable if it takes too long.
func (c *Catalog) resolveLive(ctx context.Context, name string, ns moorage.Namespace) (*chain, error) {
	ctx, cancel := context.WithTimeout(ctx, liveWait)
	defer cancel()
	for attempt := 0; ; attempt++ {
		ch, err := c.resolveChain(ctx, name, ns)
		if err != nil {
			return ch, err
		}
		if ch.record().State == registry.StateLive {
			return ch, nil
		}
		stale, err := c.isStale(ctx, ch)
		if err != nil {
			return nil, err
		}
		if stale {
			if err := c.putBack(ctx, name, ns, ch); err != nil {
				return nil, err
			}
			continue
		}
		if c.ledger.Pause(ctx, attempt+4) != nil {
			return nil, moorage.Errorf(moorage.KindUnavailable, "Namespace is being dropped: %s", ns)
		}
	}
}

// resolveLiveEntry is resolveLive for the namespace of ident, together with the entry of that name.
func (c *Catalog) resolveLiveEntry(ctx context.Context, ident moorage.Identifier) (*chain, entry, error) {
	ch, found, err := c.resolveEntry(ctx, ident)
	if err != nil || ch.record().State == registry.StateLive {
		return ch, found, err
	}
	if ch, err = c.resolveLive(ctx, ident.Warehouse, ident.Namespace); err != nil {
		return nil, entry{}, err
	}
	found, err = c.readEntry(ctx, ch, ident.Name)
	return ch, found, err
}

// liveWait bounds how long a creator waits for a drop that is under way.
const liveWait = 5 * time.Second

// isStale reports whether the mark of a drop on the last record of ch is the remains of a node that died. Marks and their age go by
// the store's clock. Older versions marked by the clock of the node. A mark from the future, of which nobody can tell how old it is, is
// stale: a drop that is under way and is put back marks again.
func (c *Catalog) isStale(ctx context.Context, ch *chain) (bool, error) {
	now, err := c.ledger.Time(ctx)
	if err != nil {
		return false, err
	}
	return now.Sub(ch.since()).Abs() > droppingStale, nil
}

// putBack makes a namespace or warehouse live again that a drop left in state dropping. Its condition is
// the version that was seen, so it also fences that drop, should it still be under way.
func (c *Catalog) putBack(ctx context.Context, name string, ns moorage.Namespace, ch *chain) error {
	change, err := c.ledger.NewChange(ctx, "put-back", moorage.Identifier{Warehouse: name, Namespace: ns})
	if err != nil {
		return err
	}
	_, err = c.setContainerState(ctx, change, ch, registry.StateLive)
	if _, failed := registry.FailedCondition(err); failed {
		return nil // somebody else was here first; the caller looks again
	}
	return ledger.IgnoreRetry(err)
}

// setContainerState writes the last record of ch again with another state, and returns ch as it is then; nil without an
// error if that has to be read, because the store's answer was lost.
func (c *Catalog) setContainerState(ctx context.Context, change registry.Change, ch *chain, state registry.State) (*chain, error) {
	now := c.now()
	if state == registry.StateDropping { // whose age others judge
		var err error
		if now, err = c.ledger.Time(ctx); err != nil {
			return nil, err
		}
	}
	next := *ch
	next.levels = slices.Clone(ch.levels)
	record, value := &next.warehouseRecord, registry.Value(&next.warehouse)
	if len(next.levels) == 0 {
		next.warehouse.Since = now
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
	etags, err := c.ledger.Apply(ctx, ledger.Mutation{
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
