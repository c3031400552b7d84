package console

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"

	"moorage"
	"moorage/internal/term"
	"moorage/management/client"
)

// tableHead is what all pages of a table begin with.
type tableHead struct {
	now     time.Time
	object  client.Object
	details *client.ObjectDetails
	aside   g.Node
}

// errNoTable means that the name belongs to an object of another kind.
var errNoTable = &client.Error{
	Code: http.StatusNotFound, Type: "NoSuchTableException", Message: "There is no table of this name.",
}

// loadTableHead loads what all pages of a table begin with.
func loadTableHead(ctx context.Context, v *visit) (head tableHead, err error) {
	head = tableHead{now: v.now, object: v.object()}
	head.object.View = ""
	if head.object.Table == "" {
		return head, errNoTable
	}
	if head.details, err = loadObject(ctx, v, head.object); err != nil {
		return head, err
	}
	if head.details.Kind != client.KindTable {
		return head, errNoTable
	}
	beside, err := loadTree(ctx, v, head.object)
	if err != nil {
		return head, err
	}
	head.aside = beside.node()
	return head, nil
}

// page returns a page of the table.
func (head tableHead) page(tab place, body g.Node) *page {
	title := head.object.Table
	for _, each := range tableTabs() {
		if each.place == tab && tab != placeTable {
			title += " · " + each.word
		}
	}
	return &page{
		title: title, section: placeWarehouses, crumbs: crumbsOf(head.object), aside: head.aside,
		body: g.Group{head.title(), head.tabs(tab), body},
	}
}

// title returns the name of the table, with its marks.
func (head tableHead) title() g.Node {
	format := ""
	if head.details.Summary != nil {
		format = "Iceberg v" + strconv.FormatInt(head.details.Summary.Format, 10)
	}
	description := head.details.Properties["comment"]
	return g.Group{
		h.Div(h.Class("title"), icon("table"), h.H1(name(head.object.Table)), badge("", "table"),
			g.If(format != "", badge("", format)), labelBadges(head.details.Labels)),
		g.If(description != "", h.P(h.Class("lead"), text(description))),
	}
}

// labelBadges returns the labels of an object.
func labelBadges(labels *client.Labels) g.Node {
	if labels == nil {
		return nil
	}
	return g.Map(sortedKeys(labels.ObjectLabels), func(key string) g.Node {
		return badge("label", key+": "+labels.ObjectLabels[key])
	})
}

// tableTabs returns the pages of a table.
func tableTabs() []section {
	return []section{
		{placeTable, "Overview"}, {placeRows, "Rows"}, {placeHistory, "History"}, {placeSnapshots, "Snapshots"},
		{placeMaintain, "Maintenance"},
		{placeGrants, "Access"}, {placeMetadata, "Metadata"},
	}
}

// tabs returns the links to the pages of the table.
func (head tableHead) tabs(here place) g.Node {
	return h.Nav(h.Class("tabs"), h.Aria("label", "Pages of the table"),
		h.Ul(g.Map(tableTabs(), func(s section) g.Node {
			return h.Li(g.If(s.place == here, h.Class("here")),
				link(to(s.place, head.object), g.If(s.place == here, h.Aria("current", "page")), g.Text(s.word)))
		})))
}

// tablePage is the overview of a table.
type tablePage struct {
	tableHead
	document *document // nil if the visitor may not read it
	why      string    // why there is no document
	recipes  []Recipe
	health   *client.Health // nil if the visitor may not see it
}

// loadTable loads the overview of a table.
func loadTable(ctx context.Context, v *visit) (*page, error) {
	head, err := loadTableHead(ctx, v)
	if err != nil {
		return nil, err
	}
	model := tablePage{tableHead: head}
	model.document, err = loadDocument(ctx, v, head.object, "now")
	if refused, ok := errors.AsType[*client.Error](err); ok && refused.Code != http.StatusNotFound {
		model.why, err = refused.Message, nil
	}
	if err != nil {
		return nil, err
	}
	if model.health, err = loadHealth(ctx, v, head.object, v.query.Has("deep")); err != nil {
		return nil, err
	}
	model.recipes = v.recipes(Reach{
		URI: v.uri, Warehouse: head.object.Warehouse, Location: head.details.Location,
		Table: append(slices.Clone(head.object.Namespace), head.object.Table),
	})
	return head.page(placeTable, model.node()), nil
}

