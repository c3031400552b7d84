package browse

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"moorage"
	"moorage/access"
	"moorage/catalog/directory"
	"moorage/catalog/gate"
	"moorage/registry"
)

// Bounds of one page of a list.
const (
	// listsMax bounds the calls of Ledger.List that a recursive list makes for one page.
	listsMax = 64
	// If some objects are hidden from the caller, a page looks at up to lookedAtTimes records for
	// each row, but always at up to lookedAtMin records.
	lookedAtMin, lookedAtTimes = 1000, 10
)

// Listing selects the objects of a list.
type Listing struct {
	Warehouse string
	Namespace moorage.Namespace // empty for the whole warehouse
	Recursive bool              // include the objects in namespaces below Namespace
	Kinds     []access.Kind     // empty for all kinds
	Prefix    string            // of the last name
}

func (l Listing) has(kind access.Kind) bool {
	return len(l.Kinds) == 0 || slices.Contains(l.Kinds, kind)
}

// hasEntries reports whether l lists tables or views.
func (l Listing) hasEntries() bool { return l.has(access.Table) || l.has(access.View) }

// Objects returns a page of the objects in a namespace or warehouse that are visible to the caller.
// In each container, namespaces come first, then tables and views; both are in order of name. In a
// recursive list, a namespace is followed by the objects in it. A page can be short or empty
// without being the last. To get the next page, pass next as page.After. next is empty on the last
// page.
func (b *Browse) Objects(ctx context.Context, of Listing, page moorage.Page) (rows []Row, next string, err error) {
	on := moorage.Identifier{Warehouse: of.Warehouse, Namespace: of.Namespace}
	rows, next, err = b.objects(ctx, on, of, page)
	return rows, next, moorage.Annotate("browse.Objects", on.String(), err)
}

func (b *Browse) objects(ctx context.Context, on moorage.Identifier, of Listing, page moorage.Page) (
	rows []Row, next string, err error) {
	if err := moorage.ValidateWarehouse(of.Warehouse); err != nil {
		return nil, "", err
	}
	if len(of.Namespace) > 0 {
		if err := of.Namespace.Validate(); err != nil {
			return nil, "", err
		}
	}
	by := b.asker(gate.ListObjects)
	asked := by.Verb.Needs(gate.OfObject, gate.Always)
	path, err := b.directory.PathFor(ctx, by, asked, on)
	if err != nil {
		return nil, "", err
	}
	err = b.directory.RecheckAt(ctx, by, asked, path, on, func(ctx context.Context) (err error) {
		rows, next, err = b.walkFrom(ctx, path, of, page)
		return err
	})
	return rows, next, err
}

// position is the place in a list after which a page begins. It is the JSON of a token.
type position struct {
	Levels []string `json:"l,omitempty"` // the path of the container, relative to the listed one
	// If Entries is true, the position is after the table or view called After. Otherwise it is
	// after the namespace called After and all objects in it. If After is empty, the position is
	// before all tables and views, or before all namespaces.
	Entries bool   `json:"e,omitempty"`
	After   string `json:"a,omitempty"`
}

// walk makes one page of a list.
type walk struct {
	*parts
	who  *access.Who        // nil if the caller sees everything
	made map[access.ID]bool // the containers in which the caller created an object
	of   Listing

	limit         int
	lists, looked int
	lookedMax     int
	found         []candidate
	plans         map[planOf]access.Plan // how the caller sees the objects in a container
	next          *position              // where the page ended; nil at the end of the list
}

// planOf identifies the objects of one kind in a container.
type planOf struct {
	container registry.ID
	kind      access.Kind
}

// candidate is an object that belongs on a page, judged by its name.
type candidate struct {
	row     Row
	path    []access.Object // the object and its containers
	pointer registry.ID     // of a table or view
	within  bool            // a container is protected
	parent  registry.ID     // its namespace
}

// container is a container of a walk.
type container struct {
	id    registry.ID
	ident moorage.Identifier
	above []access.Object // the container and its parents
	// isProtected is true if the container or one of its parents is protected.
	isProtected bool
}

// walkFrom returns the page of a list that begins at page.After.
func (b *Browse) walkFrom(ctx context.Context, path *directory.Path, of Listing, page moorage.Page) (
	[]Row, string, error) {
	list := path.ID().String()
	from, err := b.openPosition(ctx, list, page.After)
	if err != nil {
		return nil, "", err
	}
	w := &walk{parts: b.parts, of: of, limit: page.Limit, plans: make(map[planOf]access.Plan)}
	w.lookedMax = max(lookedAtMin, lookedAtTimes*w.limit)
	if w.who, err = b.guard.ForLists(ctx, b.caller); err != nil {
		return nil, "", err
	}
	above := path.Above()
	if w.who != nil {
		if w.made, err = b.guard.MadeIn(ctx, b.caller); err != nil {
			return nil, "", err
		}
		for i := range above {
			above[i].OwnsInside = w.made[above[i].ID]
		}
	}
	root := container{
		id: path.ID(), ident: moorage.Identifier{Warehouse: of.Warehouse, Namespace: of.Namespace}, above: above,
	}
	_, root.isProtected = path.Protection()
	if err := w.visit(ctx, path.Warehouse.ID, root, nil, from); err != nil && !errors.Is(err, errFull) {
		return nil, "", err
	}
	rows, err := w.complete(ctx, w.who, w.found)
	if err != nil || w.next == nil {
		return rows, "", err
	}
	next, err := b.sealPosition(ctx, list, *w.next)
	return rows, next, err
}

