package vending

import (
	"context"
	"slices"
	"strings"

	"moorage"
	"moorage/catalog/directory"
	"moorage/metadata"
)

// The tables behind a definer view are read with the privileges of the view's owner, instead of the
// caller's. Either of two properties makes a view a definer view. The owner comes from the records
// of the catalog, never from a property.
const (
	// propertyRunAs is set by Trino. It makes a view a definer view, whatever its value.
	propertyRunAs = "trino.run-as-owner"
	// propertySecurity makes a view a definer view if its value is securityDefiner, in upper or
	// lower case.
	propertySecurity = "security"
	securityDefiner  = "definer"
)

// IsDefiner reports whether a view is a definer view.
func IsDefiner(view *metadata.ViewDocument) bool {
	if _, isSet := view.Property(propertyRunAs); isSet {
		return true
	}
	security, _ := view.Property(propertySecurity)
	return strings.EqualFold(security, securityDefiner)
}

// HasSameDefiner reports whether two versions of a view have equal definer properties.
func HasSameDefiner(a, b *metadata.ViewDocument) bool {
	for _, name := range []string{propertyRunAs, propertySecurity} {
		before, had := a.Property(name)
		after, has := b.Property(name)
		if had != has || before != after {
			return false
		}
	}
	return true
}

// ViewsMax is the maximum number of views that a request may name as its path.
const ViewsMax = 10

// Views returns the views that a request names as its path, in the form that a lookup in the
// directory needs. The outermost view is first. It returns nil if names is empty.
//
// Errors: the errors of CheckViews.
func (v *Vending) Views(names []moorage.Identifier) (*directory.Views, error) {
	if len(names) == 0 {
		return nil, nil
	}
	return &directory.Views{Names: names, IsDefiner: v.IsDefiner}, CheckViews(names)
}

// CheckViews returns KindBadRequest if a request names too many views as its path, or names a view
// twice.
func CheckViews(names []moorage.Identifier) error {
	if len(names) > ViewsMax {
		return moorage.Errorf(moorage.KindBadRequest, "Invalid referenced-by: %d views, at most %d are possible",
			len(names), ViewsMax)
	}
	for i, name := range names {
		if slices.ContainsFunc(names[:i], name.Equal) {
			return moorage.Errorf(moorage.KindBadRequest, "Invalid referenced-by: view %s references itself", name)
		}
	}
	return nil
}

// IsDefiner reports whether found, which is a view, is a definer view. It reads the metadata file
// of the view.
func (v *Vending) IsDefiner(ctx context.Context, found *directory.Found) (bool, error) {
	document, err := v.documents.Current(ctx, found)
	if err != nil {
		return false, err
	}
	return IsDefiner(document.(*metadata.ViewDocument)), nil
}
