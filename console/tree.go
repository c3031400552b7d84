package console

import (
	"context"
	"net/url"
	"strconv"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"

	"moorage/management/client"
)

// Bounds of the tree beside a page.
const (
	branchRowsMax  = 200 // rows of one container
	treeLevelsMax  = 8   // containers that are open
	warehousesShow = 100
)

// tree is the tree beside a page: the containers on the path to an object are open.
type tree struct {
	object   client.Object
	branches []branch // from the warehouse down
}

// branch is what is in one open container.
type branch struct {
	of   client.Object
	rows []client.Row
	more bool // there are further rows
}

// loadTree loads the tree for the object of a page. What the visitor may not list is left out.
func loadTree(ctx context.Context, v *visit, o client.Object) (*tree, error) {
	made := &tree{object: o}
	for depth := 0; depth <= len(o.Namespace) && depth < treeLevelsMax; depth++ {
		of := client.Object{Warehouse: o.Warehouse, Namespace: o.Namespace[:depth]}
		page, err := listObjects(ctx, v, of, url.Values{"pageSize": {strconv.Itoa(branchRowsMax)}})
		if optional(err) != nil {
			return nil, err
		}
		made.branches = append(made.branches, branch{of, page.Objects, page.Next() != ""})
	}
	return made, nil
}

// listObjects asks for a page of what is in a warehouse or namespace.
func listObjects(ctx context.Context, v *visit, of client.Object, more url.Values) (page client.ObjectsPage,
	err error) {
	query := url.Values{"warehouse": {of.Warehouse}}
	if len(of.Namespace) > 0 {
		query.Set("namespace", client.JoinLevels(of.Namespace))
	}
	for name, values := range more {
		query[name] = values
	}
	err = v.get(ctx, "/objects", query, &page)
	return page, err
}

// node returns the tree.
func (t *tree) node() g.Node {
	if len(t.branches) == 0 {
		return nil
	}
	root := client.Object{Warehouse: t.object.Warehouse}
	isRoot := len(t.object.Namespace) == 0
	return g.El("details", h.Class("tree"), g.Attr("open"),
		h.Summary(g.Text("Tree")),
		h.Div(h.Class("root"), g.If(isRoot, h.Class("here")),
			link(to(placeBrowse, root), icon("warehouse"), name(root.Warehouse))),
		t.list(0))
}

// list returns what is in the open container at a depth.
func (t *tree) list(depth int) g.Node {
	if depth >= len(t.branches) {
		return nil
	}
	open := t.branches[depth]
	return h.Ul(g.Map(open.rows, func(row client.Row) g.Node {
		isOnPath := row.Kind == client.KindNamespace && depth < len(t.object.Namespace) &&
			row.Name == t.object.Namespace[depth]
		isHere := isOnPath && depth == len(t.object.Namespace)-1 && t.object.Table+t.object.View == "" ||
			row.Kind == client.KindTable && depth == len(t.object.Namespace) && row.Name == t.object.Table ||
			row.Kind == client.KindView && depth == len(t.object.Namespace) && row.Name == t.object.View
		return h.Li(g.If(isHere, h.Class("here")),
			link(pageOf(objectOf(row)), g.If(isHere, h.Aria("current", "page")), icon(row.Kind), name(row.Name)),
			g.Iff(isOnPath, func() g.Node { return t.list(depth + 1) }))
	}), g.Iff(open.more, func() g.Node {
		return h.Li(h.Class("faint"), link(to(placeBrowse, open.of), g.Text("all …")))
	}))
}