// errFull ends the walk of a full page.
var errFull = errors.New("the page is full")

// end ends the page at a position.
func (w *walk) end(at position) error {
	w.next = &at
	return errFull
}

// visit adds the objects in a container to the page, starting at the position from; nil means the
// beginning. levels is the path from the listed container to this one.
func (w *walk) visit(ctx context.Context, warehouse registry.ID, in container, levels []string, from *position) error {
	after := ""
	switch {
	case from == nil:
	case len(from.Levels) > len(levels): // the position is in a namespace in this container
		after = from.Levels[len(levels)]
		if err := w.visitAgain(ctx, warehouse, in, levels, from); err != nil {
			return err
		}
	case from.Entries:
		return w.entries(ctx, in, levels, from.After)
	default:
		after = from.After
	}
	if w.of.has(access.Namespace) || w.of.Recursive {
		if err := w.namespaces(ctx, warehouse, in, levels, after); err != nil {
			return err
		}
	}
	return w.entries(ctx, in, levels, "")
}

// visitAgain continues in the namespace where the previous page ended, if that namespace still
// exists and is still visible to the caller.
func (w *walk) visitAgain(ctx context.Context, warehouse registry.ID, in container, levels []string,
	from *position) error {
	name := from.Levels[len(levels)]
	records, err := w.ledger.Get(ctx, registry.NamespaceKey(warehouse, in.id, name))
	if err != nil || !records[0].Exists() {
		return err
	}
	child, readable := childOf(in, name, records[0])
	if !readable || !w.sees(in, &child.above[0]) {
		return nil
	}
	return w.visit(ctx, warehouse, child, append(slices.Clone(levels), name), from)
}

// childOf returns the namespace with this name and record in a container. If the record cannot be
// read, the result has no id.
func childOf(in container, name string, record registry.Record) (child container, readable bool) {
	namespace, err := registry.DecodePart[registry.Namespace](record)
	object := access.Object{ID: access.ID(namespace.ID), Kind: access.Namespace, Creator: namespace.Creator}
	ident := moorage.Identifier{
		Warehouse: in.ident.Warehouse, Namespace: append(slices.Clone(in.ident.Namespace), name),
	}
	return container{
		namespace.ID, ident, append([]access.Object{object}, in.above...), in.isProtected || namespace.Protected,
	}, err == nil
}

// sees reports whether an object in a visible container is visible to the caller. It also fills in
// the object's remaining fields.
func (w *walk) sees(in container, object *access.Object) bool {
	if w.who == nil {
		return true
	}
	object.OwnsInside = w.made[object.ID]
	of := planOf{in.id, object.Kind}
	plan, known := w.plans[of]
	if !known {
		plan, _ = w.who.PlanList(in.above, object.Kind)
		w.plans[of] = plan
	}
	return plan == access.ListAll || plan != access.ListNone && w.who.SeenIn(*object)
}

// scan calls do for each record of table whose ID begins with prefix, starting behind the record of
// the name in after. end returns the position behind a name; a full page ends there.
func (w *walk) scan(ctx context.Context, table registry.Table, prefix, names, after string,
	end func(name string) position, do func(name string, record registry.Record) error) error {
	if after != "" {
		after = prefix + after
	}
	for {
		if w.lists++; w.lists > listsMax {
			return w.end(end(strings.TrimPrefix(after, prefix)))
		}
		limit := min(w.limit-len(w.found)+1, registry.ListLimitMax)
		page, err := w.ledger.List(ctx, table, prefix+names, after, limit)
		if err != nil {
			return err
		}
		for _, record := range page {
			if len(w.found) == w.limit || w.looked == w.lookedMax {
				return w.end(end(strings.TrimPrefix(after, prefix)))
			}
			w.looked++
			after = record.Key.ID
			if err := do(after[len(prefix):], record); err != nil {
				return err
			}
		}
		if registry.IsLastPage(page, limit) {
			return nil
		}
	}
}

