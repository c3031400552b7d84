package console

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"

	"moorage/internal/term"
	"moorage/management/client"
)

// snapshotsPage is the snapshots of a table as a graph, the newest first.
type snapshotsPage struct {
	tableHead
	document *document
	rows     []graphRow // of the page
	lanes    int        // of the whole graph
	from     int        // index of the first row of the page
	chosen   *snapshot  // whose details are shown; nil for none
	files    *snapshotFiles
}

// snapshotRows is how many snapshots a page shows.
const snapshotRows = 200

// loadSnapshots loads the snapshots of a table.
func loadSnapshots(ctx context.Context, v *visit) (*page, error) {
	head, err := loadTableHead(ctx, v)
	if err != nil {
		return nil, err
	}
	model := snapshotsPage{tableHead: head}
	if model.document, err = loadDocument(ctx, v, head.object, "now"); err != nil {
		return nil, err
	}
	if named, isRef := model.document.Refs[v.text("snapshot")]; isRef {
		model.chosen = model.document.snapshot(named.Snapshot)
	} else if id, err := strconv.ParseInt(v.text("snapshot"), 10, 64); err == nil {
		model.chosen = model.document.snapshot(id)
	}
	if model.files, err = loadFiles(ctx, v, head.object, model.chosen); err != nil {
		return nil, err
	}
	model.from, _ = strconv.Atoi(v.text("from"))
	model.from = max(0, min(model.from, len(model.document.Snapshots)))
	model.rows, model.lanes = graphOf(model.document.Snapshots, model.from)
	return head.page(placeSnapshots, model.node()), nil
}

// graphRow is a snapshot in the graph: its lane, and the lines around it.
type graphRow struct {
	*snapshot
	lane   int
	passes []int // lanes whose lines pass by
	joins  []int // lanes above whose lines end here, beside the snapshot's own
	above  bool  // a line comes from above in the snapshot's own lane
	below  bool  // a line goes on to the parent
}

// graphOf arranges snapshots in lanes, as a snapshot has at most one parent, and returns the rows
// of the page that begins at from. A lane is reused once its line has ended. If all lanes have
// lines, further lines share the last lane. It also returns how many lanes the whole graph has. Its
// time and memory grow with the number of snapshots, whatever their parents are.
func graphOf(snapshots []snapshot, from int) (rows []graphRow, lanes int) {
	ordered := make([]*snapshot, len(snapshots))
	known := make(map[int64]bool, len(snapshots))
	for i := range snapshots {
		ordered[i] = &snapshots[i]
		known[snapshots[i].ID] = true
	}
	slices.SortStableFunc(ordered, func(a, b *snapshot) int {
		return cmp.Or(cmp.Compare(b.Sequence, a.Sequence), cmp.Compare(b.MS, a.MS))
	})
	var open [lanesMax]int           // how many lines each lane has
	leading := make(map[int64][]int) // by snapshot: the lane of each line that leads to it
	for i, each := range ordered {
		row := graphRow{snapshot: each}
		ending := leading[each.ID]
		delete(leading, each.ID)
		for _, lane := range ending {
			open[lane]--
		}
		if row.above = len(ending) > 0; row.above {
			slices.Sort(ending)
			ending = slices.Compact(ending)
			row.lane, row.joins = ending[0], ending[1:]
		} else if row.lane = slices.Index(open[:], 0); row.lane < 0 {
			row.lane = lanesMax - 1
		}
		isShown := i >= from && len(rows) < snapshotRows
		if isShown {
			for lane, lines := range open {
				if lines > 0 {
					row.passes = append(row.passes, lane)
				}
			}
		}
		if row.below = each.Parent != nil && known[*each.Parent]; row.below {
			open[row.lane]++
			leading[*each.Parent] = append(leading[*each.Parent], row.lane)
		}
		lanes = max(lanes, row.lane+1)
		if isShown {
			rows = append(rows, row)
		}
	}
	return rows, lanes
}

// Sizes of the graph, in pixels. A row of the table has the height of a row of the graph.
const (
	laneWidth   = 16
	graphHeight = 40
	lanesMax    = 16 // further lines share the last lane
	laneColours = 5
)

