package console

import (
	"context"
	"net/http"
	"strings"
	"time"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"

	"moorage/management/client"
)

// warehousePage is a warehouse: where it is, how engines reach its files, and whether that works.
type warehousePage struct {
	now       time.Time
	warehouse client.Warehouse
	validated *client.WarehouseValidation // nil unless the visitor has just asked for it
}

// loadWarehouse loads a warehouse.
func loadWarehouse(ctx context.Context, v *visit) (*page, error) {
	o := client.Object{Warehouse: v.object().Warehouse}
	model := warehousePage{now: v.now}
	if err := v.get(ctx, client.Path("warehouses", o.Warehouse), nil, &model.warehouse); err != nil {
		return nil, err
	}
	beside, err := loadTree(ctx, v, o)
	if err != nil {
		return nil, err
	}
	return &page{
		title: o.Warehouse, section: placeWarehouses, aside: beside.node(), body: model.node(),
		crumbs: append(crumbsOf(o), crumb{name: "Settings"}),
	}, nil
}

// showValidation tests the storage of a warehouse, and returns the page with the result. A test
// writes and deletes files of its own.
func showValidation(ctx context.Context, v *visit) (*page, error) {
	o := client.Object{Warehouse: objectIn(v.form).Warehouse}
	v.about = o
	v.query = v.form
	asked := client.Request{Method: http.MethodPost, Path: client.Path("warehouses", o.Warehouse, "validate")}
	model := warehousePage{now: v.now, validated: &client.WarehouseValidation{}}
	if err := v.api.Do(ctx, asked, model.validated); err != nil {
		return nil, err
	}
	if err := v.get(ctx, client.Path("warehouses", o.Warehouse), nil, &model.warehouse); err != nil {
		return nil, err
	}
	return &page{
		title: o.Warehouse, section: placeWarehouses, body: model.node(),
		crumbs: append(crumbsOf(o), crumb{name: "Settings"}),
	}, nil
}

// node returns the page.
func (m warehousePage) node() g.Node {
	w := m.warehouse
	about := []fact{
		{"Location", copiedPath(w.Location)}, {"Id", copied(w.ID)},
		{"Engines read and write files with", text(strings.Join(orNone(w.Delegation, "their own credentials"), ", "))},
		{"Other allowed locations", listed(w.AllowedLocations, "none")},
	}
	if w.Creator != "" {
		about = append(about, fact{"Made by", name(w.Creator)})
	}
	secret := fact{"Server reads and writes files with", g.Text("the credentials in its environment")}
	if w.Secret != nil {
		secret.value = g.Group{text(w.Secret.Kind), g.Text(", set "), ago(m.now, w.Secret.Set), by(w.Secret.By)}
	}
	about = append(about, secret)
	if n := int64(w.WaitingPurges.Tables); n > 0 {
		about = append(about, fact{"Purges that wait",
			g.Group{number(&n), g.Text(" tables, "), size(&w.WaitingPurges.Bytes)}})
	}
	target := client.Object{Warehouse: w.Name}
	return g.Group{
		h.Div(h.Class("title"), icon("warehouse"), h.H1(name(w.Name)), badge("", "warehouse")),
		h.Div(h.Class("tools"), link(to(placeBrowse, target), h.Class("button"), g.Text("Namespaces")),
			link(to(placeDropped, target), h.Class("button"), g.Text("Dropped tables")),
			link(to(placeGrants, target), h.Class("button"), g.Text("Access")),
			act(to(placeValidate, target), h.Button(g.Text("Test the storage now"))),
			h.Span(h.Class("faint"), g.Text("The test writes a small file, reads it and deletes it."))),
		m.trials(), m.failures(),
		panel("About", facts(about...)),
		g.Iff(len(w.Storage) > 0, func() g.Node { return panel("Options of the storage", propertyGrid(w.Storage)) }),
		panel("Properties", g.Iff(len(w.Properties) > 0, func() g.Node { return propertyGrid(w.Properties) }),
			g.Iff(len(w.Properties) == 0, func() g.Node {
				return empty("This warehouse has no properties.",
					command("moorage", "warehouse", "change", w.Name, "--property", "KEY=VALUE"))
			})),
	}
}

// orNone returns a list, or a list with one sentence if it is empty.
func orNone(all []string, sentence string) []string {
	if len(all) == 0 {
		return []string{sentence}
	}
	return all
}

// trials returns the result of the tests.
func (m warehousePage) trials() g.Node {
	if m.validated == nil {
		return nil
	}
	return panel("The storage now",
		h.Ul(h.Class("findings"), g.Map(m.validated.Trials, func(t client.WarehouseTrial) g.Node {
			look, word := "good", "ok"
			if !t.Passed {
				look, word = "bad", "bad"
			}
			return h.Li(badge(look, word), h.Div(h.Strong(text(t.Name)), h.Div(text(t.Failure))))
		}), g.Map(m.validated.Features, func(f client.StorageFeature) g.Node {
			return h.Li(badge("", "is"), h.Div(h.Strong(text(f.Name)), h.Div(text(f.Value))))
		})))
}

// failures returns which calls of the storage fail now, as the answering node sees it.
func (m warehousePage) failures() g.Node {
	if m.warehouse.Health == nil || len(m.warehouse.Health.Failing) == 0 {
		return nil
	}
	return g.Map(m.warehouse.Health.Failing, func(f client.StorageFailure) g.Node {
		return h.P(h.Class("warning"), text(f.Calls+" fail since "), ago(m.now, f.Since), text(": "+f.Error))
	})
}
