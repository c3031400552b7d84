package commit

import (
	"context"
	"log/slog"
	"slices"
	"strings"

	"moorage"
	"moorage/catalog/directory"
	"moorage/catalog/gate"
	"moorage/ledger"
	"moorage/registry"
)

// putBackAttempts is how many times a failed drop tries to make the marked container live again.
const putBackAttempts = 5

// drain makes one attempt to drop a container: a namespace, or a warehouse if there are no levels.
// It marks the container as dropping and looks for children. If there are no children, the plan
// deletes the container; otherwise drain makes it live again. An intent that creates a child
// requires that the container is unchanged since the intent read it as live. So no child can appear
// once the container is marked.
func (p *Pipeline) drain(ctx context.Context, w *work, number int) error {
	ident := w.On[0]
	path, err := p.directory.LivePath(ctx, ident.Warehouse, ident.Namespace)
	if err != nil {
		return p.directory.Missing(ctx, w.asker(), ident.Warehouse, err)
	}
	if asked, asks := w.row.Needs(gate.OfObject, gate.Always); asks {
		if err := p.directory.MayAt(ctx, w.asker(), asked, path, ident); err != nil {
			return err
		}
	}
	if depth, isProtected := path.Protection(); isProtected {
		name := ident.Namespace.String()
		if path.Depth() == 0 {
			name = ident.Warehouse
		}
		return gate.ProtectedBy(name, ident.Warehouse, ident.Namespace[:depth], depth == path.Depth())
	}
	var above []registry.Condition // so no parent becomes protected in the meantime
	if path.Depth() > 0 {
		above = path.Up().Unchanged()
	}
	if path, err = p.markDropping(ctx, w, path); err != nil {
		return err
	}
	empty, err := p.isEmpty(ctx, path)
	if err == nil {
		_, err = p.attempt(ctx, w, number, &Container{ident, path.ID(), path.Record(), empty, above})
	}
	if err != nil && moorage.KindOf(err) != moorage.KindCommitUnknown {
		p.putBack(ctx, ident, path)
	}
	return err
}

// markDropping puts the container, the last record of path, into state dropping. It returns path
// with that record.
func (p *Pipeline) markDropping(ctx context.Context, w *work, path *directory.Path) (*directory.Path, error) {
	ident := w.On[0]
	change, err := w.change(ctx, p.ledger, ident)
	if err != nil {
		return nil, err
	}
	change.Operation += "-begin"
	marked, err := p.directory.SetState(ctx, change, path, registry.StateDropping)
	if err != nil || marked != nil {
		return marked, ledger.RetryOnConflict(err)
	}
	if marked, err = p.directory.Path(ctx, ident.Warehouse, ident.Namespace); err != nil {
		return nil, err
	}
	if marked.Record().State != registry.StateDropping {
		return nil, ledger.ErrRetry // another operation took this drop for dead and undid it
	}
	return marked, nil
}

// isEmpty reports whether path has no child namespaces and no entries.
func (p *Pipeline) isEmpty(ctx context.Context, path *directory.Path) (bool, error) {
	below := registry.NamespacePrefix(path.Warehouse.ID, path.ID())
	children, err := p.ledger.ListKeys(ctx, registry.TableNamespace, below, "", 1)
	if err != nil || len(children) > 0 {
		return false, err
	}
	entries, err := p.ledger.ListKeys(ctx, registry.TableEntry, registry.EntryPrefix(path.ID()), "", 1)
	return len(entries) == 0, err
}

// putBack calls directory.PutBack for a failed drop, even if the request's time has run out. If
// that fails too, the container stays in state dropping. Once that state is stale, the next
// operation that finds it makes the container live again.
func (p *Pipeline) putBack(ctx context.Context, ident moorage.Identifier, path *directory.Path) {
	ctx, cancel := moorage.Detached(ctx, SettleTimeout)
	defer cancel()
	for attempt := 0; ; attempt++ {
		err := p.directory.PutBack(ctx, ident.Warehouse, ident.Namespace, path)
		if err == nil {
			return
		}
		if attempt+1 == putBackAttempts || p.ledger.Pause(ctx, attempt+3) != nil {
			p.log.WarnContext(ctx, "could not cancel the drop of a warehouse or namespace",
				"ident", ident, "error", err)
			return
		}
	}
}

