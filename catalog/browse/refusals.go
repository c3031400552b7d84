package browse

import (
	"context"
	"slices"
	"strings"
	"time"

	"moorage"
	"moorage/access"
	"moorage/catalog/activity"
	"moorage/catalog/directory"
	"moorage/catalog/gate"
)

// refusalsSlack is the assumed maximum difference between the clocks of two nodes. Refusals older
// than a namespace, allowing for that slack, may belong to an earlier namespace of the same name.
const refusalsSlack = time.Minute

// Refusals returns at most limit commits that this node refused, newest first. It covers one table
// or view, or all objects in a namespace or warehouse. The caller needs access.Describe on that
// table, view or container. The reason of a refusal can name objects that are hidden from the
// caller. So another caller's refusal has its reason only if the commit conflicted with another
// commit, and only if the reason does not mention an earlier name of the object.
//
// Errors: the errors for missing and hidden objects.
func (b *Browse) Refusals(ctx context.Context, kind access.Kind, ident moorage.Identifier, limit int) (
	[]activity.Refusal, error) {
	found, err := b.refusals(ctx, kind, ident, limit)
	for i := range found {
		if r := &found[i]; r.Kind != moorage.KindCommitFailed && r.Caller != b.caller.Name {
			r.Reason = ""
		}
	}
	return found, moorage.Annotate("browse.Refusals", ident.String(), err)
}

func (b *Browse) refusals(ctx context.Context, kind access.Kind, ident moorage.Identifier, limit int) (
	[]activity.Refusal, error) {
	asked, by := gate.ListRefusals.Needs(gate.OfObject, gate.Always), b.asker(gate.ListRefusals)
	if err := moorage.ValidateWarehouse(ident.Warehouse); err != nil {
		return nil, err
	}
	if kind == access.Table || kind == access.View {
		if err := ident.Validate(); err != nil {
			return nil, err
		}
		found, err := b.directory.FindFor(ctx, by, asked, ofKind(kind), ident)
		if err != nil {
			return nil, err
		}
		all := b.activity.RefusalsOf(found.Pointer.ID, b.now())
		for i := range all {
			r := &all[i]
			hasFormerName := !r.Of.Ident.Equal(ident) && strings.Contains(r.Reason, r.Of.Ident.String())
			if hasFormerName && r.Caller != b.caller.Name {
				r.Reason = ""
			}
			r.Of.Ident = ident // the caller may not see the namespace of an earlier name
		}
		return all[:min(limit, len(all))], nil
	}
	if len(ident.Namespace) > 0 {
		if err := ident.Namespace.Validate(); err != nil {
			return nil, err
		}
	}
	path, err := b.directory.PathFor(ctx, by, asked, ident)
	if err != nil {
		return nil, err
	}
	since := path.Since().Add(refusalsSlack)
	return b.activity.RefusalsWithin(b.now(), limit, func(r *activity.Refusal) bool {
		of, depth := r.Of.Ident, len(ident.Namespace)
		return of.Warehouse == ident.Warehouse && len(of.Namespace) >= depth &&
			slices.Equal(of.Namespace[:depth], ident.Namespace) && !r.At.Before(since)
	}), nil
}

// ofKind returns the kind of a table or view.
func ofKind(kind access.Kind) *directory.Kind {
	if kind == access.View {
		return directory.View()
	}
	return directory.Table()
}
