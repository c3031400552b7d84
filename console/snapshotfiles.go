package console

import (
	"context"
	"errors"
	"net/http"
	"path"
	"slices"
	"strconv"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"

	"moorage"
	"moorage/internal/term"
	"moorage/management/client"
)

// snapshotFiles are the manifests of a snapshot, and the files of one of them.
type snapshotFiles struct {
	found    client.Manifests
	manifest int    // whose files are shown; -1 for none
	why      string // why there is nothing to show; empty if there is
}

// loadFiles loads the manifests of a snapshot, if the address asks for them.
func loadFiles(ctx context.Context, v *visit, o client.Object, of *snapshot) (*snapshotFiles, error) {
	if of == nil || !v.query.Has("files") {
		return nil, nil
	}
	made := &snapshotFiles{manifest: -1}
	query := o.Query()
	query.Set("snapshot", strconv.FormatInt(of.ID, 10))
	if number, err := strconv.Atoi(v.text("manifest")); err == nil {
		made.manifest = number
		query.Set("manifest", strconv.Itoa(number))
	}
	err := v.get(ctx, "/manifests", query, &made.found)
	if refused, ok := errors.AsType[*client.Error](err); ok && refused.Code != http.StatusUnauthorized {
		made.why, err = refused.Message, nil
	}
	return made, err
}

// node returns the manifests as a part of the page of a snapshot.
func (f *snapshotFiles) node(o client.Object, snapshot string) g.Node {
	switch {
	case f == nil:
		return nil
	case f.why != "":
		return panel("Files", h.P(h.Class("warning"), text(f.why)))
	case len(f.found.Manifests) == 0:
		return panel("Files", empty("The snapshot has no manifest: the table is empty in it.", shellLine{}))
	}
	list := grid{label: "Manifests", columns: []column{
		{"Manifest", "wide"}, {"Content", ""}, {"Size", "num"}, {"Added", "num"}, {"Kept", "num"}, {"Removed", "num"},
	}}
	for i, m := range f.found.Manifests {
		shown := link(to(placeSnapshots, o, "snapshot", snapshot, "files", "yes", "manifest", strconv.Itoa(i)),
			g.If(i == f.manifest, h.Aria("current", "true")), h.Title(term.Clean(m.Path)), mono(path.Base(m.Path)))
		list.rows = append(list.rows, []cell{
			{shown, m.Path}, plain(text(m.Content)), numeric(size(&m.Bytes), &m.Bytes),
			numeric(number(m.Added), m.Added),
			numeric(number(m.Existing), m.Existing), numeric(number(m.Removed), m.Removed),
		})
	}
	return g.Group{
		panel("Manifests", list.node(),
			h.P(h.Class("faint"),
				g.Text("Added, kept and removed are files, by the snapshot that wrote the manifest.")),
			g.If(f.found.More, h.P(h.Class("faint"),
				g.Text("These are the first manifests. The snapshot has more.")))),
		g.Iff(f.manifest >= 0, f.files),
	}
}

// files returns the files of the chosen manifest.
func (f *snapshotFiles) files() g.Node {
	list := grid{label: "Files of the manifest", columns: []column{
		{"File", "wide"}, {"Content", ""}, {"Status", ""}, {"Partition", ""}, {"Rows", "num"}, {"Size", "num"},
	}}
	for _, each := range f.found.Files {
		look := map[string]string{client.StatusAdded: "good", client.StatusRemoved: "bad"}[each.Status]
		partition := dash()
		if each.Partition != "" {
			partition = h.Span(h.Class("exact"), mono(each.Partition))
		}
		list.rows = append(list.rows, []cell{
			{g.Group{h.Span(h.Title(term.Clean(each.Path)), mono(path.Base(each.Path))), boundsOf(each.Bounds)},
				each.Path},
			plain(h.Span(h.Class("exact"), text(each.Content+", "+each.Format))),
			plain(badge(look, each.Status)), plain(partition),
			numeric(number(&each.Rows), &each.Rows), numeric(size(&each.Bytes), &each.Bytes),
		})
	}
	title := "Files of " + path.Base(f.found.Manifests[min(f.manifest, len(f.found.Manifests)-1)].Path)
	return panel(title, filled(list, "The manifest has no file.", shellLine{}), g.If(f.found.FilesMore,
		h.P(h.Class("faint"), g.Text("These are the first files. The manifest has more."))))
}

