package console

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"

	"moorage/internal/term"
	"moorage/management/client"
)

// historyPage is the versions of a table, the newest first.
type historyPage struct {
	tableHead
	history client.History
	isFirst bool // it begins with the present version
	refused client.Refusals
}

// loadHistory loads a page of the versions of a table.
func loadHistory(ctx context.Context, v *visit) (*page, error) {
	head, err := loadTableHead(ctx, v)
	if err != nil {
		return nil, err
	}
	token := v.query.Get("page")
	model := historyPage{tableHead: head, isFirst: token == ""}
	query := head.object.Query()
	if token != "" {
		query.Set("pageToken", token)
	}
	if err := v.get(ctx, "/history", query, &model.history); err != nil {
		return nil, err
	}
	if model.refused, err = loadRefusals(ctx, v, head.object); err != nil {
		return nil, err
	}
	return head.page(placeHistory, model.node()), nil
}

// versionName returns the name of a metadata file, by which operations know a version.
func versionName(location string) string { return location[strings.LastIndexByte(location, '/')+1:] }

// versionOf returns the name of the metadata file that an event made.
func versionOf(e client.Event) string { return cmp.Or(e.Version, versionName(e.MetadataLocation)) }

// node returns the page.
func (m historyPage) node() g.Node {
	if len(m.history.Versions) == 0 {
		return g.Group{
			empty("The log of changes has nothing about this table any more.",
				command("moorage", "serve", "--change-retention", "30d")),
			m.refusals(),
		}
	}
	undone := rollbacksIn(m.history.Versions)
	list := grid{label: "Versions", plain: true, stacks: true, columns: []column{
		{"From", "pick"}, {"To", "pick"}, {"When", ""}, {"By", ""}, {"What", "wide"}, {"Rows", "num"}, {"Files", "num"},
		{"", "next"},
	}}
	seen := 0
	for i, e := range m.history.Versions {
		version := versionOf(e)
		row := []cell{plain(nil), plain(nil)}
		if version != "" {
			row = []cell{plain(pick("from", version, seen == 1)), plain(pick("to", version, seen == 0))}
			seen++
		}
		isNow := m.isFirst && i == 0
		when := cell{node: g.Group{agoAt(m.now, e.Time), g.If(isNow, g.Group{g.Text(" "), badge("good", "now")})}}
		what := g.Group{eventWord(e), eventMore(e)}
		if back := undone.to[i]; back != nil {
			what = g.Group{badge("", "rollback"),
				h.Span(h.Class("faint"), g.Text(" to the version of "), ago(m.now, back.Time))}
		}
		what = append(what, versionMarks(e))
		if by := undone.by[i]; by != nil {
			what = append(what, h.Div(h.Class("minus"), g.Text("rolled back by "), name(by.Caller), g.Text(", "),
				ago(m.now, by.Time)))
		}
		if e.Operation == "" {
			what = g.Group{h.Span(h.Class("faint"), g.Text("from the table's own log: the caller is not known"))}
		}
		list.rows = append(list.rows, append(row, when,
			plain(g.Group{caller(e.Caller), g.If(e.Client != "", h.Div(eventClient(e)))}), plain(what),
			plain(m.rows(e)), plain(m.files(e)), plain(m.next(version, isNow))))
	}
	more := g.Node(nil)
	if next := m.history.Next(); next != "" {
		more = h.Div(h.Class("pager"),
			link(to(placeHistory, m.object, "page", next), h.Rel("next"), g.Text("Older versions")))
	}
	return g.Group{
		ask(to(placeDiff, m.object),
			h.Div(h.Class("tools"), h.Button(g.Text("Compare From and To")),
				h.Span(h.Class("faint"), g.Text("Choose two versions, or follow a link at the right."))),
			list.node()),
		more, m.refusals(),
	}
}

// versionMarks returns the names that other pages have for a version: the number in the name of its
// metadata file, and the snapshot of main.
func versionMarks(e client.Event) g.Node {
	marks := g.Group{}
	if number, _, isNumbered := strings.Cut(versionName(e.MetadataLocation), "-"); isNumbered {
		marks = append(marks, mono(number), g.Text(" "))
	}
	if head := headOf(e); head != nil {
		marks = append(marks, g.Text("snapshot "), shortID(*head))
	}
	if len(marks) == 0 {
		return nil
	}
	return h.Div(h.Class("faint"), marks)
}

