package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"moorage"
	"moorage/internal/cli"
	"moorage/internal/term"
	"moorage/management/client"
)

// listObjects is the command ls.
func listObjects(ctx context.Context, p *person) error {
	if p.Dropped {
		return p.listDropped(ctx)
	}
	if p.Name.IsAll {
		return p.listWarehouses(ctx)
	}
	warehouse, namespace := p.warehouseOf(p.Name), p.Name.Levels
	if len(namespace) > 0 {
		found, err := p.find(ctx, p.Name)
		if err != nil {
			return err
		}
		namespace = found.levels()
		if found.name != "" {
			one, err := p.rowOf(ctx, found)
			if err != nil {
				return err
			}
			return p.printListed(nil, []client.Row{one})
		}
	}
	all, err := p.objectsIn(ctx, warehouse, namespace, p.Recursive)
	if err != nil {
		return err
	}
	return p.printListed(namespace, all)
}

// listWarehouses prints all warehouses.
func (p *person) listWarehouses(ctx context.Context) error {
	var rows []row
	asked := client.Request{Method: http.MethodGet, Path: client.Path("warehouses")}
	err := client.Pages(ctx, p.server, asked, func(page client.WarehousesPage) bool {
		for _, w := range page.Warehouses {
			rows = append(rows, row{
				name: w.Name + "/", json: w,
				cells: []term.Cell{{Text: w.Name, Style: term.Name}, term.Text(w.Location)},
			})
		}
		return true
	})
	if err != nil {
		return err
	}
	return p.rows([]string{"WAREHOUSE", "LOCATION"}, rows)
}

// objectsIn returns the namespaces, tables and views in a namespace, or in a warehouse. It sends a
// request for each page.
func (p *person) objectsIn(ctx context.Context, warehouse string, namespace []string, isRecursive bool) (
	all []client.Row, err error) {
	query := url.Values{"warehouse": {warehouse}, "recursive": {strconv.FormatBool(isRecursive)}}
	if len(namespace) > 0 {
		query.Set("namespace", client.JoinLevels(namespace))
	}
	bar, end := p.progress("objects", 0)
	defer end()
	asked := client.Request{Method: http.MethodGet, Path: client.Path("objects"), Query: query}
	err = client.Pages(ctx, p.server, asked, func(page client.ObjectsPage) bool {
		all = append(all, page.Objects...)
		bar.Add(len(page.Objects))
		return true
	})
	return all, err
}

// printListed prints a list of objects in the form of --output. Names are relative to within.
func (p *person) printListed(within []string, all []client.Row) error {
	all = slices.DeleteFunc(all, func(o client.Row) bool { return p.Kind != "" && o.Kind != p.Kind })
	slices.SortStableFunc(all, p.order)
	isLong := p.Long || p.Sort != "name"
	header := []string{"KIND", "NAME"}
	if isLong {
		header = append(header, "ROWS", "SIZE", "FILES", "CHANGED", "BY", "NOTE")
	}
	rows := make([]row, 0, len(all))
	for _, o := range all {
		name := moorage.PersonLevels(o.Levels()[len(within):]...)
		kind := o.Kind
		if kind == kindNamespace {
			kind = "ns"
		}
		each := row{name: moorage.PersonLevels(o.Levels()...), json: o, cells: []term.Cell{
			{Text: kind, Style: term.Faint}, {Text: name, Style: term.Name},
		}}
		if o.Kind == kindNamespace {
			each.name += "."
		}
		if isLong {
			each.cells = append(each.cells, p.longCells(o)...)
		}
		rows = append(rows, each)
	}
	return p.rows(header, rows)
}

// longCells returns the cells of an object in a long list. A dash means that the server does not
// know the value. A cell is empty if objects of that kind do not have the value.
func (p *person) longCells(o client.Row) []term.Cell {
	var rows, size, files, changed, by string
	s := summaryOf(o)
	if o.Kind == kindTable {
		rows, size, files = countOf(s.Rows), sizeOf(s.Bytes), countOf(s.Files)
	}
	if o.Kind != kindNamespace {
		changed, by = p.changedAt(s.At), cmp.Or(o.By, "-")
	}
	var notes []string
	if o.Protected {
		notes = append(notes, "protected")
	}
	if o.Mirror != "" {
		notes = append(notes, "mirror of "+o.Mirror)
	}
	if o.Labelled {
		notes = append(notes, "labels")
	}
	return []term.Cell{
		term.Number(rows), term.Number(size), term.Number(files), term.Text(changed), term.Text(by),
		{Text: strings.Join(notes, ", "), Style: term.Faint},
	}
}

