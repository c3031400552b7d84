package browse

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"time"

	"golang.org/x/sync/singleflight"

	"moorage"
	"moorage/access"
	"moorage/catalog/gate"
	"moorage/ledger"
	"moorage/registry"
)

const (
	// buildPatience is how long a search waits for the index. buildTimeout bounds how long making
	// the index may take.
	buildPatience = 5 * time.Second
	buildTimeout  = 2 * time.Minute
	// indexLife is how long the index is kept after the last search.
	indexLife = 10 * time.Minute
	// changesPage is how many changes are read at once. If a search would have to read more than
	// changesMax changes, or more than touchedMax names, a new index is made.
	changesPage, changesMax, touchedMax = 1000, 20_000, 5_000
	// movedBytesMax bounds the bytes of the index that one search may move to apply changes.
	movedBytesMax = 1 << 30
	// A search looks at up to hitsTimes hits for each row that it may return, but always at up to
	// hitsMin.
	hitsMin, hitsTimes = 200, 10
	// spacesMax bounds the namespaces that a search for fewer rows reads. wordsMax bounds the words
	// of a search.
	spacesMax, wordsMax = 64, 16
)

// Search selects objects by their names.
type Search struct {
	Words     string        // at most 16; each must be in the name of the object or of a parent namespace
	Warehouse string        // empty for all warehouses
	Kinds     []access.Kind // empty for all kinds
	Limit     int
}

// Search returns the objects visible to the caller whose names contain all the words, ignoring
// case. Equal names come first, then names that begin with the first word, then names in which each
// word begins a word, then the others. Within each group, shorter names come first. more means that
// there may be further rows. If some objects are hidden from the caller, more must not reveal them.
// So it then depends only on the rows and on the number of all names.
//
// The first search of a node makes an index of all names, and reads all keys of the store for it.
// Later searches first read the changes since the last search. The error is KindUnavailable while
// the index is being made.
func (b *Browse) Search(ctx context.Context, asked Search) (rows []Row, more bool, err error) {
	rows, more, err = b.search(ctx, asked)
	return rows, more, moorage.Annotate("browse.Search", asked.Warehouse, err)
}

func (b *Browse) search(ctx context.Context, asked Search) (rows []Row, more bool, err error) {
	q := queryOf(asked.Words)
	switch {
	case len(q.words) == 0:
		return nil, false, moorage.Errorf(moorage.KindBadRequest, "There are no words to search for")
	case len(q.words) > wordsMax:
		return nil, false, moorage.Errorf(moorage.KindBadRequest, "%d words to search for, at most %d are possible",
			len(q.words), wordsMax)
	}
	q.warehouse, q.kinds = asked.Warehouse, asked.Kinds
	var hits []hit
	keep, isLarge, cut := max(hitsMin, hitsTimes*asked.Limit), false, false
	err = b.names.use(ctx, func(x *index) {
		hits, more = x.find(q, keep)
		isLarge = x.size() > keep || len(x.spaces) > max(spacesMax, asked.Limit)
	})
	if err != nil {
		return nil, false, err
	}
	who, err := b.guard.ForLists(ctx, b.caller)
	if err != nil {
		return nil, false, err
	}
	var made map[access.ID]bool
	if who != nil {
		if made, err = b.guard.MadeIn(ctx, b.caller); err != nil {
			return nil, false, err
		}
	}
	if some := hitsIn(hits, max(spacesMax, asked.Limit), who == nil); len(some) < len(hits) {
		hits, cut = some, true
	}
	rows = []Row{}
	above := make(map[*space][]access.Object) // each namespace that was read, with its parents
	for len(hits) > 0 && len(rows) < asked.Limit {
		n := min(len(hits), max(asked.Limit-len(rows), 50))
		found, err := b.candidates(ctx, who, made, hits[:n], above)
		if err != nil {
			return nil, false, err
		}
		if hits = hits[n:]; len(found) > asked.Limit-len(rows) {
			found, more = found[:asked.Limit-len(rows)], true
		}
		shown, err := b.complete(ctx, who, found)
		if err != nil {
			return nil, false, err
		}
		rows = append(rows, shown...)
	}
	if who != nil {
		return rows, isLarge || len(rows) == asked.Limit, nil
	}
	return rows, more || cut || len(hits) > 0, nil
}

// hitsIn returns the first hits, as many as need at most spaces namespaces to be read. If seesAll
// is true, only namespaces that are hits themselves are read.
func hitsIn(hits []hit, spaces int, seesAll bool) []hit {
	read := make(map[*space]bool)
	for i, h := range hits {
		if seesAll && h.kind != access.Namespace || read[h.in] {
			continue
		}
		if len(read) == spaces {
			return hits[:i]
		}
		read[h.in] = true
	}
	return hits
}