// rollbacks has the rollbacks among the versions of a table, by the index of the version.
type rollbacks struct {
	to map[int]*client.Event // for a rollback: the version whose snapshot main has again
	by map[int]*client.Event // for a version that was undone: the rollback
}

// rollbacksIn finds the rollbacks among versions, the newest first: main got a snapshot that it had
// in an earlier version, without a new snapshot. If that version is on another page, the rollback
// is not found.
func rollbacksIn(versions []client.Event) rollbacks {
	found := rollbacks{to: map[int]*client.Event{}, by: map[int]*client.Event{}}
	earlier := map[int64]int{} // by snapshot of main: the newest of the versions before
	for i := len(versions) - 1; i >= 0; i-- {
		head := headOf(versions[i])
		if head == nil {
			continue
		}
		at, isKnown := earlier[*head]
		if isKnown && !hasSnapshot(versions[i]) && at > i+1 {
			if before := headOf(versions[i+1]); before != nil && *before != *head {
				found.to[i] = &versions[at]
				for j := i + 1; j < at; j++ {
					if found.by[j] == nil {
						found.by[j] = &versions[i]
					}
				}
			}
		}
		earlier[*head] = i
	}
	return found
}

// headOf returns the snapshot of main after an event, or nil if it is not known.
func headOf(e client.Event) *int64 {
	if e.Summary == nil {
		return nil
	}
	return e.Summary.Snapshot
}

// refusals returns the refused commits of the table. If the commit that won is on the page, there
// is a link to what it changed.
func (m historyPage) refusals() g.Node {
	versions := m.history.Versions
	return refusalPanel(m.now, m.refused, func(change string) g.Node {
		at := slices.IndexFunc(versions, func(e client.Event) bool { return strings.HasPrefix(e.ID, change+".") })
		if change == "" || at < 0 || at+1 == len(versions) {
			return nil
		}
		return link(to(placeDiff, m.object, "from", versionOf(versions[at+1]), "to", versionOf(versions[at])),
			g.Text("See what that commit changed"))
	})
}

// rows returns the rows of a version, with what it added.
func (m historyPage) rows(e client.Event) g.Node {
	if e.Summary == nil {
		return dash()
	}
	if e.Delta == nil {
		return number(e.Summary.Rows)
	}
	return counted(e.Summary.Rows, e.Delta.Rows)
}

// files returns the data files of a version, with what it added.
func (m historyPage) files(e client.Event) g.Node {
	if e.Summary == nil {
		return dash()
	}
	if e.Delta == nil {
		return number(e.Summary.Files)
	}
	return counted(e.Summary.Files, e.Delta.Files)
}

// pick returns the button that chooses a version of a comparison.
func pick(param, version string, chosen bool) g.Node {
	return h.Input(h.Type("radio"), h.Name(param), h.Value(term.Clean(version)),
		h.Aria("label", param+" "+term.Clean(version)),
		g.If(chosen, h.Checked()))
}

// counted returns a number with what was added to it.
func counted(is, added *int64) g.Node {
	if is == nil || added == nil || *added == 0 {
		return number(is)
	}
	return g.Group{number(is), h.Div(delta(0, *added, grouped))}
}

// delta returns a change as a signed number.
func delta(was, is int64, format func(int64) string) g.Node {
	if is < was {
		return h.Span(h.Class("minus"), g.Text("−"+format(was-is)))
	}
	return h.Span(h.Class("plus"), g.Text("+"+format(is-was)))
}

// next returns what a visitor can do with a version.
func (m historyPage) next(version string, isNow bool) g.Node {
	if version == "" {
		return nil
	}
	return h.Span(h.Class("actions"),
		g.Iff(!isNow, func() g.Node {
			return g.Group{
				link(to(placeDiff, m.object, "from", version, "to", "now"), g.Text("compare")),
				link(to(placeRollback, m.object, "to", version), g.Text("roll back …")),
			}
		}),
		link(to(placeMetadata, m.object, "version", version), g.Text("metadata")))
}

// diffPage is what differs between two versions of a table.
type diffPage struct {
	tableHead
	from, to string
	differs  client.TableDifference
}