// summaryOf returns the summary of an object, or an empty one if the server has none.
func summaryOf(o client.Row) client.ObjectSummary { return valueOr(o.Summary, client.ObjectSummary{}) }

// order compares two objects as --sort requires.
func (p *person) order(a, b client.Row) int {
	byNumber := func(a, b *int64) int { return cmp.Compare(valueOr(b, -1), valueOr(a, -1)) }
	byName := cmp.Compare(moorage.PersonLevels(a.Levels()...), moorage.PersonLevels(b.Levels()...))
	first, second := summaryOf(a), summaryOf(b)
	switch p.Sort {
	case "rows":
		return cmp.Or(byNumber(first.Rows, second.Rows), byName)
	case "size":
		return cmp.Or(byNumber(first.Bytes, second.Bytes), byName)
	case "changed":
		return cmp.Or(valueOr(second.At, time.Time{}).Compare(valueOr(first.At, time.Time{})), byName)
	}
	kinds := []string{kindNamespace, kindTable, kindView}
	return cmp.Or(cmp.Compare(slices.Index(kinds, a.Kind), slices.Index(kinds, b.Kind)), byName)
}

func valueOr[T any](value *T, without T) T {
	if value == nil {
		return without
	}
	return *value
}

// countOf and sizeOf format numbers that may be unknown.
func countOf(n *int64) string { return term.Count(valueOr(n, -1)) }
func sizeOf(n *int64) string  { return term.Size(valueOr(n, -1)) }

// filesOf formats a number of files that may be unknown.
func filesOf(n *int64) string {
	if valueOr(n, -1) == 1 {
		return "1 file"
	}
	return countOf(n) + " files"
}

// changedAt formats a time that may be unknown.
func (p *person) changedAt(at *time.Time) string {
	return strings.TrimSuffix(p.out.Time(valueOr(at, time.Time{})), " ago")
}

// tree is the command tree.
func tree(ctx context.Context, p *person) error {
	warehouse, namespace := p.warehouseOf(p.Name), p.Name.Levels
	if len(namespace) > 0 {
		if _, err := p.find(ctx, cli.Name{Warehouse: warehouse, Levels: namespace, IsNamespace: true}); err != nil {
			return err
		}
	}
	root := warehouse
	if len(namespace) > 0 {
		root = moorage.PersonLevels(namespace...)
	}
	return p.paged(func(out *term.Output) error {
		fmt.Fprintln(out, term.Clean(root))
		return p.branchOut(ctx, out, warehouse, namespace, 1)
	})
}

// branchOut prints the contents of a namespace, below the line of the namespace.
func (p *person) branchOut(ctx context.Context, out *term.Output, warehouse string, namespace []string,
	depth int) error {
	all, err := p.objectsIn(ctx, warehouse, namespace, false)
	if err != nil {
		return err
	}
	slices.SortStableFunc(all, p.order) // namespaces, tables, views
	indent := strings.Repeat("  ", depth)
	for _, each := range all {
		name := term.Clean(moorage.PersonLevels(each.Name))
		switch each.Kind {
		case kindNamespace:
			name = out.Paint(term.Strong, name+".")
		case kindView:
			name += out.Paint(term.Faint, " (view)")
		}
		fmt.Fprintf(out, "%s%s\n", indent, name)
		if each.Kind == kindNamespace && (p.Depth == 0 || depth < p.Depth) {
			if err := p.branchOut(ctx, out, warehouse, each.Levels(), depth+1); err != nil {
				return err
			}
		}
	}
	return nil
}

