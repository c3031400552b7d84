package catalog

import (
	"context"
	"sync/atomic"

	"github.com/maypok86/otter/v2"

	"moorage"
	"moorage/ledger"
	"moorage/registry"
	"moorage/storage"
)

// resolved is a table's or view's pointer as of one read, and where its files are.
type resolved struct {
	record  registry.Record
	pointer registry.Pointer
	storage storage.Store
	place   storage.Place // that storage reaches, as the warehouse has it
	// warehouse is the id of that.
	warehouse registry.ID
	kept      *keptName // where names keeps what the name led to; nil if it was not found by its name
}

// keptName is where names keeps what one name led to last.
type keptName = atomic.Pointer[resolved]

// isIn tells whether r is in the warehouse; nil is nowhere. Who may change a table or view by its uuid alone, whatever it
// is called by now, may do so in the warehouse only in which it was asked for.
func (r *resolved) isIn(warehouse string) bool {
	return r != nil && r.pointer.Warehouse == warehouse
}

// names remembers which pointer a name led to, and that pointer's value. Each use reads the
// pointer again: the record says itself what it is called and whether it is live, so a name
// that is remembered wrongly is noticed. A value is replaced in its place: to put one into the cache costs more.
type names struct {
	cache *otter.Cache[string, *keptName]
}

func newNames() *names {
	return &names{otter.Must(&otter.Options[string, *keptName]{MaximumSize: namesMax})}
}

func nameKey(ident moorage.Identifier) string {
	return cacheKey(ident.Warehouse, ident.Namespace, ident.Name)
}

// get returns what the name of a nameKey led to when it was asked for last.
func (n *names) get(key string) (*resolved, bool) {
	kept, ok := n.cache.GetIfPresent(key)
	if !ok {
		return nil, false
	}
	return kept.Load(), true
}

// set keeps found, which nobody else has yet, as what the name leads to.
func (n *names) set(key string, found *resolved) {
	kept, ok := n.cache.GetIfPresent(key)
	if !ok {
		kept = new(keptName)
	}
	found.kept = kept
	kept.Store(found)
	if !ok {
		n.cache.Set(key, kept)
	}
}

func (n *names) forget(key string) { n.cache.Invalidate(key) }

// moved notes that this node moved a pointer, from how found has it to how to does, by a write that got the ETag etag: known by its
// ETag when it is read next, it need not be decoded.
func (c *Catalog) moved(found, to *resolved, write registry.Write, etag registry.ETag) {
	to.record = registry.Record{Key: write.Key, ETag: etag, State: write.State, Value: write.Value}
	if to.kept = found.kept; to.kept != nil { // a move leaves the name as it is
		to.kept.Store(to)
	} else {
		c.names.set(nameKey(to.pointer.Identifier()), to)
	}
}

// latest returns what is known last of a pointer that was moved from how found has it to how to does: to, unless the move's ETag is
// not known.
func latest(found, to *resolved) *resolved {
	if to.record.Exists() {
		return to
	}
	return found
}

// resolve returns the live pointer of kind k called ident. Its error is of kind k.missing if there is none,
// be it because the namespace is missing (clients look for metadata tables such as
// ns.table.files this way), or because ident is of the other kind.
func (c *Catalog) resolve(ctx context.Context, k *kind, ident moorage.Identifier) (*resolved, error) {
	key := nameKey(ident)
	if known, ok := c.names.get(key); ok && k.isOf(known.pointer) {
		found, err := c.readPointer(ctx, known)
		if err != nil {
			return nil, err
		}
		if found != nil && found.pointer.Identifier().Equal(ident) {
			if found != known {
				c.names.set(key, found)
			}
			return found, nil
		}
		c.names.forget(key)
	}
	found, err := c.walk(ctx, k, ident)
	if err == nil {
		c.names.set(key, found)
	}
	return found, err
}

