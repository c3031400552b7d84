package catalog

import (
	"context"
	"strings"
	"time"

	"github.com/maypok86/otter/v2"

	"moorage"
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
	value  registry.Namespace
}

// id returns the id of the last namespace, that of the warehouse if there is none.
func (ch *chain) id() registry.ID {
	if len(ch.levels) == 0 {
		return ch.warehouse.ID
	}
	return ch.levels[len(ch.levels)-1].value.ID
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
	return ch.levels[len(ch.levels)-1].value.Since
}

// chains remembers the keys that led to a namespace, so that the next request reads them
// all at once. A key holds the id of the parent, so keys that still lead somewhere are right.
type chains struct {
	cache *otter.Cache[string, []registry.Key]
}

func newChains() *chains {
	return &chains{otter.Must(&otter.Options[string, []registry.Key]{MaximumSize: chainsMax})}
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
	cacheKey := cacheKey(name, ns, "")
	if keys, ok := c.chains.cache.GetIfPresent(cacheKey); ok {
		records, err := c.get(ctx, keys...)
		if err != nil {
			return nil, err
		}
		ch, err := c.newChain(records[0], name)
		if err == nil {
			if err = ch.follow(keys[1:], records[1:]); err == nil {
				return ch, nil
			}
		}
		c.chains.cache.Invalidate(cacheKey)
	}
	ch, keys, err := c.walkChain(ctx, name, ns)
	if err == nil {
		c.chains.cache.Set(cacheKey, keys)
	}
	return ch, err
}

// walkChain reads one level after the other, and returns the keys that it read.
func (c *Catalog) walkChain(ctx context.Context, name string, ns moorage.Namespace) (*chain, []registry.Key, error) {
	keys := []registry.Key{registry.WarehouseKey(name)}
	records, err := c.get(ctx, keys...)
	if err != nil {
		return nil, nil, err
	}
	ch, err := c.newChain(records[0], name)
	if err != nil {
		return nil, nil, err
	}
	for _, levelName := range ns {
		key := registry.NamespaceKey(ch.warehouse.ID, ch.id(), levelName)
		records, err := c.get(ctx, key)
		if err != nil {
			return nil, nil, err
		}
		if !records[0].Exists() {
			return ch, nil, moorage.Errorf(moorage.KindNoSuchNamespace, "Namespace does not exist: %s", ns)
		}
		if err := ch.follow([]registry.Key{key}, records); err != nil {
			return nil, nil, err
		}
		keys = append(keys, key)
	}
	return ch, keys, nil
}

// newChain begins a chain at a warehouse's record.
func (c *Catalog) newChain(record registry.Record, name string) (*chain, error) {
	if !record.Exists() {
		return nil, moorage.Errorf(moorage.KindNoSuchWarehouse, "Warehouse does not exist: %s", name)
	}
	warehouse, err := decode[registry.Warehouse](record)
	if err != nil {
		return nil, err
	}
	store, err := c.storages.open(c.roots(warehouse))
	if err != nil {
		return nil, moorage.E("catalog.newChain", name, moorage.KindInternal, err)
	}
	return &chain{warehouse: warehouse, warehouseRecord: record, storage: store}, nil
}

// follow appends the namespaces of records, which were found at keys, as long as each is the
// child of the one before; errAgain if one is not.
func (ch *chain) follow(keys []registry.Key, records []registry.Record) error {
	for i, record := range records {
		if !record.Exists() || !strings.HasPrefix(keys[i].ID, registry.NamespacePrefix(ch.warehouse.ID, ch.id())) {
			return errAgain
		}
		value, err := decode[registry.Namespace](record)
		if err != nil {
			return err
		}
		ch.levels = append(ch.levels, level{record, value})
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
		if c.now().Sub(ch.since()) > droppingStale {
			if err := c.putBack(ctx, name, ns, ch); err != nil {
				return nil, err
			}
			continue
		}
		if c.pause(ctx, attempt+4) != nil {
			return nil, moorage.Errorf(moorage.KindUnavailable, "Namespace is being dropped: %s", ns)
		}
	}
}

// liveWait bounds how long a creator waits for a drop that is under way.
const liveWait = 5 * time.Second

// putBack makes a namespace or warehouse live again that a drop left in state dropping. Its condition is
// the version that was seen, so it also fences that drop, should it still be under way.
func (c *Catalog) putBack(ctx context.Context, name string, ns moorage.Namespace, ch *chain) error {
	change, err := c.newChange(ctx, "put-back", moorage.Identifier{Warehouse: name, Namespace: ns})
	if err != nil {
		return err
	}
	err = c.setContainerState(ctx, change, ch, registry.StateLive)
	if _, failed := registry.FailedCondition(err); failed {
		return nil // somebody else was here first; the caller looks again
	}
	return ignoreAgain(err)
}

// setContainerState writes the last record of ch again with another state.
func (c *Catalog) setContainerState(ctx context.Context, change registry.Change, ch *chain, state registry.State) error {
	record := ch.record()
	var value any
	if len(ch.levels) == 0 {
		warehouse := ch.warehouse
		warehouse.Since = c.now()
		value = warehouse
	} else {
		namespace := ch.levels[len(ch.levels)-1].value
		namespace.Since = c.now()
		value = namespace
	}
	writes, err := encodePuts(put{record.Key, state, value})
	if err != nil {
		return err
	}
	return c.apply(ctx, change, registry.Batch{
		Conditions: []registry.Condition{registry.ETagIs(record.Key, record.ETag)},
		Writes:     writes,
	})
}