// show is the command show.
func show(ctx context.Context, p *person) error {
	if p.Part == cli.PartFiles || p.Part == cli.PartPartitions {
		return p.showShape(ctx)
	}
	found, err := p.findAt(ctx)
	if err != nil {
		return err
	}
	switch {
	case found.kind == kindWarehouse:
		return p.showWarehouse(ctx, found)
	case found.kind == kindNamespace:
		return p.showNamespace(found)
	case p.Part == "json" || p.Output == cli.OutputJSON:
		return p.paged(func(out *term.Output) error { return printJSON(out, found.loaded.Metadata) })
	case p.Output == cli.OutputLines:
		return json.NewEncoder(p.out).Encode(found.loaded.Metadata)
	case p.Output == cli.OutputNames:
		p.printName(found.String())
		return nil
	case found.kind == kindView:
		return p.showView(found)
	}
	document, err := parseTable(found.loaded.Metadata)
	if err != nil {
		return err
	}
	return p.paged(func(out *term.Output) error {
		switch p.Part {
		case "schema":
			return out.Table(nil, schemaCells(document.schema()))
		case "snapshots":
			return out.Table([]string{"SNAPSHOT", "TIME", "OPERATION", "ROWS", "FILES"}, document.snapshotCells(out))
		case "refs":
			return out.Table([]string{"REF", "KIND", "SNAPSHOT"}, document.refCells())
		case "props":
			return out.Table(nil, pairCells(document.Properties))
		}
		return document.write(out, found.String())
	})
}

// showWarehouse prints a warehouse as warehouse show does.
func (p *person) showWarehouse(ctx context.Context, o object) error {
	var found client.Warehouse
	asked := client.Request{Method: http.MethodGet, Path: client.Path("warehouses", o.warehouse)}
	if err := p.server.Do(ctx, asked, &found); err != nil {
		return err
	}
	if p.Output == cli.OutputJSON || p.Output == cli.OutputLines {
		return printJSON(p.out, found)
	}
	return printWarehouse(p.out, cli.Config{}, found)
}

func (p *person) showNamespace(o object) error {
	switch p.Output {
	case cli.OutputJSON, cli.OutputLines:
		return printJSON(p.out, client.LoadedNamespace{Namespace: o.namespace, Properties: o.properties})
	case cli.OutputNames:
		p.printName(o.String() + ".")
		return nil
	}
	fmt.Fprintf(p.out, "namespace  %s in warehouse %s\n", term.Clean(o.String()), term.Clean(o.warehouse))
	return p.out.Table(nil, pairCells(o.properties))
}

// viewDocument has the parts of a view's metadata that show prints.
type viewDocument struct {
	Location   string            `json:"location"`
	Current    int               `json:"current-version-id"`
	Properties map[string]string `json:"properties"`
	Schemas    []tableSchema     `json:"schemas"`
	Versions   []viewVersion     `json:"versions"`
}

type viewVersion struct {
	ID              int   `json:"version-id"`
	SchemaID        int   `json:"schema-id"`
	TimestampMS     int64 `json:"timestamp-ms"`
	Representations []struct {
		SQL     string `json:"sql"`
		Dialect string `json:"dialect"`
	} `json:"representations"`
}

func parseView(metadata json.RawMessage) (document viewDocument, err error) {
	if err := json.Unmarshal(metadata, &document); err != nil {
		return document, fmt.Errorf("read the metadata of a view: %w", err)
	}
	return document, nil
}

// version returns the version with an id, or nil if there is none.
func (d viewDocument) version(id int) *viewVersion {
	for i := range d.Versions {
		if d.Versions[i].ID == id {
			return &d.Versions[i]
		}
	}
	return nil
}

func (p *person) showView(o object) error {
	document, err := parseView(o.loaded.Metadata)
	if err != nil {
		return err
	}
	return p.paged(func(out *term.Output) error {
		if p.Part == "props" {
			return out.Table(nil, pairCells(document.Properties))
		}
		version := document.version(document.Current)
		if version == nil {
			return nil
		}
		var columns [][]term.Cell
		for _, each := range document.Schemas {
			if each.ID == version.SchemaID {
				columns = schemaCells(each)
			}
		}
		if p.Part == "schema" {
			return out.Table(nil, columns)
		}
		fmt.Fprintf(out, "view      %s\nlocation  %s\nchanged   %s\n", term.Clean(o.String()),
			term.Clean(document.Location), out.Time(time.UnixMilli(version.TimestampMS)))
		for _, each := range version.Representations {
			fmt.Fprintf(out, "%-9s %s\n", term.Clean(each.Dialect), term.Clean(each.SQL))
		}
		return out.Table(nil, columns)
	})
}