// loadDiff loads what differs between two versions.
func loadDiff(ctx context.Context, v *visit) (*page, error) {
	head, err := loadTableHead(ctx, v)
	if err != nil {
		return nil, err
	}
	model := diffPage{tableHead: head, from: v.text("from"), to: v.text("to")}
	if model.from == "" {
		model.from = "now~1"
	}
	if model.to == "" {
		model.to = "now"
	}
	query := head.object.Query()
	query.Set("from", model.from)
	query.Set("to", model.to)
	if err := v.get(ctx, "/diff", query, &model.differs); err != nil {
		return nil, err
	}
	return head.page(placeHistory, model.node()), nil
}

// node returns the page.
func (m diffPage) node() g.Node {
	version := func(title, asked string, is client.TableVersion) g.Node {
		at := time.UnixMilli(is.TimestampMS)
		return h.Div(h.Class("version"), h.Strong(g.Text(title)), g.Text(" "), agoAt(m.now, at), g.Text(" "),
			link(to(placeMetadata, m.object, "version", asked), mono(versionName(is.MetadataLocation))))
	}
	body := g.Group{
		h.Div(h.Class("versions"), version("From", m.from, m.differs.From), version("To", m.to, m.differs.To)),
		h.Div(h.Class("tools"),
			link(to(placeDiff, m.object, "from", m.to, "to", m.from), h.Class("button"), g.Text("Swap From and To")),
			link(to(placeRollback, m.object, "to", m.from), h.Class("button"), g.Text("Roll back to From …")),
			link(to(placeHistory, m.object), h.Class("button"), g.Text("All versions"))),
	}
	parts := differences(m.differs)
	if len(parts) == 0 {
		return append(body, empty("These versions do not differ in anything that the table has.", shellLine{}))
	}
	for _, part := range parts {
		body = append(body, panel(part.title, diffLines(part.lines)))
	}
	return body
}

// diffLines returns lines that differ as a list.
func diffLines(lines []diffLine) g.Node {
	return h.Ul(h.Class("diff"), g.Map(lines, func(line diffLine) g.Node {
		return h.Li(h.Class(line.class()), h.Span(h.Class("sign"), g.Text(line.sign)), line.node)
	}))
}

// difference is a part of a table that differs.
type difference struct {
	title string
	lines []diffLine
}

// diffLine is one thing that differs. The sign is + − or ~, and empty for a line that both have.
type diffLine struct {
	sign string
	node g.Node
}

// class returns the look of the line.
func (l diffLine) class() string {
	switch l.sign {
	case "+":
		return "plus"
	case "−":
		return "minus"
	case "":
		return "same"
	}
	return "changed"
}

// was returns a former and a present value.
func was(former, present string) g.Node {
	return g.Group{h.Del(mono(former)), g.Text(" → "), h.Ins(mono(present))}
}

// differences returns the parts that differ, in the order in which they matter.
func differences(d client.TableDifference) (parts []difference) {
	add := func(title string, lines []diffLine) {
		if len(lines) > 0 {
			parts = append(parts, difference{title, lines})
		}
	}
	add("Content", contentLines(d))
	if d.Schema != nil {
		add("Columns", columnLines(*d.Schema))
	}
	var layout []diffLine
	if d.PartitionSpec != nil {
		layout = append(layout, diffLine{"~",
			g.Group{g.Text("partitioning "), was(compact(d.PartitionSpec[0]), compact(d.PartitionSpec[1]))}})
	}
	if d.SortOrder != nil {
		layout = append(layout, diffLine{"~",
			g.Group{g.Text("sort order "), was(compact(d.SortOrder[0]), compact(d.SortOrder[1]))}})
	}
	if d.Location != nil {
		layout = append(layout, diffLine{"~", g.Group{g.Text("location "), was(d.Location[0], d.Location[1])}})
	}
	if d.FormatVersion != nil {
		layout = append(layout, diffLine{"~", g.Group{g.Text("format version "),
			was(strconv.Itoa(d.FormatVersion[0]), strconv.Itoa(d.FormatVersion[1]))}})
	}
	add("Layout", layout)
	if d.Refs != nil {
		add("Branches and tags", refLines(*d.Refs))
	}
	if d.Properties != nil {
		add("Properties", propertyLines(*d.Properties))
	}
	return parts
}

