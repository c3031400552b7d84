package commit

import (
	"context"
	"log/slog"

	"moorage"
	"moorage/ledger"
	"moorage/registry"
)

// Container is a namespace or warehouse in state dropping. Empty reports whether it has no direct
// children.
type Container struct {
	Ident  moorage.Identifier // without a name
	ID     registry.ID
	Record registry.Record
	Empty  bool
}

// containerHead holds the members that records of namespaces and warehouses have in common.
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

// PlanDrop plans the removal of c and of its maintenance policies. ends removes its grants.
//
// Errors: KindNamespaceNotEmpty if c is not empty.
func (c *Container) PlanDrop(ends ledger.Policy) (*Plan, error) {
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
	return &Plan{
		Conditions: append(ends.Conditions, ledger.Unchanged(c.Record)),
		Writes: append(ends.Writes, registry.Delete(c.Record.Key),
			registry.Delete(registry.MaintenancePolicyKey(scope))),
		Items: []registry.Item{registry.ContainerItem(c.Ident, c.ID)},
		Told: Told{Message: "dropped for good: it was empty", Attrs: []slog.Attr{
			slog.String("kind", kind), slog.String("ident", c.Ident.String()),
			slog.String("warehouse", c.Ident.Warehouse), slog.String("owner", owner),
		}},
	}, nil
}