// boundsOf returns the bounds of the columns of a file, folded up.
func boundsOf(bounds []client.ColumnBounds) g.Node {
	if len(bounds) == 0 {
		return nil
	}
	list := grid{label: "Bounds of columns", plain: true, columns: titled("Column", "From", "To")}
	for _, b := range bounds {
		column := b.Path
		if column == "" {
			column = "column " + strconv.Itoa(b.ID)
		}
		bound := func(value *string) cell {
			if value == nil {
				return plain(dash())
			}
			return plain(mono(*value))
		}
		list.rows = append(list.rows, []cell{plain(mono(column)), bound(b.Lower), bound(b.Upper)})
	}
	return h.Details(h.Summary(g.Text("Bounds of "+moorage.Counted(len(bounds), "column"))), list.node())
}

// behind returns the branches that can be moved forward to a snapshot: those whose heads are
// ancestors of it.
func (d document) behind(of *snapshot) (branches []string) {
	parents := make(map[int64]*int64, len(d.Snapshots))
	for i := range d.Snapshots {
		parents[d.Snapshots[i].ID] = d.Snapshots[i].Parent
	}
	ancestors := map[int64]bool{}
	for at := of.Parent; at != nil && !ancestors[*at]; at = parents[*at] {
		ancestors[*at] = true
	}
	for _, refName := range d.refNames() {
		if each := d.Refs[refName]; each.Type == "branch" && ancestors[each.Snapshot] {
			branches = append(branches, refName)
		}
	}
	return branches
}

// loadForward prepares the commit that moves a branch forward to a snapshot.
func loadForward(ctx context.Context, v *visit, head tableHead, refName string, id int64) (*page, error) {
	d, err := loadDocument(ctx, v, head.object, "now")
	if err != nil {
		return nil, err
	}
	is := d.snapshot(id)
	if is == nil || !slices.Contains(d.behind(is), refName) {
		return nil, &client.Error{
			Code: http.StatusConflict, Message: "The branch cannot be moved forward to this snapshot.",
			Help: "Its head is no ancestor of the snapshot. Roll the branch back, or make another one.",
		}
	}
	branch := d.Refs[refName]
	update := map[string]any{"action": "set-snapshot-ref", "ref-name": refName, "type": "branch", "snapshot-id": id}
	for key, value := range map[string]*int64{
		"min-snapshots-to-keep": branch.MinSnapshots, "max-snapshot-age-ms": branch.MaxAgeMS,
		"max-ref-age-ms": branch.MaxRefAgeMS,
	} {
		if value != nil {
			update[key] = *value
		}
	}
	made, err := commitOf(head.object, []any{
		map[string]any{"type": "assert-table-uuid", "uuid": head.details.UUID},
		map[string]any{"type": "assert-ref-snapshot-id", "ref": refName, "snapshot-id": branch.Snapshot},
	}, []any{update})
	if err != nil {
		return nil, err
	}
	was := d.snapshot(branch.Snapshot)
	made.title, made.button = "Move a branch forward", "Move "+refName+" forward"
	made.needs = v.lacks(ctx, head.object, "write")
	made.says = []g.Node{
		g.Group{g.Text("The branch "), h.Strong(name(refName)), g.Text(" goes from snapshot "),
			shortID(branch.Snapshot), g.Text(" forward to "), shortID(id),
			g.Text(", which descends from it: rows "), number(was.number("total-records")),
			g.Text(" → "), number(is.number("total-records")), g.Text(".")},
		g.Text("The commit fails if the branch moves meanwhile."),
	}
	made.back = to(placeSnapshots, head.object, "snapshot", strconv.FormatInt(id, 10))
	return head.page(placeSnapshots, made.node()), nil
}

// forwards returns the links that prepare to move branches forward to the chosen snapshot.
func (m snapshotsPage) forwards() g.Node {
	id := strconv.FormatInt(m.chosen.ID, 10)
	return g.Map(m.document.behind(m.chosen), func(refName string) g.Node {
		return link(to(placeRef, m.object, "snapshot", id, "ref", refName, "type", "forward"), h.Class("button"),
			text("Move "+refName+" forward to this snapshot …"))
	})
}
