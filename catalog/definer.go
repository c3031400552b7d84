package catalog

import (
	"context"
	"slices"
	"strings"

	"moorage"
	"moorage/catalog/directory"
	"moorage/metadata"
)

// The tables behind a definer view are read with the privileges of the view's owner, instead of the
// caller's. Either of two properties makes a view a definer view. The owner is in the records of
// the catalog, never in a property.
const (
	// propertyRunAs is the property of Trino. Every value of it means yes.
	propertyRunAs = "trino.run-as-owner"
	// propertySecurity makes a view a definer view if its value is securityDefiner, in any case.
	propertySecurity = "security"
	securityDefiner  = "definer"
)

// isDefiner reports whether a view is a definer view.
func isDefiner(view *metadata.ViewDocument) bool {
	if _, isSet := view.Property(propertyRunAs); isSet {
		return true
	}
	security, _ := view.Property(propertySecurity)
	return strings.EqualFold(security, securityDefiner)
}

// ViewsMax is how many views a request may name as its path.
const ViewsMax = 10

// viewsOf returns the views names, the outermost first, for a lookup in p; nil for none.
//
// Errors: KindBadRequest if there are too many, or if a view references itself.
func viewsOf(p *planner, names []moorage.Identifier) (*directory.Views, error) {
	if len(names) == 0 {
		return nil, nil
	}
	if len(names) > ViewsMax {
		return nil, moorage.Errorf(moorage.KindBadRequest, "Invalid referenced-by: %d views, at most %d are possible",
			len(names), ViewsMax)
	}
	for i, name := range names {
		if slices.ContainsFunc(names[:i], name.Equal) {
			return nil, moorage.Errorf(moorage.KindBadRequest, "Invalid referenced-by: view %s references itself", name)
		}
	}
	return &directory.Views{Names: names, IsDefiner: func(ctx context.Context, view *directory.Found) (bool, error) {
		return isDefinerView(ctx, p, view)
	}}, nil
}

// isDefinerView reports whether the view that found names is a definer view.
func isDefinerView(ctx context.Context, p *planner, found *directory.Found) (bool, error) {
	document, err := p.documents.Current(ctx, found)
	if err != nil {
		return false, err
	}
	return isDefiner(document.(*metadata.ViewDocument)), nil
}