// contentLines returns the changes of numbers and of the list of snapshots.
func contentLines(d client.TableDifference) (lines []diffLine) {
	for _, total := range []struct{ key, word string }{
		{"rows", "rows"}, {"files", "data files"}, {"deletes", "delete files"}, {"bytes", "of data"},
	} {
		pair := d.Totals[total.key]
		if len(pair) != 2 || pair[0] == pair[1] || pair[0] < 0 || pair[1] < 0 {
			continue
		}
		format := grouped
		if total.key == "bytes" {
			format = term.Size
		}
		sign, by := "+", pair[1]-pair[0]
		if by < 0 {
			sign, by = "−", -by
		}
		lines = append(lines, diffLine{sign, g.Group{g.Text(format(by) + " " + total.word),
			h.Span(h.Class("faint"), g.Text(fmt.Sprintf(" (%s → %s)", format(pair[0]), format(pair[1]))))}})
	}
	if d.Snapshots == nil {
		return lines
	}
	if n := len(d.Snapshots.Added); n > 0 {
		lines = append(lines, diffLine{"+", g.Text(countedWord(n, "snapshot"))})
	}
	if n := len(d.Snapshots.Removed); n > 0 {
		lines = append(lines, diffLine{"−", g.Text(countedWord(n, "snapshot"))})
	}
	return lines
}

// columnLines returns the columns that differ.
func columnLines(d client.SchemaDifference) (lines []diffLine) {
	column := func(c client.ColumnShown) g.Node {
		required := g.Node(nil)
		if c.Required {
			required = g.Group{g.Text(" "), badge("", "required")}
		}
		return g.Group{h.Strong(mono(c.Path)), g.Text(" "), mono(c.Type), required,
			h.Span(h.Class("faint"), g.Text(fmt.Sprintf(" id %d", c.ID)))}
	}
	for _, c := range d.Added {
		lines = append(lines, diffLine{"+", column(c)})
	}
	for _, c := range d.Removed {
		lines = append(lines, diffLine{"−", column(c)})
	}
	for _, c := range d.Changed {
		for _, trait := range sortedKeys(c.Is) {
			lines = append(lines, diffLine{"~", g.Group{h.Strong(mono(c.Path)), text(" " + trait + " "),
				was(fmt.Sprint(c.Was[trait]), fmt.Sprint(c.Is[trait]))}})
		}
	}
	return lines
}

// refLines returns the branches and tags that differ.
func refLines(d client.RefsDifference) (lines []diffLine) {
	for _, moved := range d.Moved {
		where := g.Node(g.Text(" went back to another snapshot "))
		if moved.Ahead != nil {
			where = g.Text(" is " + countedWord(*moved.Ahead, "snapshot") + " further ")
		}
		lines = append(lines, diffLine{"~", g.Group{h.Strong(name(moved.Name)), where,
			was(strconv.FormatInt(moved.Was, 10), strconv.FormatInt(moved.Is, 10))}})
	}
	for _, added := range d.Added {
		lines = append(lines, diffLine{"+", g.Group{text(added.Type + " "), h.Strong(name(added.Name)),
			g.Text(" at " + strconv.FormatInt(added.SnapshotID, 10))}})
	}
	for _, removed := range d.Removed {
		lines = append(lines, diffLine{"−", g.Group{text(removed.Type + " "), h.Strong(name(removed.Name)),
			g.Text(" at " + strconv.FormatInt(removed.SnapshotID, 10))}})
	}
	for _, changed := range d.Changed {
		lines = append(lines, diffLine{"~",
			g.Group{h.Strong(name(changed.Name)), g.Text(" "), was(string(changed.Was), string(changed.Is))}})
	}
	return lines
}

// propertyLines returns the properties that differ.
func propertyLines(d client.PropertyChanges) (lines []diffLine) {
	for _, key := range sortedKeys(d.Set) {
		pair := d.Set[key]
		switch {
		case pair[1] == nil:
			continue
		case pair[0] == nil:
			lines = append(lines, diffLine{"+", g.Group{h.Strong(mono(key)), g.Text(" "), mono(*pair[1])}})
		default:
			lines = append(lines, diffLine{"~", g.Group{h.Strong(mono(key)), g.Text(" "), was(*pair[0], *pair[1])}})
		}
	}
	for _, key := range sortedKeys(d.Removed) {
		lines = append(lines, diffLine{"−", g.Group{h.Strong(mono(key)), g.Text(" "), mono(d.Removed[key])}})
	}
	return lines
}

// compact returns a value as JSON in one line.
func compact(value any) string {
	encoded, err := json.Marshal(value)
	if err != nil {
		return fmt.Sprint(value)
	}
	return string(encoded)
}

// countedWord returns a number with its noun.
func countedWord(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return grouped(int64(n)) + " " + noun + "s"
}
