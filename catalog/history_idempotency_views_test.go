package catalog_test

import (
	"context"
	"encoding/json"
	"slices"

	"moorage"
	"moorage/catalog"
	"moorage/catalog/directory"
	"moorage/catalog/gate"
	"moorage/ledger"
	"moorage/registry"
	"moorage/testkit/catalogkit"
)

// drawView draws a request for the view called name. what describes its effect, and run sends it.
func (c *keyClient) drawView(id string, name, other moorage.Identifier) (what string, run func(ctx context.Context, c catalog.Verbs) (catalogkit.Reply, error)) {
	switch c.random.IntN(10) {
	case 0:
		request := catalogkit.ViewRequest("")
		request.Version = []byte(catalogkit.ViewVersion(1, id))
		request.Properties = map[string]string{"version.history.num-entries": "1000"}
		return "create view " + name.Name, func(ctx context.Context, c catalog.Verbs) (catalogkit.Reply, error) {
			made, err := c.CreateView(ctx, name, request)
			return catalogkit.Reply{View: made}, err
		}
	case 1:
		return "drop view " + name.Name, func(ctx context.Context, c catalog.Verbs) (catalogkit.Reply, error) {
			return catalogkit.Reply{}, c.DropView(ctx, name)
		}
	case 2:
		return "rename view " + name.Name + " to " + other.Name, func(ctx context.Context, c catalog.Verbs) (catalogkit.Reply, error) {
			return catalogkit.Reply{}, c.RenameView(ctx, name, other)
		}
	case 3:
		location := c.location()
		return "register view " + name.Name + " at " + location, func(ctx context.Context, c catalog.Verbs) (catalogkit.Reply, error) {
			made, err := c.RegisterView(ctx, name, location)
			return catalogkit.Reply{View: made}, err
		}
	default:
		change := catalogkit.NewQuery(c.t, `[]`, id)
		return "replace view " + name.Name, func(ctx context.Context, c catalog.Verbs) (catalogkit.Reply, error) {
			replaced, err := c.ReplaceView(ctx, name, change)
			return catalogkit.Reply{View: replaced}, err
		}
	}
}

// judgeViews compares the views with the requests. The file named in a pointer must contain exactly
// the queries of the create and of each replace, in their order.
func (h *keyHistory) judgeViews() {
	h.t.Helper()
	want := map[string][]string{}        // the queries, by metadata location
	current := map[registry.Key]string{} // the metadata location, by pointer
	replaces := 0
	const page = 1000
	for after := registry.Position(0); ; {
		changes, err := h.clean.Store.Changes(h.ctx, after, page)
		must(h.t, err)
		for _, change := range changes {
			after = change.Position
			of := slices.IndexFunc(change.Change.Versions, func(v registry.Version) bool { return v.Key.Table == registry.TablePointer })
			location := change.Change.Items[0].MetadataLocation
			switch change.Change.Operation {
			case string(gate.Replace):
				replaces++
				fallthrough
			case string(gate.CreateView):
				key := change.Change.Versions[of].Key
				want[location] = append(slices.Clone(want[current[key]]), change.Change.RequestID)
				current[key] = location
			case string(gate.RegisterView):
				current[change.Change.Versions[of].Key] = location
			}
		}
		if len(changes) < page {
			break
		}
	}
	for key, location := range current {
		records, err := h.clean.Ledger.Get(h.ctx, key)
		must(h.t, err)
		pointer, err := ledger.Decode[registry.Pointer](records[0])
		must(h.t, err)
		if pointer.MetadataLocation != location {
			h.t.Errorf("%s names %s, want %s", key, pointer.MetadataLocation, location)
		}
		if got := h.queries(location); !slices.Equal(got, want[location]) {
			h.t.Errorf("%s has the queries %q, want %q", location, got, want[location])
		}
	}
	if replaces == 0 {
		h.t.Error("no view was replaced, so nothing was shown")
	}
}

// queries returns the queries of a view's versions, in the order in which they were added.
func (h *keyHistory) queries(location string) []string {
	h.t.Helper()
	document, err := h.clean.Documents().Read(h.ctx, directory.View(), "w", h.clean.Files, location)
	must(h.t, err)
	var view struct {
		Versions []struct {
			Representations []struct{ SQL string }
		}
	}
	must(h.t, json.Unmarshal(document.Raw(), &view))
	var queries []string
	for _, version := range view.Versions {
		queries = append(queries, version.Representations[0].SQL)
	}
	return queries
}