// namespaces adds the namespaces in a container, and in a recursive list the objects in them. It
// starts behind the namespace whose name is after.
func (w *walk) namespaces(ctx context.Context, warehouse registry.ID, in container, levels []string,
	after string) error {
	prefix, names := registry.NamespacePrefix(warehouse, in.id), w.of.Prefix
	if w.of.Recursive {
		names = "" // other names have objects in them that are listed
	}
	end := func(name string) position { return position{Levels: levels, After: name} }
	visit := func(name string, record registry.Record) error {
		child, readable := childOf(in, name, record)
		if !w.sees(in, &child.above[0]) {
			return nil
		}
		if w.of.has(access.Namespace) && strings.HasPrefix(name, w.of.Prefix) {
			row := Row{Kind: access.Namespace, Ident: child.ident}
			if readable { // moorage doctor shows records that cannot be read
				row.Details = &Details{
					ID: child.id, Creator: moorage.NameOf(child.above[0].Creator), Protected: child.isProtected,
				}
			}
			w.found = append(w.found, candidate{row: row, path: child.above})
		}
		if !w.of.Recursive || !readable {
			return nil
		}
		inside := append(slices.Clone(levels), name)
		if len(w.found) == w.limit {
			return w.end(position{Levels: inside})
		}
		return w.visit(ctx, warehouse, child, inside, nil)
	}
	return w.scan(ctx, registry.TableNamespace, prefix, names, after, end, visit)
}

// entries adds the tables and views in a namespace. It starts behind the one whose name is after.
func (w *walk) entries(ctx context.Context, in container, levels []string, after string) error {
	if len(in.ident.Namespace) == 0 || !w.of.hasEntries() {
		return nil
	}
	end := func(name string) position { return position{Levels: levels, Entries: true, After: name} }
	return w.scan(ctx, registry.TableEntry, registry.EntryPrefix(in.id), w.of.Prefix, after, end,
		func(name string, record registry.Record) error {
			entry, _ := registry.DecodePart[registry.Entry](record) // has no pointer if the record is damaged
			kind := access.Table
			if record.State == registry.StateView {
				kind = access.View
			}
			object := access.Object{ID: access.ID(entry.Pointer), Kind: kind, Creator: entry.Creator}
			if !w.of.has(kind) || !w.sees(in, &object) {
				return nil
			}
			ident := in.ident
			ident.Name = name
			w.found = append(w.found, candidate{
				row:  Row{Kind: kind, Ident: ident},
				path: append([]access.Object{object}, in.above...), pointer: entry.Pointer, parent: in.id,
				within: in.isProtected,
			})
			return nil
		})
}

// complete returns the rows of candidates, with the details that the caller may see. It reads all
// pointers at once, and leaves out tables and views that were renamed or dropped since their names
// were read. A row has no details if its pointer cannot be read.
func (p *parts) complete(ctx context.Context, who *access.Who, found []candidate) ([]Row, error) {
	var keys []registry.Key
	for _, c := range found {
		if !c.pointer.IsZero() {
			keys = append(keys, registry.PointerKey(c.pointer))
		}
	}
	var records []registry.Record
	if len(keys) > 0 {
		var err error
		if records, err = p.ledger.Get(ctx, keys...); err != nil {
			return nil, err
		}
	}
	rows := make([]Row, 0, len(found))
	describes := gate.LoadObject.Needs(gate.OfObject, gate.Always)
	for _, c := range found {
		row := c.row
		if !c.pointer.IsZero() {
			record := records[0]
			records = records[1:]
			if !record.Exists() || record.State != registry.StateLive {
				continue
			}
			pointer, err := registry.DecodePart[registry.Pointer](record)
			if err != nil { // moorage doctor shows records that cannot be read
				rows = append(rows, row)
				continue
			}
			if pointer.NamespaceID != c.parent || pointer.Name != row.Ident.Name {
				continue
			}
			row.Details = detailsOf(pointer)
			row.Details.Protected = row.Details.Protected || c.within
		}
		if who != nil && who.Decide(c.path, describes).Outcome != access.Allow {
			row.Details = nil
		}
		rows = append(rows, row)
	}
	return rows, nil
}

// openPosition returns the position of a token, nil for the beginning of the list.
func (b *Browse) openPosition(ctx context.Context, list, token string) (*position, error) {
	if token == "" {
		return nil, nil
	}
	text, open := strings.CutPrefix(token, openMark)
	if !open {
		var err error
		if text, err = b.guard.UnsealPage(ctx, list, token); err != nil {
			return nil, err
		}
	}
	var at position
	if json.Unmarshal([]byte(text), &at) != nil {
		return nil, moorage.Errorf(moorage.KindBadRequest, "Invalid pageToken: it is not of this list")
	}
	return &at, nil
}

// openMark is the prefix of a token that is not encrypted. An encrypted token begins with it by
// chance in one of 2^40 cases, and is then refused.
const openMark = gate.SealedMark + "list:"

// sealPosition returns the token of a position.
func (b *Browse) sealPosition(ctx context.Context, list string, at position) (string, error) {
	text, err := json.Marshal(at)
	if err != nil {
		return "", moorage.E("browse.sealPosition", list, moorage.KindInternal, err)
	}
	sealed, err := b.guard.SealPage(ctx, b.random, list, string(text))
	if err == nil && !strings.HasPrefix(sealed, gate.SealedMark) {
		sealed = openMark + sealed
	}
	return sealed, err
}