// candidates returns the hits that still exist and are visible to the caller. above caches the
// namespaces that were read for this search, and candidates adds to it.
func (p *parts) candidates(ctx context.Context, who *access.Who, made map[access.ID]bool, hits []hit,
	above map[*space][]access.Object) (found []candidate, err error) {
	keys := make([]registry.Key, len(hits))
	for i, h := range hits {
		keys[i] = registry.EntryKey(h.in.id, h.name) // no entry has the name ""
		if h.kind == access.Namespace {
			keys[i] = registry.PointerKey(registry.ID{})
		}
	}
	records, err := p.ledger.Get(ctx, keys...)
	if err != nil {
		return nil, err
	}
	for i, h := range hits {
		ident := moorage.Identifier{Warehouse: h.in.warehouse, Namespace: h.in.namespace, Name: h.name}
		c := candidate{row: Row{Kind: h.kind, Ident: ident}, parent: h.in.id}
		if who != nil || h.kind == access.Namespace {
			if _, known := above[h.in]; !known {
				if above[h.in], err = p.aboveOf(ctx, h.in, made); err != nil {
					return nil, err
				}
			}
			if c.path = above[h.in]; c.path == nil {
				continue // the namespace is gone
			}
		}
		if h.kind == access.Namespace {
			c.row.Details = &Details{ID: h.in.id, Creator: moorage.NameOf(c.path[0].Creator)}
		} else {
			entry, err := registry.DecodePart[registry.Entry](records[i])
			if err != nil || (records[i].State == registry.StateView) != (h.kind == access.View) {
				continue // the object is gone, or another object has its name now
			}
			object := access.Object{ID: access.ID(entry.Pointer), Kind: h.kind, Creator: entry.Creator}
			c.pointer, c.path = entry.Pointer, append([]access.Object{object}, c.path...)
		}
		if who == nil || who.Seen(c.path) {
			found = append(found, c)
		}
	}
	return found, nil
}

// aboveOf returns a namespace and its parents. It returns nil if the namespace is gone.
func (p *parts) aboveOf(ctx context.Context, s *space, made map[access.ID]bool) ([]access.Object, error) {
	path, err := p.directory.Path(ctx, s.warehouse, s.namespace)
	switch kind := moorage.KindOf(err); {
	case err != nil && (kind == moorage.KindNoSuchWarehouse || kind == moorage.KindNoSuchNamespace):
		return nil, nil
	case err != nil:
		return nil, err
	case path.ID() != s.id:
		return nil, nil
	}
	above := path.Above()
	for i := range above {
		above[i].OwnsInside = made[above[i].ID]
	}
	return above, nil
}

// names manages the index of a node. The index exists only while it is in use. It is safe for
// concurrent use.
type names struct {
	ledger *ledger.Ledger
	store  registry.Store // for reading changes
	flight singleflight.Group

	// turn is a lock that guards the fields below. To take it, a goroutine sends an element. It is
	// held during a whole search, including the reads from the store, and while the index is
	// changed.
	turn     chan struct{}
	index    *index // nil if there is none
	position registry.Position
	idle     *time.Timer // drops the index
}

func newNames(records *ledger.Ledger, store registry.Store) *names {
	return &names{ledger: records, store: store, turn: make(chan struct{}, 1)}
}

// use calls do with an index that has all names that existed when use was called. do must not
// retain the index.
func (n *names) use(ctx context.Context, do func(*index)) error {
	for {
		used, err := n.tryUse(ctx, do)
		if used || err != nil {
			return err
		}
		made := n.flight.DoChan("", func() (any, error) {
			ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), buildTimeout) // others may wait for it
			defer cancel()
			return nil, n.make(ctx)
		})
		patience := time.NewTimer(buildPatience)
		select {
		case result := <-made:
			err = result.Err
		case <-patience.C:
			err = moorage.Errorf(moorage.KindUnavailable,
				"The index of all names is being made; repeat the search soon")
		case <-ctx.Done():
			err = moorage.E("browse.use", "", moorage.KindUnavailable, ctx.Err())
		}
		patience.Stop()
		if err != nil {
			return err
		}
	}
}

// lock waits for the turn. Errors: KindUnavailable if ctx ends first.
func (n *names) lock(ctx context.Context) (unlock func(), err error) {
	select {
	case n.turn <- struct{}{}:
		return func() { <-n.turn }, nil
	case <-ctx.Done():
		return nil, moorage.E("browse.lock", "", moorage.KindUnavailable, ctx.Err())
	}
}

