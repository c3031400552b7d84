package catalog

import (
	"context"
	"log/slog"
	"slices"

	"moorage"
	"moorage/access"
	"moorage/catalog/commit"
	"moorage/catalog/directory"
	"moorage/catalog/gate"
	"moorage/ledger"
	"moorage/registry"
)

// RenameTable gives a table another name in the same warehouse. The table keeps its pointer, and
// the location of its metadata and data.
//
// Errors: KindNoSuchTable for the source. KindNoSuchNamespace for the destination's namespace.
// KindAlreadyExists if there is a table or view at the destination (the source itself included).
// KindUnavailable, KindCommitUnknown. When RenameTable returns without an error, the change is
// durable. Source: REST specification, renameTable.
func (c *Catalog) RenameTable(ctx context.Context, from, to moorage.Identifier) error {
	_, err := c.submit(ctx, c.rename(c.asker(gate.Rename), tableKind, from, to))
	return moorage.Annotate("catalog.RenameTable", from.String(), err)
}

// rename returns the intent to rename a table or view.
//
// A move into another namespace changes the inherited grants, so it also requires manage.
func (p *parts) rename(by directory.Asker, k *kind, from, to moorage.Identifier) commit.Intent {
	met := gate.Always
	if !from.Namespace.Equal(to.Namespace) {
		met = gate.IfMoving
	}
	asked := k.rename.Needs(gate.OfObject, met)
	return commit.Intent{
		Verb: k.rename, On: []moorage.Identifier{from, to},
		Look: func(ctx context.Context) (commit.Scope, error) {
			for _, ident := range []moorage.Identifier{from, to} {
				if err := ident.Validate(); err != nil {
					return commit.Scope{}, err
				}
			}
			if from.Warehouse != to.Warehouse {
				return commit.Scope{}, moorage.Errorf(moorage.KindBadRequest,
					"Cannot rename %s to another warehouse", from)
			}
			scope, err := p.scopeOf(ctx, by, asked, k, from, to)
			if err == nil && p.guarded {
				_, err = p.directory.PathFor(ctx, by, by.Verb.Needs(gate.OfDestination, met), to)
			}
			return scope, err
		},
		Plan: commit.Plans(func(ctx context.Context, _ *commit.Attempt) (renaming, error) {
			return p.readRenaming(ctx, by, asked, k, from, to)
		}, planRename),
	}
}

// renaming is a table or view that will be renamed, with the records that were read for it.
type renaming struct {
	kind     *kind
	from, to moorage.Identifier
	source   named
	target   parent            // the namespace of to
	occupant directory.Entry   // the present entry of the destination name
	policy   ledger.Policy     // it moves the grants to the new namespace
	makers   gate.MakerRecords // they let its creator see the new path
}

func (p *parts) readRenaming(ctx context.Context, by directory.Asker, asked access.Privileges, k *kind,
	from, to moorage.Identifier) (renaming, error) {
	r := renaming{kind: k, from: from, to: to}
	var err error
	if r.source, err = p.readNamed(ctx, by, asked, k, from); err != nil {
		return r, err
	}
	path, err := p.directory.LivePath(ctx, to.Warehouse, to.Namespace)
	if err != nil {
		return r, p.directory.Missing(ctx, by, to.Warehouse, err)
	}
	if err := p.directory.MayAt(ctx, by, by.Verb.Needs(gate.OfDestination, gate.Always), path, to); err != nil {
		return r, err
	}
	r.target = parentAt(path)
	if frozen := r.source.pointer.Pointer.Frozen; frozen != "" {
		return r, gate.FrozenObject(from, frozen)
	}
	if err := renamedOut(r.source.path, from, to); err != nil {
		return r, err
	}
	r.source.above = r.source.path.Unchanged()
	if pointer := r.source.pointer.Pointer; pointer.NamespaceID != path.ID() {
		if r.policy, err = p.moveGrants(ctx, pointer, path.Above()); err != nil {
			return r, err
		}
		if r.makers, err = p.guard.MakerRecords(ctx, pointer.Creator, path.Above()); err != nil {
			return r, err
		}
	}
	r.occupant, err = p.directory.ReadEntry(ctx, path, to.Name)
	return r, err
}

func planRename(attempt *commit.Attempt, r renaming) (*commit.Plan, error) {
	switch r.occupant.Record.State {
	case registry.StateNone:
	case viewKind.State:
		return nil, moorage.Errorf(moorage.KindAlreadyExists,
			"Cannot rename %s to %s. View already exists", r.from, r.to)
	default:
		return nil, moorage.Errorf(moorage.KindAlreadyExists,
			"Cannot rename %s to %s. Table already exists", r.from, r.to)
	}
	if r.from.Equal(r.to) {
		return nil, ledger.ErrRetry // the table or view was dropped after the read
	}
	pointer := r.source.pointer.Pointer
	summary := pointer.LastIn(registry.StateLive).Summary
	pointer.Namespace, pointer.Name, pointer.NamespaceID = r.to.Namespace, r.to.Name, r.target.id
	pointer.Last = pointer.Written(registry.StateLive, attempt.Change, summary)
	targetKey := registry.EntryKey(r.target.id, r.to.Name)
	renamed := registry.Entry{
		Unknown: r.source.entry.Value.Unknown, Pointer: pointer.ID, Shard: registry.Shard(r.to.Name),
		Creator: pointer.Creator,
	}
	writes, err := ledger.Encode(
		ledger.Put(targetKey, r.kind.State, renamed),
		ledger.Replace(r.source.pointer.Record, registry.StateLive, pointer),
	)
	return &commit.Plan{
		Conditions: slices.Concat(r.source.conditions(),
			[]registry.Condition{r.target.unchanged(), registry.Absent(targetKey)},
			r.policy.Conditions, r.makers.Conditions),
		Writes: slices.Concat(writes, []registry.Write{ledger.Delete(r.source.entry.Record)}, r.policy.Writes,
			r.makers.Writes),
		Items: []registry.Item{registry.PointerItem(r.source.pointer.Pointer, pointer)},
		Told: commit.Told{Message: "renamed", Attrs: []slog.Attr{
			slog.String("kind", nounOf(pointer)), slog.String("ident", r.from.String()),
			slog.String("to", r.to.String()), slog.String("warehouse", r.to.Warehouse),
			slog.String("owner", moorage.NameOf(pointer.Creator)),
		}},
	}, err
}

// moveGrants plans the move of a pointer's grants to the innermost container in above.
func (p *parts) moveGrants(ctx context.Context, pointer registry.Pointer, above []access.Object) (
	ledger.Policy, error) {
	if !pointer.Granted {
		return ledger.Policy{}, nil
	}
	record, unchanged, err := p.readGrants(ctx, pointer)
	if err != nil || !record.Exists() {
		return ledger.Policy{Conditions: unchanged}, err
	}
	grants, err := ledger.Decode[registry.Grants](record)
	if err != nil {
		return ledger.Policy{}, err
	}
	grants.Ancestors = gate.IDs(above)
	policy, err := p.ledger.ChangePolicy(ctx, ledger.Put(record.Key, registry.StateNone, grants))
	policy.Conditions = append(policy.Conditions, unchanged...)
	return policy, err
}