// pairCells returns properties as a table, sorted by name.
func pairCells(properties map[string]string) (cells [][]term.Cell) {
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		cells = append(cells, []term.Cell{{Text: "  " + name, Style: term.Name}, term.Text(properties[name])})
	}
	return cells
}

// tableDocument has the parts of a table's metadata that commands for people print.
type tableDocument struct {
	FormatVersion int                 `json:"format-version"`
	UUID          string              `json:"table-uuid"`
	Location      string              `json:"location"`
	LastUpdatedMS int64               `json:"last-updated-ms"`
	SchemaID      int                 `json:"current-schema-id"`
	Schemas       []tableSchema       `json:"schemas"`
	SpecID        int                 `json:"default-spec-id"`
	Specs         []tableSpec         `json:"partition-specs"`
	Properties    map[string]string   `json:"properties"`
	Current       *int64              `json:"current-snapshot-id"`
	Snapshots     []tableSnapshot     `json:"snapshots"`
	Refs          map[string]tableRef `json:"refs"`
	// MetadataLog lists the earlier metadata files, the latest at the end.
	MetadataLog []struct {
		File string `json:"metadata-file"`
	} `json:"metadata-log"`
}

type tableSchema struct {
	ID     int           `json:"schema-id"`
	Fields []tableColumn `json:"fields"`
}

type tableColumn struct {
	ID       int             `json:"id"`
	Name     string          `json:"name"`
	Required bool            `json:"required"`
	Type     json.RawMessage `json:"type"`
	Doc      string          `json:"doc"`
}

type tableSpec struct {
	ID     int `json:"spec-id"`
	Fields []struct {
		Name      string `json:"name"`
		Transform string `json:"transform"`
		SourceID  int    `json:"source-id"`
	} `json:"fields"`
}

type tableSnapshot struct {
	ID          int64             `json:"snapshot-id"`
	Parent      *int64            `json:"parent-snapshot-id"`
	TimestampMS int64             `json:"timestamp-ms"`
	Summary     map[string]string `json:"summary"`
}

// tableRef is a branch or a tag.
type tableRef struct {
	SnapshotID int64  `json:"snapshot-id"`
	Type       string `json:"type"`
	// The retention of the ref. A limit is nil if the ref does not set it.
	MaxRefAgeMS      *int64 `json:"max-ref-age-ms"`
	MinSnapshots     *int   `json:"min-snapshots-to-keep"`
	MaxSnapshotAgeMS *int64 `json:"max-snapshot-age-ms"`
}

func parseTable(metadata json.RawMessage) (document tableDocument, err error) {
	if len(metadata) == 0 {
		return document, nil
	}
	if err := json.Unmarshal(metadata, &document); err != nil {
		return document, fmt.Errorf("read the metadata of a table: %w", err)
	}
	return document, nil
}

// head returns the current snapshot, or nil if there is none.
func (d tableDocument) head() *tableSnapshot {
	if d.Current == nil {
		return nil
	}
	return d.snapshot(*d.Current)
}

// snapshot returns the snapshot with an id, or nil if there is none.
func (d tableDocument) snapshot(id int64) *tableSnapshot {
	for i := range d.Snapshots {
		if d.Snapshots[i].ID == id {
			return &d.Snapshots[i]
		}
	}
	return nil
}

// total returns a number from the summary, or nil if the summary lacks it.
func (s *tableSnapshot) total(name string) *int64 {
	if s == nil {
		return nil
	}
	n, err := strconv.ParseInt(s.Summary[name], 10, 64)
	if err != nil {
		return nil
	}
	return &n
}

func (d tableDocument) schema() tableSchema {
	for _, each := range d.Schemas {
		if each.ID == d.SchemaID {
			return each
		}
	}
	return tableSchema{}
}

// schemaCells returns a schema as a table.
func schemaCells(schema tableSchema) (cells [][]term.Cell) {
	for _, column := range schema.Fields {
		required := ""
		if column.Required {
			required = "required"
		}
		cells = append(cells, []term.Cell{
			term.Number(strconv.Itoa(column.ID)), {Text: column.Name, Style: term.Name}, term.Text(typeOf(column.Type)),
			{Text: required, Style: term.Faint}, {Text: column.Doc, Style: term.Faint},
		})
	}
	return cells
}

