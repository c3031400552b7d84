package directory

import (
	"context"
	"errors"

	"moorage"
	"moorage/access"
	"moorage/catalog/gate"
	"moorage/ledger"
)

// Views are the views that a request names as its path to a table or view.
type Views struct {
	Names []moorage.Identifier // outermost view first
	// IsDefiner reports whether a view is a definer view. For the objects behind a definer view,
	// the privileges of its owner count.
	IsDefiner func(ctx context.Context, view *Found) (bool, error)
}

// findThrough is like FindFor, for a caller that may come through views. It also returns the asker
// with the views that were found. The guard decides whether the views count: if the sender is not
// trusted, they are ignored.
func (d *Directory) findThrough(ctx context.Context, by Asker, asked access.Privileges, k *Kind,
	ident moorage.Identifier, views *Views) (found *Found, through Asker, err error) {
	if views == nil || d.guard == nil {
		found, err = d.FindFor(ctx, by, asked, k, ident)
		return found, by, err
	}
	by.Through = &gate.Through{Views: make([]gate.View, len(views.Names))}
	for i, name := range views.Names {
		by.Through.Views[i].Object.Ident = name
	}
	p := viewPath{Directory: d, by: by, kind: k, to: ident, views: views}
	trusted, err := p.isTrusted(ctx)
	if err != nil {
		return nil, by, err
	}
	if by.Through.Ignored = !trusted; trusted {
		found, err = p.find(ctx)
	} else {
		found, err = d.Find(ctx, k, ident)
	}
	if err != nil {
		return nil, by, p.missing(ctx, err)
	}
	return found, by, d.May(ctx, by, asked, found, ident)
}

// viewPath is a caller's path through views to a table or view.
type viewPath struct {
	*Directory
	by    Asker // includes the views
	kind  *Kind
	to    moorage.Identifier
	views *Views
}

// find finds the target of p, and the existing views on the path. It reads all cached ones in one
// call.
func (p viewPath) find(ctx context.Context) (*Found, error) {
	names := append(p.views.Names[:len(p.views.Names):len(p.views.Names)], p.to)
	last := len(names) - 1
	known, err := p.knownNow(ctx, func(i int) *Kind {
		if i == last {
			return p.kind
		}
		return View()
	}, names)
	if err != nil {
		return nil, err
	}
	for i := range p.by.Through.Views {
		if p.by.Through.Views[i], err = p.findView(ctx, names[i], known[i]); err != nil {
			return nil, err
		}
	}
	if known[last] != nil {
		return known[last], nil
	}
	return p.Find(ctx, p.kind, p.to)
}

// findView returns a view on the path. known is the view if it was already read, or nil. A missing
// or unreadable view is not an error, but the caller cannot reach anything through it.
func (p viewPath) findView(ctx context.Context, name moorage.Identifier, known *Found) (view gate.View, err error) {
	view.Object.Ident = name
	found := known
	var definer bool
	err = p.ledger.Retry(ctx, moorage.KindUnavailable, func(int) (err error) {
		if found == nil {
			if found, err = p.Find(ctx, View(), name); err != nil {
				return err
			}
		}
		if definer, err = p.views.IsDefiner(ctx, found); errors.Is(err, ledger.ErrRetry) {
			found = nil
		}
		return err
	})
	switch kind := moorage.KindOf(err); {
	case err == nil:
		return gate.View{Object: found.Object(name), Definer: definer}, nil
	case kind == moorage.KindUnavailable, ctx.Err() != nil:
		return view, err
	case kind != moorage.KindNoSuchView:
		p.log.WarnContext(ctx, "a view cannot be read, so no query gets through it",
			"view", name.String(), "error", err)
	}
	return view, nil
}

// isTrusted reports whether the guard trusts the sender to name views in the warehouse. If not, the
// views need not be read.
func (p viewPath) isTrusted(ctx context.Context) (bool, error) {
	path, err := p.Path(ctx, p.to.Warehouse, nil)
	if moorage.KindOf(err) == moorage.KindNoSuchWarehouse {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	return p.guard.Trusts(ctx, p.by.Caller, path.object(moorage.Identifier{Warehouse: p.to.Warehouse}))
}

// missing returns the error if the target of p was not found because of err. If a view refuses the
// caller, that refusal is the error; otherwise err is.
func (p viewPath) missing(ctx context.Context, err error) error {
	switch moorage.KindOf(err) {
	case moorage.KindNoSuchTable, moorage.KindNoSuchView:
	default:
		return err
	}
	path, pathErr := p.Path(ctx, p.to.Warehouse, nil)
	if pathErr != nil {
		return pathErr
	}
	refusal := p.guard.Decide(ctx, gate.Question{
		Caller: p.by.Caller, Verb: p.by.Verb, Object: path.object(moorage.Identifier{Warehouse: p.to.Warehouse}),
		Asked: access.See, Through: p.by.Through, Missing: err,
	})
	if refusal != nil {
		return refusal
	}
	return err
}
