package console

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"

	"moorage"
	"moorage/internal/term"
	"moorage/management/client"
)

// rowsPage is the first rows of a table.
type rowsPage struct {
	tableHead
	refs     []string // the branches and tags to choose from
	ref      string
	snapshot string // instead of ref; may be empty
	limit    string
	rows     client.Rows
	why      string // why there are no rows to show; empty if there are
}

// rowLimits are the numbers of rows to choose from.
var rowLimits = []string{"20", "50", "200"}

// loadRows loads the first rows of a table.
func loadRows(ctx context.Context, v *visit) (*page, error) {
	head, err := loadTableHead(ctx, v)
	if err != nil {
		return nil, err
	}
	model := rowsPage{tableHead: head, ref: v.query.Get("ref"), snapshot: v.text("snapshot"), limit: v.text("limit")}
	if !slices.Contains(rowLimits, model.limit) {
		model.limit = rowLimits[0]
	}
	d, err := loadDocument(ctx, v, head.object, "now")
	if optional(err) != nil {
		return nil, err
	}
	if err == nil {
		model.refs = d.refNames()
	}
	query := head.object.Query()
	query.Set("limit", model.limit)
	switch {
	case model.snapshot != "":
		query.Set("snapshot", model.snapshot)
	case model.ref != "":
		query.Set("ref", model.ref)
	}
	err = v.get(ctx, "/rows", query, &model.rows)
	if refused, ok := errors.AsType[*client.Error](err); ok && statusOf(err) != 401 {
		model.why, err = refused.Message, nil
	}
	if err != nil {
		return nil, err
	}
	return head.page(placeRows, model.node()), nil
}

// node returns the page.
func (m rowsPage) node() g.Node {
	choice := func(name, label string, now string, values []string) g.Node {
		return h.Label(g.Text(label+" "), h.Select(h.Name(name), g.Map(values, func(value string) g.Node {
			return h.Option(h.Value(term.Clean(value)), g.If(value == now, h.Selected()), text(value))
		})))
	}
	refs := m.refs
	if len(refs) == 0 {
		refs = []string{"main"}
	}
	tools := h.Div(h.Class("tools"), ask(to(placeRows, m.object),
		choice("ref", "Branch or tag", m.ref, refs), choice("limit", "Rows", m.limit, rowLimits),
		h.Button(g.Text("Show"))),
		g.If(m.snapshot != "", h.Span(g.Text("as of snapshot "), mono(m.snapshot))))
	switch {
	case m.why != "":
		return g.Group{tools, h.P(h.Class("warning"), text(m.why))}
	case len(m.rows.Rows) == 0:
		return g.Group{tools, empty("There are no rows.", shellLine{})}
	}
	return g.Group{tools, m.grid(), h.P(h.Class("faint"), text(m.says()))}
}

// says returns how much of the table the page has.
func (m rowsPage) says() string {
	words := moorage.Counted(len(m.rows.Rows), "row")
	if m.rows.Complete {
		words += ", which is all"
	}
	if m.rows.ColumnsInAll > len(m.rows.Columns) {
		words += fmt.Sprintf(", the first %d of %d columns", len(m.rows.Columns), m.rows.ColumnsInAll)
	}
	if m.rows.Stopped != "" {
		words += ". " + m.rows.Stopped
	}
	return words + ". Deleted rows are left out."
}

// grid returns the rows.
func (m rowsPage) grid() g.Node {
	list := grid{label: "Rows"}
	for _, c := range m.rows.Columns {
		class := ""
		if isNumeric(c.Type) {
			class = "num"
		}
		list.columns = append(list.columns, column{c.Name, class})
	}
	for _, raw := range m.rows.Rows {
		var values []json.RawMessage
		if json.Unmarshal(raw, &values) != nil || len(values) != len(m.rows.Columns) {
			continue // the API returns an array with a value for each column
		}
		row := make([]cell, len(values))
		for i, value := range values {
			row[i] = valueCell(m.rows.Columns[i].Type, value)
		}
		list.rows = append(list.rows, row)
	}
	return h.Div(h.Class("values"), list.node())
}

// isNumeric reports whether values of a type are numbers, which are aligned to the right.
func isNumeric(typ string) bool {
	switch typ {
	case "int", "long", "float", "double":
		return true
	}
	return strings.HasPrefix(typ, "decimal")
}

// valueCell returns a value of a row: strings as they are, and other values as JSON. Timestamps are
// shortened; the whole value is there when the pointer rests on it.
func valueCell(typ string, value json.RawMessage) cell {
	value = bytes.TrimSpace(value)
	var words string
	switch {
	case bytes.Equal(value, []byte("null")):
		return cell{h.Span(h.Class("faint"), g.Text("null")), ""}
	case json.Unmarshal(value, &words) == nil && strings.HasPrefix(typ, "timestamp"):
		short, isUTC := strings.CutSuffix(strings.Replace(words, "T", " ", 1), "+00:00")
		if strings.Contains(short, ".") {
			short = strings.TrimSuffix(strings.TrimRight(short, "0"), ".")
		}
		if isUTC {
			short += "Z"
		}
		return cell{h.Span(h.Title(term.Clean(words)), text(short)), words}
	case json.Unmarshal(value, &words) == nil:
		return cell{text(words), words}
	}
	return cell{text(string(value)), string(value)}
}
