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
func findThrough(ctx context.Context, d *Directory, by Asker, asked access.Privileges, k *Kind,
	ident moorage.Identifier, views *Views) (found *Found, through Asker, err error) {
	if views == nil || d.guard == nil {
		found, err = d.FindFor(ctx, by, asked, k, ident)
		return found, by, err
	}
	by.Through = &gate.Through{Views: make([]gate.View, len(views.Names))}
	for i, name := range views.Names {
		by.Through.Views[i].Object.Ident = name
	}
	w := way{directory: d, by: by, kind: k, to: ident, views: views}
	trusted, err := w.isTrusted(ctx)
	if err != nil {
		return nil, by, err
	}
	if by.Through.Ignored = !trusted; trusted {
		found, err = w.find(ctx)
	} else {
		found, err = d.Find(ctx, k, ident)
	}
	if err != nil {
		return nil, by, w.missing(ctx, err)
	}
	return found, by, d.May(ctx, by, asked, found, ident)
}

// way is the path of a caller to a table or view, through views.
type way struct {
	directory *Directory
	by        Asker // including the views
	kind      *Kind
	to        moorage.Identifier
	views     *Views
}

// find finds the target of w, and the existing views on the way. It reads cached views and a cached
// target together.
func (w way) find(ctx context.Context) (*Found, error) {
	names := append(w.views.Names[:len(w.views.Names):len(w.views.Names)], w.to)
	last := len(names) - 1
	known, err := knownNow(ctx, w.directory, func(i int) *Kind {
		if i == last {
			return w.kind
		}
		return View()
	}, names)
	if err != nil {
		return nil, err
	}
	for i := range w.by.Through.Views {
		if w.by.Through.Views[i], err = w.findView(ctx, names[i], known[i]); err != nil {
			return nil, err
		}
	}
	if known[last] != nil {
		return known[last], nil
	}
	return w.directory.Find(ctx, w.kind, w.to)
}

// findView returns a view on the way; known is its cached result or nil. A missing or unreadable
// view is not an error, but the caller cannot pass through it.
func (w way) findView(ctx context.Context, name moorage.Identifier, known *Found) (view gate.View, err error) {
	view.Object.Ident = name
	found := known
	var definer bool
	err = w.directory.ledger.Retry(ctx, moorage.KindUnavailable, func(int) (err error) {
		if found == nil {
			if found, err = w.directory.Find(ctx, View(), name); err != nil {
				return err
			}
		}
		if definer, err = w.views.IsDefiner(ctx, found); errors.Is(err, ledger.ErrRetry) {
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
		w.directory.log.WarnContext(ctx, "a view cannot be read, so nobody gets through it",
			"view", name.String(), "error", err)
	}
	return view, nil
}

// isTrusted reports whether the guard accepts the views in the warehouse, so that they must be
// read. It decides nothing.
func (w way) isTrusted(ctx context.Context) (bool, error) {
	path, err := w.directory.Path(ctx, w.to.Warehouse, nil)
	if moorage.KindOf(err) == moorage.KindNoSuchWarehouse {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	return w.directory.guard.Trusts(ctx, w.by.Caller, path.object(moorage.Identifier{Warehouse: w.to.Warehouse}))
}

// missing returns the error if w leads to no object, for the reason err. It is the refusal of a
// view that the caller cannot pass through, or else err.
func (w way) missing(ctx context.Context, err error) error {
	switch moorage.KindOf(err) {
	case moorage.KindNoSuchTable, moorage.KindNoSuchView:
	default:
		return err
	}
	path, pathErr := w.directory.Path(ctx, w.to.Warehouse, nil)
	if pathErr != nil {
		return pathErr
	}
	refusal := w.directory.guard.Decide(ctx, gate.Question{
		Caller: w.by.Caller, Verb: w.by.Verb, Object: path.object(moorage.Identifier{Warehouse: w.to.Warehouse}),
		Asked: access.See, Through: w.by.Through, Missing: err,
	})
	if refusal != nil {
		return refusal
	}
	return err
}