// picture returns the row as a part of the graph.
func (r graphRow) picture(lanes int) g.Node {
	x := func(lane int) int { return lane*laneWidth + laneWidth/2 }
	line := func(lane int, path string) g.Node {
		return g.El("path", h.Class(fmt.Sprintf("lane%d", lane%laneColours)), g.Attr("d", path))
	}
	const middle = graphHeight / 2
	var lines g.Group
	for _, lane := range r.passes {
		lines = append(lines, line(lane, fmt.Sprintf("M%d 0V%d", x(lane), graphHeight)))
	}
	for _, lane := range r.joins {
		lines = append(lines, line(lane,
			fmt.Sprintf("M%d 0C%d %d %d %d %d %d", x(lane), x(lane), middle, x(r.lane), 4, x(r.lane), middle)))
	}
	if r.above {
		lines = append(lines, line(r.lane, fmt.Sprintf("M%d 0V%d", x(r.lane), middle)))
	}
	if r.below {
		lines = append(lines, line(r.lane, fmt.Sprintf("M%d %dV%d", x(r.lane), middle, graphHeight)))
	}
	width := strconv.Itoa(lanes * laneWidth)
	return h.SVG(h.Class("plot"), h.Width(width), h.Height(strconv.Itoa(graphHeight)), h.Aria("hidden", "true"), lines,
		g.El("circle", h.Class(fmt.Sprintf("lane%d", r.lane%laneColours)), g.Attr("cx", strconv.Itoa(x(r.lane))),
			g.Attr("cy", strconv.Itoa(middle)), g.Attr("r", "5")))
}

// node returns the page.
func (m snapshotsPage) node() g.Node {
	if len(m.document.Snapshots) == 0 {
		return empty("This table has no snapshot: nothing was written to it yet.", shellLine{})
	}
	refs := map[int64][]string{}
	for _, refName := range m.document.refNames() {
		id := m.document.Refs[refName].Snapshot
		refs[id] = append(refs[id], refName)
	}
	list := grid{label: "Snapshots", plain: true, columns: []column{
		{"Graph", ""}, {"Snapshot", ""}, {"Made", ""}, {"What", "wide"}, {"Rows", "num"}, {"Files", "num"},
		{"Size", "num"},
	}}
	for _, row := range m.rows {
		rows, files, bytes := row.number("total-records"), row.number("total-data-files"),
			row.number("total-files-size")
		at := row.at()
		list.rows = append(list.rows, []cell{
			plain(row.picture(m.lanes)),
			plain(g.Group{link(to(placeSnapshots, m.object, "snapshot", strconv.FormatInt(row.ID, 10)),
				g.If(m.chosen != nil && m.chosen.ID == row.ID, h.Aria("current", "true")), shortID(row.ID)),
				m.badges(refs[row.ID])}),
			{agoAt(m.now, at), timed(m.now, &at).order},
			plain(g.Group{text(row.Summary["operation"]), h.Span(h.Class("faint"), added(row.snapshot))}),
			plain(number(rows)), plain(number(files)), plain(size(bytes)),
		})
	}
	more := g.Group{}
	if m.from > 0 {
		more = append(more, link(to(placeSnapshots, m.object, "from", strconv.Itoa(max(0, m.from-snapshotRows))),
			g.Text("Newer")))
	}
	if next := m.from + snapshotRows; next < len(m.document.Snapshots) {
		more = append(more, link(to(placeSnapshots, m.object, "from", strconv.Itoa(next)), h.Rel("next"),
			g.Text("Older")))
	}
	return g.Group{m.detail(), h.Div(h.Class("graph"), list.node()), h.Div(h.Class("pager"), more)}
}

// badges returns branches and tags.
func (m snapshotsPage) badges(names []string) g.Node {
	return g.Map(names, func(refName string) g.Node {
		look, kind := "", "tag "
		if m.document.Refs[refName].Type == "branch" {
			look, kind = "good", ""
		}
		return g.Group{g.Text(" "), badge(look, kind+refName)}
	})
}

// added returns what a snapshot added and removed, in words.
func added(s *snapshot) g.Node {
	var words []string
	for _, each := range []struct{ key, sign, noun string }{
		{"added-records", "+", "row"}, {"deleted-records", "−", "row"}, {"added-data-files", "+", "file"},
		{"deleted-data-files", "−", "file"}, {"added-delete-files", "+", "delete file"},
	} {
		if n := s.number(each.key); n != nil && *n > 0 {
			words = append(words, each.sign+countedWord(int(*n), each.noun))
		}
	}
	if len(words) == 0 {
		return nil
	}
	return g.Text(" " + strings.Join(words, ", "))
}

