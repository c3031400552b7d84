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
	Names []moorage.Identifier // the outermost first
	// IsDefiner reports whether access behind a view is checked for the view's owner.
	IsDefiner func(ctx context.Context, view *Found) (bool, error)
}

// findThrough is FindFor for a caller that may come through views. through is by with these views
// as they were found. The guard decides whether they count: views from an untrusted sender change
// nothing.
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

// viewPath is the path of a caller to a table or view, through views.
type viewPath struct {
	*Directory
	by    Asker // including the views
	kind  *Kind
	to    moorage.Identifier
	views *Views
}

// find finds the target of p, and the existing views on the way. It reads cached views and a cached
// target together.
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

// findView returns a view on the way; known is its cached result or nil. A missing or unreadable
// view is not an error, but the caller cannot pass through it.
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

// isTrusted reports whether the guard accepts the views in the warehouse, so that they must be
// read. It decides nothing.
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

// missing returns the error if p leads to no object, for the reason err. It is the refusal of a
// view that the caller cannot pass through, or else err.
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