// loadDocument loads the metadata of a version of a table.
func loadDocument(ctx context.Context, v *visit, o client.Object, version string) (*document, error) {
	query := o.Query()
	query.Set("version", version)
	var made document
	if err := v.get(ctx, "/metadata", query, &made); err != nil {
		return nil, err
	}
	return &made, nil
}

// node returns the page.
func (m tablePage) node() g.Node {
	return h.Div(h.Class("split"),
		h.Div(m.tiles(), healthPanel(m.object, m.health), m.columns(), m.properties()),
		h.Div(h.Class("beside"), m.about(), m.refs(), m.connect()),
	)
}

// tiles returns the numbers of the table.
func (m tablePage) tiles() g.Node {
	s := m.details.Summary
	if s == nil {
		return h.P(h.Class("faint"), g.Text("The numbers of this table are not known until its next commit."))
	}
	mean := dash()
	if s.Files != nil && s.Bytes != nil && *s.Files > 0 {
		each := *s.Bytes / *s.Files
		mean = size(&each)
	}
	tile := func(title string, value g.Node, more g.Node) g.Node {
		return h.Div(h.Class("tile"), h.Dt(g.Text(title)), h.Dd(value), g.If(more != nil, h.Dd(h.Class("faint"), more)))
	}
	return h.Dl(h.Class("tiles"),
		tile("Rows", number(s.Rows), nil),
		tile("Size", size(s.Bytes), nil),
		tile("Data files", number(s.Files), g.Group{g.Text("mean "), mean}),
		tile("Delete files", number(s.Deletes), nil),
		tile("Snapshots", number(s.Snapshots), nil),
		tile("Last commit", agoOf(m.now, s.At), g.Group{text(s.Operation), by(m.details.By)}),
	)
}

// by returns who did something.
func by(who string) g.Node {
	if who == "" {
		return nil
	}
	return g.Group{g.Text(" by "), name(who)}
}

// columnsShown is how many columns of a table or a view a page shows.
const columnsShown = 1000

// columns returns the columns of the table.
func (m tablePage) columns() g.Node {
	if len(m.details.Columns) == 0 {
		return panel("Columns", empty("This table has no columns.", shellLine{}))
	}
	var defaults map[int]string
	keys := map[int]bool{}
	if m.document != nil {
		now := m.document.schemaNow()
		defaults = now.defaults()
		for _, id := range now.Identifier {
			keys[id] = true
		}
	}
	labels := map[int]map[string]string{}
	if m.details.Labels != nil {
		for _, each := range m.details.Labels.Fields {
			labels[each.FieldID] = each.Labels
		}
	}
	hasDocs := slices.ContainsFunc(m.details.Columns, func(c client.Column) bool { return c.Doc != "" })
	list := grid{label: "Columns", columns: []column{{"Id", "num"}, {"Name", "wide"}, {"Type", ""}}}
	if hasDocs {
		list.columns = []column{{"Id", "num"}, {"Name", ""}, {"Type", ""}, {"Doc", "wide"}}
	}
	if len(defaults) > 0 {
		list.columns = append(list.columns, column{"Default", ""})
	}
	for _, c := range m.details.Columns[:min(len(m.details.Columns), columnsShown)] {
		id := int64(c.ID)
		named := g.Group{columnName(c.Path)}
		for _, key := range sortedKeys(labels[c.ID]) {
			named = append(named, g.Text(" "), badge("label", key+": "+labels[c.ID][key]))
		}
		typed := g.Group{mono(c.Type)}
		if c.Required {
			typed = append(typed, h.Span(h.Class("faint"), g.Text(" required")))
		}
		if keys[c.ID] {
			typed = append(typed, g.Text(" "), badge("", "identifier"))
		}
		row := []cell{numeric(number(&id), &id), {named, c.Path}, {typed, c.Type}}
		if hasDocs {
			row = append(row, plain(text(c.Doc)))
		}
		if len(defaults) > 0 {
			row = append(row, plain(g.If(defaults[c.ID] != "", mono(defaults[c.ID]))))
		}
		list.rows = append(list.rows, row)
	}
	return panel(moorage.Counted(len(m.details.Columns), "column"), list.node(),
		g.Iff(len(m.details.Columns) > columnsShown, func() g.Node {
			return h.P(h.Class("faint"), g.Textf("These are the first %d columns. ", columnsShown),
				link(to(placeMetadata, m.object, "find", "schemas"), g.Text("The schemas have all of them")))
		}))
}