// detail returns the chosen snapshot, and what a visitor can do with it.
func (m snapshotsPage) detail() g.Node {
	s := m.chosen
	if s == nil {
		return nil
	}
	id := strconv.FormatInt(s.ID, 10)
	about := []fact{{"Snapshot", copied(id)}, {"Made", agoAt(m.now, s.at())}}
	if s.Parent != nil {
		parent := strconv.FormatInt(*s.Parent, 10)
		about = append(about, fact{"Parent", link(to(placeSnapshots, m.object, "snapshot", parent), mono(parent))})
	}
	about = append(about, fact{"Manifest list", copiedPath(s.Manifest)})
	rollback := g.Node(h.Span(h.Class("faint"), g.Text("main is at this snapshot.")))
	if m.document.Refs["main"].Snapshot != s.ID {
		rollback = link(to(placeRollback, m.object, "to", id), h.Class("button"),
			g.Text("Roll back to this snapshot …"))
	}
	whole := h.Div(h.Class("split"),
		h.Div(summaryGrid(s)),
		h.Div(h.Class("beside"), facts(about...),
			h.Div(h.Class("tools"), link(to(placeRows, m.object, "snapshot", id), h.Class("button"), g.Text("Rows")),
				link(to(placeSnapshots, m.object, "snapshot", id, "files", "yes"), h.Class("button"),
					g.Text("Files"))),
			h.Div(h.Class("tools"), rollback, m.forwards()),
			ask(to(placeRef, m.object, "snapshot", id), h.Div(h.Class("tools"),
				h.Select(h.Name("type"), h.Aria("label", "Kind of ref"), h.Option(h.Value("tag"), g.Text("Tag")),
					h.Option(h.Value("branch"), g.Text("Branch"))),
				h.Input(h.Name("ref"), h.Required(), h.Placeholder("name"), h.Aria("label", "Name of the ref")),
				h.Button(g.Text("Make …"))))))
	if m.files != nil {
		whole = h.Details(h.Summary(g.Text("Its summary, and what to do with it")), whole)
	}
	return g.Group{panel("Snapshot "+id, whole), m.files.node(m.object, id)}
}

// summaryGrid returns the summary of a snapshot. Sizes are in bytes in it, so they get units.
func summaryGrid(s *snapshot) g.Node {
	shown := make(map[string]string, len(s.Summary))
	for key, value := range s.Summary {
		n := s.number(key)
		switch {
		case n != nil && strings.HasSuffix(key, "-size"):
			value = grouped(*n) + " bytes (" + term.Size(*n) + ")"
		case n != nil:
			value = grouped(*n)
		}
		shown[key] = value
	}
	return propertyGrid(shown)
}

// loadRef prepares a new branch or tag.
func loadRef(ctx context.Context, v *visit) (*page, error) {
	head, err := loadTableHead(ctx, v)
	if err != nil {
		return nil, err
	}
	id, err := strconv.ParseInt(v.text("snapshot"), 10, 64)
	refName, kind := v.text("ref"), v.text("type")
	if kind == "forward" && err == nil {
		return loadForward(ctx, v, head, refName, id)
	}
	if err != nil || refName == "" || kind != "tag" && kind != "branch" {
		return nil, &client.Error{Code: http.StatusBadRequest, Message: "A branch or tag needs a name and a snapshot."}
	}
	made, err := commitOf(head.object,
		[]any{
			map[string]any{"type": "assert-table-uuid", "uuid": head.details.UUID},
			map[string]any{"type": "assert-ref-snapshot-id", "ref": refName, "snapshot-id": nil},
		},
		[]any{map[string]any{"action": "set-snapshot-ref", "ref-name": refName, "type": kind, "snapshot-id": id}})
	if err != nil {
		return nil, err
	}
	made.title, made.needs = "Make a "+kind, v.lacks(ctx, head.object, "write")
	made.says = []g.Node{
		g.Group{g.Text("The " + kind + " "), h.Strong(name(refName)), g.Text(" will name snapshot "),
			mono(strconv.FormatInt(id, 10)), g.Text(".")},
		g.Text("It keeps the snapshot from expiring. The commit fails if the name is taken."),
	}
	made.button = "Make " + kind + " " + refName
	made.back = to(placeSnapshots, head.object)
	made.command = command("moorage", kind, nameOf(head.object), refName, strconv.FormatInt(id, 10))
	return head.page(placeSnapshots, made.node()), nil
}