// tryUse brings the index up to date, and calls do with it. used is false if there is no index.
func (n *names) tryUse(ctx context.Context, do func(*index)) (used bool, err error) {
	unlock, err := n.lock(ctx)
	if err != nil {
		return false, err
	}
	defer unlock()
	if n.index == nil {
		return false, nil
	}
	err = n.follow(ctx)
	if errors.Is(err, registry.ErrForgotten) || errors.Is(err, errFarBehind) {
		n.index = nil
		return false, nil
	}
	if err != nil {
		return false, ledger.StoreError("browse.tryUse", err)
	}
	n.idle.Reset(indexLife)
	do(n.index)
	return true, nil
}

// drop drops the index.
func (n *names) drop() {
	n.turn <- struct{}{}
	n.index = nil
	<-n.turn
}

// make makes the index from the keys of the store. The search that uses the index reads any changes
// made in the meantime.
func (n *names) make(ctx context.Context) error {
	horizon, err := registry.ReadHorizon(ctx, n.store)
	if err != nil {
		return ledger.StoreError("browse.make", err)
	}
	position, err := registry.Head(ctx, n.store, horizon.Position)
	if err != nil {
		return ledger.StoreError("browse.make", err)
	}
	made, err := n.read(ctx)
	if err != nil {
		return err
	}
	unlock, err := n.lock(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	n.index, n.position = made, position
	if n.idle == nil {
		n.idle = time.AfterFunc(indexLife, n.drop)
	}
	n.idle.Reset(indexLife)
	return nil
}

// read returns an index of all names in the store.
func (n *names) read(ctx context.Context) (*index, error) {
	warehouses := make(map[string]string) // names, by ID in text form
	err := n.ledger.Scan(ctx, registry.TableWarehouse, "", "", func(record registry.Record) (bool, error) {
		warehouse, err := registry.DecodePart[registry.Warehouse](record)
		if err == nil { // moorage doctor shows records that cannot be read
			warehouses[warehouse.ID.String()] = record.Key.ID
		}
		return true, nil
	})
	if err != nil {
		return nil, err
	}
	type level struct {
		warehouse, parent, name string
		id                      registry.ID
	}
	levels := make(map[string]level) // by the text of the id
	err = n.ledger.Scan(ctx, registry.TableNamespace, "", "", func(record registry.Record) (bool, error) {
		namespace, err := registry.DecodePart[namespaceID](record)
		parts := strings.SplitN(record.Key.ID, "/", 3)
		if err != nil || len(parts) != 3 {
			return true, nil
		}
		levels[namespace.ID.String()] = level{parts[0], parts[1], parts[2], namespace.ID}
		return true, nil
	})
	if err != nil {
		return nil, err
	}
	made, spaces := newIndex(), make(map[string]*space, len(levels))
	for id, last := range levels {
		namespace := moorage.Namespace{last.name}
		at, whole := last, false
		for len(namespace) <= moorage.NamespaceLevelsMax {
			if at.parent == at.warehouse {
				whole = true
				break
			}
			above, known := levels[at.parent]
			if !known {
				break
			}
			namespace, at = append(moorage.Namespace{above.name}, namespace...), above
		}
		if warehouse, known := warehouses[last.warehouse]; whole && known {
			spaces[id] = made.put(warehouse, namespace, last.id)
		}
	}
	var in string
	var now *space
	clip := func() {
		if now != nil {
			now.text = bytes.Clone(now.text) // trims it to its exact size
		}
	}
	add := func(record registry.Record) (bool, error) {
		id, name, _ := strings.Cut(record.Key.ID, "/")
		if id != in {
			clip()
			in, now = id, spaces[id]
		}
		if now != nil {
			now.append(name, record.State == registry.StateView)
		}
		return true, nil
	}
	err = n.ledger.ScanKeys(ctx, registry.TableEntry, "", "", registry.ListLimitMax, add)
	clip()
	return made, err
}

// namespaceID is the part of a namespace's value that an index needs.
type namespaceID struct {
	ID registry.ID `json:"id"`
}

// errFarBehind means that an index is too far behind to be brought up to date.
var errFarBehind = errors.New("the index is too far behind")

// follow brings the index up to date: it reads which names have changed, and what they are now. If
// it fails, the next call reads the same changes again.
func (n *names) follow(ctx context.Context) error {
	touched, spaces := make(map[string]moorage.Identifier), make(map[string]moorage.Identifier)
	position := n.position
	for read := 0; ; {
		page, err := registry.Follow(ctx, n.store, position, changesPage)
		if err != nil {
			return err
		}
		for _, change := range page {
			if change.Unreadable != nil {
				return errFarBehind // the change cannot be read, so its effects are unknown
			}
			for _, item := range change.Change.Items {
				note(change.Change, item, touched, spaces)
			}
			position = change.Position
		}
		if read += len(page); read > changesMax || len(touched)+len(spaces) > touchedMax {
			return errFarBehind
		}
		if len(page) < changesPage {
			break
		}
	}
	for _, ident := range spaces {
		if err := n.readSpace(ctx, ident); err != nil {
			return err
		}
	}
	if err := n.readNames(ctx, touched); err != nil {
		return err
	}
	n.position = position
	return nil
}

// note records the names that a change may have added or removed. Most changes are commits, which
// do neither.
func note(change registry.Change, item registry.Item, touched, spaces map[string]moorage.Identifier) {
	switch gate.Verb(change.Operation) {
	case gate.Commit, gate.Replace, gate.PutLabels, gate.Protect, gate.Expire, gate.UpdateProperties:
		return
	}
	switch item.Kind {
	case registry.ItemTable, registry.ItemView:
		touched[spaceKey(item.Ident.Warehouse, item.Ident.Namespace)+"\x00"+item.Ident.Name] = item.Ident
		if was := item.Previous; was != nil {
			touched[spaceKey(was.Warehouse, was.Namespace)+"\x00"+was.Name] = *was
		}
	case registry.ItemNamespace:
		for depth := range item.Ident.Namespace { // its parents may have been created with it
			ident := moorage.Identifier{Warehouse: item.Ident.Warehouse, Namespace: item.Ident.Namespace[:depth+1]}
			spaces[spaceKey(ident.Warehouse, ident.Namespace)] = ident
		}
	}
}

// idOf returns the ID of a namespace. It is zero if the namespace does not exist, or if one of its
// records cannot be read.
func (n *names) idOf(ctx context.Context, ident moorage.Identifier) (id registry.ID, err error) {
	records, err := n.ledger.Get(ctx, registry.WarehouseKey(ident.Warehouse))
	if err != nil || !records[0].Exists() {
		return registry.ID{}, err
	}
	warehouse, err := registry.DecodePart[registry.Warehouse](records[0])
	if err != nil {
		return registry.ID{}, nil
	}
	id = warehouse.ID
	for _, level := range ident.Namespace {
		records, err = n.ledger.Get(ctx, registry.NamespaceKey(warehouse.ID, id, level))
		if err != nil || !records[0].Exists() {
			return registry.ID{}, err
		}
		namespace, err := registry.DecodePart[namespaceID](records[0])
		if err != nil {
			return registry.ID{}, nil
		}
		id = namespace.ID
	}
	return id, nil
}

// readSpace updates the index with whether a namespace exists.
func (n *names) readSpace(ctx context.Context, ident moorage.Identifier) error {
	id, err := n.idOf(ctx, ident)
	switch {
	case err != nil:
		return err
	case id.IsZero():
		n.index.remove(ident.Warehouse, ident.Namespace)
	default:
		n.index.put(ident.Warehouse, ident.Namespace, id)
	}
	return nil
}

// readNames updates the index with the present state of names of tables and views.
func (n *names) readNames(ctx context.Context, touched map[string]moorage.Identifier) error {
	var idents []moorage.Identifier
	var keys []registry.Key
	moved := 0
	for _, ident := range touched {
		s := n.index.spaces[spaceKey(ident.Warehouse, ident.Namespace)]
		if s == nil { // it is gone, or older than the index
			if err := n.readSpace(ctx, ident); err != nil {
				return err
			}
			if s = n.index.spaces[spaceKey(ident.Warehouse, ident.Namespace)]; s == nil {
				continue
			}
		}
		moved += len(s.text)
		idents, keys = append(idents, ident), append(keys, registry.EntryKey(s.id, ident.Name))
	}
	if moved > movedBytesMax {
		return errFarBehind
	}
	for len(keys) > 0 {
		page := min(len(keys), changesPage)
		records, err := n.ledger.Get(ctx, keys[:page]...)
		if err != nil {
			return err
		}
		for i, record := range records {
			s := n.index.spaces[spaceKey(idents[i].Warehouse, idents[i].Namespace)]
			s.set(idents[i].Name, record.Exists(), record.State == registry.StateView)
		}
		idents, keys = idents[page:], keys[page:]
	}
	return nil
}