// columnName returns the name of a column. The name of a nested column is indented.
func columnName(path string) g.Node {
	within, own, isNested := cutLast(path, ".")
	if !isNested {
		return h.Strong(mono(own))
	}
	return g.Group{h.Span(h.Class("faint"), mono(within+".")), mono(own)}
}

// cutLast cuts s at the last separator.
func cutLast(s, separator string) (before, after string, found bool) {
	if i := strings.LastIndex(s, separator); i > 0 && i+len(separator) < len(s) {
		return s[:i], s[i+len(separator):], true
	}
	return "", s, false
}

// properties returns the properties of the table.
func (m tablePage) properties() g.Node {
	if len(m.details.Properties) == 0 {
		return panel("Properties", empty("This table has no properties of its own.",
			command("moorage", "set", nameOf(m.object), "write.target-file-size-bytes=134217728")))
	}
	return panel("Properties", propertyGrid(m.details.Properties))
}

// about returns what the table is.
func (m tablePage) about() g.Node {
	d := m.details
	all := []fact{{"Location", copiedPath(d.Location)}}
	if m.document != nil {
		all = append(all, fact{"Partitioned by", listed(m.document.partitioning(), "not partitioned")},
			fact{"Sorted by", listed(m.document.sorting(), "not sorted")})
	} else {
		all = append(all, fact{"Metadata", h.Span(h.Class("faint"), text(m.why))})
	}
	if d.Owner != "" {
		all = append(all, fact{"Owner", name(d.Owner)})
	}
	if d.Creator != "" && d.Creator != d.Owner {
		all = append(all, fact{"Made by", name(d.Creator)})
	}
	if d.Summary != nil && d.Summary.Engine != "" {
		all = append(all, fact{"Last engine", text(d.Summary.Engine)})
	}
	all = append(all, fact{"UUID", copied(d.UUID)})
	return panel("About", facts(all...))
}

// listed returns the parts of a list, or a sentence if there are none.
func listed(parts []string, none string) g.Node {
	if len(parts) == 0 {
		return h.Span(h.Class("faint"), g.Text(none))
	}
	return h.Span(g.Map(parts, func(part string) g.Node { return h.Div(mono(part)) }))
}

// refs returns the branches and tags.
func (m tablePage) refs() g.Node {
	if m.document == nil || len(m.document.Refs) == 0 {
		return nil
	}
	list := grid{label: "Branches and tags", plain: true, columns: []column{{"Name", "wide"}, {"Snapshot made", ""}}}
	for _, refName := range m.document.refNames() {
		each := m.document.Refs[refName]
		made := dash()
		if found := m.document.snapshot(each.Snapshot); found != nil {
			made = ago(m.now, found.at())
		}
		look := ""
		if each.Type == "branch" {
			look = "good"
		}
		list.rows = append(list.rows, []cell{
			plain(g.Group{badge(look, each.Type), g.Text(" "),
				link(to(placeSnapshots, m.object, "snapshot", strconv.FormatInt(each.Snapshot, 10)), name(refName))}),
			plain(made),
		})
	}
	return panel("Branches and tags", list.node())
}

// shortID returns a snapshot's id, shortened to its last digits.
func shortID(id int64) g.Node {
	whole := strconv.FormatInt(id, 10)
	if len(whole) <= shortDigits {
		return h.Code(g.Text(whole))
	}
	return h.Code(h.Title(whole), g.Text("…"+whole[len(whole)-shortDigits:]))
}

// shortDigits is how many digits of a snapshot's id pages show.
const shortDigits = 6

// connect returns how engines read the table.
func (m tablePage) connect() g.Node {
	if len(m.recipes) == 0 {
		return nil
	}
	return panel("Open in", h.Div(h.Class("recipes"), g.Map(m.recipes, func(r Recipe) g.Node {
		return h.Details(h.Name("recipe"), h.Summary(text(r.Title)),
			g.If(r.Note != "", h.P(h.Class("faint"), text(r.Note))), listing(r.Lines))
	})))
}

// nameOf returns an object as commands take it, in one word. The word is not quoted for a shell.
func nameOf(o client.Object) string {
	levels := slices.Clone(o.Namespace)
	if leaf := o.Table + o.View; leaf != "" {
		levels = append(levels, leaf)
	}
	words := moorage.PersonName(o.Warehouse, levels...)
	if o.Table+o.View == "" && len(levels) > 0 {
		words += "." // a namespace
	}
	return words
}