// typeOf returns a type in a few words: the name of a primitive type, or the shape of a nested one.
func typeOf(raw json.RawMessage) string {
	var name string
	if json.Unmarshal(raw, &name) == nil {
		return name
	}
	var nested struct {
		Type    string          `json:"type"`
		Element json.RawMessage `json:"element"`
		Key     json.RawMessage `json:"key"`
		Value   json.RawMessage `json:"value"`
		Fields  []tableColumn   `json:"fields"`
	}
	if json.Unmarshal(raw, &nested) != nil {
		return string(raw)
	}
	switch nested.Type {
	case "list":
		return "list<" + typeOf(nested.Element) + ">"
	case "map":
		return "map<" + typeOf(nested.Key) + ", " + typeOf(nested.Value) + ">"
	}
	fields := make([]string, len(nested.Fields))
	for i, field := range nested.Fields {
		fields[i] = field.Name + " " + typeOf(field.Type)
	}
	return nested.Type + "<" + strings.Join(fields, ", ") + ">"
}

func (d tableDocument) snapshotCells(out *term.Output) (cells [][]term.Cell) {
	for _, each := range slices.Backward(d.Snapshots) {
		id := term.Cell{Text: strconv.FormatInt(each.ID, 10)}
		if d.Current != nil && each.ID == *d.Current {
			id.Style = term.Strong
		}
		cells = append(cells, []term.Cell{
			id, term.Text(out.Time(time.UnixMilli(each.TimestampMS))), term.Text(each.Summary["operation"]),
			term.Number(countOf(each.total("total-records"))), term.Number(countOf(each.total("total-data-files"))),
		})
	}
	return cells
}

func (d tableDocument) refCells() (cells [][]term.Cell) {
	for _, name := range slices.Sorted(maps.Keys(d.Refs)) {
		ref := d.Refs[name]
		cells = append(cells, []term.Cell{
			{Text: name, Style: term.Name}, term.Text(ref.Type), term.Text(strconv.FormatInt(ref.SnapshotID, 10)),
		})
	}
	return cells
}

// write prints the overview of a table.
func (d tableDocument) write(out *term.Output, name string) error {
	head := d.head()
	line := func(title, format string, args ...any) {
		title = out.Paint(term.Faint, fmt.Sprintf("%-9s", title))
		fmt.Fprintf(out, "%s %s\n", title, term.Clean(fmt.Sprintf(format, args...)))
	}
	size := "no snapshot"
	if head != nil {
		size = fmt.Sprintf("%s rows, %s, %s", countOf(head.total("total-records")),
			sizeOf(head.total("total-files-size")), filesOf(head.total("total-data-files")))
		if deletes := head.total("total-delete-files"); valueOr(deletes, 0) > 0 {
			size += fmt.Sprintf(", %s delete files", countOf(deletes))
		}
	}
	line("table", "%s, format %d: %s", name, d.FormatVersion, size)
	line("location", "%s", d.Location)
	line("changed", "%s", out.Time(time.UnixMilli(d.LastUpdatedMS)))
	if head != nil {
		line("main", "%d, %s", head.ID, head.Summary["operation"])
	}
	for _, ref := range slices.Sorted(maps.Keys(d.Refs)) {
		if ref != "main" {
			line(d.Refs[ref].Type, "%s at %d", ref, d.Refs[ref].SnapshotID)
		}
	}
	if split := d.split(); split != "" {
		line("split by", "%s", split)
	}
	return out.Table(nil, schemaCells(d.schema()))
}

// split returns the fields of the default partition spec in a few words.
func (d tableDocument) split() string {
	var fields []string
	for _, spec := range d.Specs {
		if spec.ID != d.SpecID {
			continue
		}
		for _, field := range spec.Fields {
			source := field.Name
			for _, column := range d.schema().Fields {
				if column.ID == field.SourceID {
					source = column.Name
				}
			}
			if field.Transform == "identity" {
				fields = append(fields, source)
			} else {
				fields = append(fields, field.Transform+"("+source+")")
			}
		}
	}
	return strings.Join(fields, ", ")
}