// Container is a namespace or warehouse in state dropping. Empty is true if it has no direct
// children.
type Container struct {
	Ident  moorage.Identifier // Name is empty
	ID     registry.ID
	Record registry.Record
	Empty  bool
	Above  []registry.Condition // require that its parents are unchanged
}

// containerHead holds the common members of the records of namespaces and warehouses.
type containerHead struct {
	Granted bool   `json:"granted"`
	Creator string `json:"creator"`
}

// EndGrants plans the removal of the grants on c. It plans nothing if c is not empty, because then
// c stays.
func (c *Container) EndGrants(ctx context.Context, records *ledger.Ledger) (ledger.Policy, error) {
	head, err := registry.DecodePart[containerHead](c.Record)
	if err != nil || !c.Empty {
		return ledger.Policy{}, err
	}
	return records.EndGrants(ctx, head.Granted, c.ID)
}

// ended returns the write of the dropped record for the namespace c. change drops the namespace.
func (c *Container) ended(change registry.Change) ([]registry.Write, error) {
	value, err := ledger.Decode[registry.Namespace](c.Record)
	if err != nil {
		return nil, err
	}
	var warehouse registry.ID
	id, _, _ := strings.Cut(c.Record.Key.ID, "/")
	if err := warehouse.UnmarshalText([]byte(id)); err != nil {
		return nil, ledger.Undecoded(c.Record, err)
	}
	last := len(c.Ident.Namespace) - 1
	key := registry.DroppedKey(warehouse, c.Ident.Namespace[:last], c.Ident.Namespace[last], value.Since, c.ID)
	return ledger.Encode(ledger.Put(key, registry.StateEnded, registry.Dropped{
		ID: c.ID, Kind: registry.ItemNamespace, Ident: c.Ident,
		At: value.Since, By: change.Principal, Change: change.ID,
		Ended: value.Since, How: registry.EndedDrop, EndedBy: change.Principal, EndedChange: change.ID,
	}))
}

// PlanDrop plans the removal of c and of its maintenance policies. ends removes its grants.
//
// Errors: KindNamespaceNotEmpty if c is not empty.
func (c *Container) PlanDrop(attempt *Attempt, ends ledger.Policy) (*Plan, error) {
	kind, scope := "namespace", registry.NamespaceScope(c.ID)
	full := moorage.Errorf(moorage.KindNamespaceNotEmpty, "Namespace %s is not empty", c.Ident.Namespace)
	if len(c.Ident.Namespace) == 0 {
		kind, scope = "warehouse", registry.WarehouseScope(c.ID)
		full = moorage.Errorf(moorage.KindNamespaceNotEmpty, "Warehouse %s is not empty", c.Ident.Warehouse)
	}
	if !c.Empty {
		return nil, full
	}
	owner := ""
	if head, err := registry.DecodePart[containerHead](c.Record); err == nil {
		owner = moorage.NameOf(head.Creator)
	}
	item := registry.ContainerItem(c.Ident, c.ID)
	var ended []registry.Write
	if item.Kind == registry.ItemNamespace {
		var err error
		if ended, err = c.ended(attempt.Change); err != nil {
			return nil, err
		}
		item.Ended = ended[0].Key.ID
	}
	return &Plan{
		Conditions: append(slices.Concat(ends.Conditions, c.Above), ledger.Unchanged(c.Record)),
		Writes: slices.Concat(ends.Writes, ended, []registry.Write{
			ledger.Delete(c.Record), registry.Delete(registry.MaintenancePolicyKey(scope)),
		}),
		Items: []registry.Item{item},
		Told: Told{Message: "dropped for good: it was empty", Attrs: []slog.Attr{
			slog.String("kind", kind), slog.String("ident", c.Ident.String()),
			slog.String("warehouse", c.Ident.Warehouse), slog.String("owner", owner),
		}},
	}, nil
}