// readPointer reads the pointer of known again: known itself if nothing changed, nil if
// it is not live any more.
func (c *Catalog) readPointer(ctx context.Context, known *resolved) (*resolved, error) {
	records, err := c.ledger.Get(ctx, known.record.Key)
	if err != nil {
		return nil, err
	}
	return c.asOf(ctx, known, records[0])
}

// readPointers is readPointer for several, in one read.
func (c *Catalog) readPointers(ctx context.Context, known []*resolved) ([]*resolved, error) {
	if len(known) == 0 {
		return nil, nil
	}
	keys := make([]registry.Key, len(known))
	for i, k := range known {
		keys[i] = k.record.Key
	}
	records, err := c.ledger.Get(ctx, keys...)
	if err != nil {
		return nil, err
	}
	now := make([]*resolved, len(known))
	for i, record := range records {
		if now[i], err = c.asOf(ctx, known[i], record); err != nil {
			return nil, err
		}
	}
	return now, nil
}

// asOf returns what known is by a later record of its pointer: known itself if nothing changed, nil if it is not live any more.
func (c *Catalog) asOf(ctx context.Context, known *resolved, record registry.Record) (*resolved, error) {
	switch {
	case !record.Exists() || record.State != registry.StateLive:
		return nil, nil
	case record.ETag == known.record.ETag:
		return known, nil
	}
	pointer, err := ledger.Decode[registry.Pointer](record)
	if err != nil {
		return nil, err
	}
	if pointer.Warehouse == known.pointer.Warehouse && pointer.NamespaceID == known.pointer.NamespaceID {
		return &resolved{record: record, pointer: pointer, storage: known.storage, place: known.place, warehouse: known.warehouse}, nil
	}
	// It was renamed, or dropped and taken back: into another warehouse, or one that was made again since.
	ch, err := c.resolveChain(ctx, pointer.Warehouse, nil)
	switch {
	case moorage.KindOf(err) == moorage.KindNoSuchWarehouse:
		return nil, nil // dropped again, and its warehouse with it
	case err != nil:
		return nil, err
	}
	return &resolved{record: record, pointer: pointer, storage: ch.storage, place: c.placeOf(ch.warehouse), warehouse: ch.warehouse.ID}, nil
}

// walk resolves ident by reads from the warehouse down. Records that stay at odds with each other, which is
// no work of this package, are KindUnavailable after requestTimeout.
func (c *Catalog) walk(ctx context.Context, k *kind, ident moorage.Identifier) (*resolved, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	var found *resolved
	err := c.ledger.Retry(ctx, moorage.KindUnavailable, func(int) error {
		ch, entry, err := c.resolveEntry(ctx, ident)
		if err != nil {
			if moorage.KindOf(err) == moorage.KindNoSuchNamespace {
				return k.noSuch(ident)
			}
			return err
		}
		if entry.record.State != k.state {
			return k.noSuch(ident)
		}
		records, err := c.ledger.Get(ctx, registry.PointerKey(entry.value.Pointer))
		if err != nil {
			return err
		}
		if !records[0].Exists() || records[0].State != registry.StateLive {
			return ledger.ErrRetry // dropped, or moved to another name, since the entry was read
		}
		pointer, err := ledger.Decode[registry.Pointer](records[0])
		if err != nil {
			return err
		}
		if !pointer.Identifier().Equal(ident) || pointer.NamespaceID != ch.id() {
			return ledger.ErrRetry
		}
		found = &resolved{record: records[0], pointer: pointer, storage: ch.storage, place: c.placeOf(ch.warehouse), warehouse: ch.warehouse.ID}
		return nil
	})
	return found, err
}

// entry is an entry's record and value; both are zero if there is none.
type entry struct {
	record registry.Record
	value  registry.Entry
}

// readEntry reads the entry called name in the namespace that ch leads to.
func (c *Catalog) readEntry(ctx context.Context, ch *chain, name string) (entry, error) {
	records, err := c.ledger.Get(ctx, registry.EntryKey(ch.id(), name))
	if err != nil || !records[0].Exists() {
		return entry{}, err
	}
	value, err := ledger.Decode[registry.Entry](records[0])
	return entry{records[0], value}, err
}