// shortName returns the name of an object without its warehouse; of a warehouse its own name.
func shortName(o client.Object) string {
	levels := slices.Clone(o.Namespace)
	if leaf := o.Table + o.View; leaf != "" {
		levels = append(levels, leaf)
	}
	if len(levels) == 0 {
		return o.Warehouse
	}
	return moorage.PersonLevels(levels...)
}

// documentBytesShown bounds the part of a metadata file that a page shows.
const documentBytesShown = 1 << 20

// metadataPage shows the metadata of a version as JSON.
type metadataPage struct {
	tableHead
	version  string
	location string
	raw      json.RawMessage
	words    string         // that the shown parts have; empty: everything is shown
	log      []metadataFile // the versions before
}

// loadMetadata loads the metadata of a version.
func loadMetadata(ctx context.Context, v *visit) (*page, error) {
	head, err := loadTableHead(ctx, v)
	if err != nil {
		return nil, err
	}
	model := metadataPage{tableHead: head, version: v.text("version"), words: v.text("find")}
	if model.version == "" {
		model.version = "now"
	}
	query := head.object.Query()
	query.Set("version", model.version)
	asked := client.Request{Method: http.MethodGet, Path: "/metadata", Query: query, Tag: &model.location}
	if err := v.api.Do(ctx, asked, &model.raw); err != nil {
		return nil, err
	}
	model.location = strings.Trim(model.location, `"`)
	var d document
	if json.Unmarshal(model.raw, &d) == nil {
		model.log = d.Log
	}
	return head.page(placeMetadata, model.node()), nil
}

// node returns the page.
func (m metadataPage) node() g.Node {
	download := to(placeRaw, m.object, "version", m.version)
	return g.Group{
		h.Div(h.Class("tools"), ask(to(placeMetadata, m.object),
			h.Label(h.For("version"), g.Text("Version ")),
			h.Input(h.ID("version"), h.Name("version"), h.Value(term.Clean(m.version)),
				h.Aria("describedby", "version-help")),
			h.Label(g.Text("containing "), h.Input(h.Type("search"), h.Name("find"), h.Value(term.Clean(m.words)),
				h.Placeholder("a name or a value"))),
			h.Button(g.Text("Show"))),
			link(download, h.Class("button"), h.Download(""), g.Text("Download"))),
		h.P(h.ID("version-help"), h.Class("faint"),
			g.Text("A version is now, now~2 (two versions before), 2h (as of two hours ago), a time, "+
				"or the name of a metadata file.")),
		g.If(m.location != "", h.P(copiedPath(m.location))),
		h.Div(h.ID("json"), jsonShown(m.raw, m.words)),
		m.versions(),
	}
}

// versionsShown is how many of the versions before a page links.
const versionsShown = 100

// versions returns links to the versions before.
func (m metadataPage) versions() g.Node {
	if len(m.log) == 0 {
		return nil
	}
	list := grid{label: "Metadata files before", columns: []column{{"Replaced", ""}, {"File", "wide"}}}
	for i := len(m.log) - 1; i >= 0 && len(list.rows) < versionsShown; i-- {
		file := m.log[i].File
		base := file[strings.LastIndexByte(file, '/')+1:]
		at := time.UnixMilli(m.log[i].MS)
		list.rows = append(list.rows,
			[]cell{timed(m.now, &at), plain(link(to(placeMetadata, m.object, "version", base), mono(base)))})
	}
	return panel("Versions before this one", list.node())
}

// pretty returns JSON with an indent, cut to documentBytesShown.
func pretty(raw json.RawMessage) (shown string, cut bool) {
	var b strings.Builder
	encoder := json.NewEncoder(&b)
	encoder.SetIndent("", "  ")
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(raw); err != nil {
		return fmt.Sprintf("The file cannot be shown: %v", err), false
	}
	shown = b.String()
	if len(shown) <= documentBytesShown {
		return shown, false
	}
	shown = shown[:documentBytesShown]
	return shown[:strings.LastIndexByte(shown, '\n')], true
}

// serveRaw answers with the metadata file of a version.
func (c *console) serveRaw(w http.ResponseWriter, r *http.Request, v *visit) error {
	o := v.object()
	query := o.Query()
	query.Set("version", v.text("version"))
	var raw json.RawMessage
	if err := v.get(r.Context(), "/metadata", query, &raw); err != nil {
		return c.answer(w, r, v, failed(v, err))
	}
	guard(w.Header())
	w.Header().Set("Content-Disposition", `attachment; filename="metadata.json"`)
	w.Header().Set("Cache-Control", "no-store")
	return c.server.AnswerText(w, r, raw)
}
