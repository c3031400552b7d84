package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"moorage"

	"moorage/internal/cli"
	"moorage/internal/term"
	"moorage/management/client"
)

// described returns the details of the object that a name refers to, from the management API. kinds
// are the kinds that the object may have.
func (p *person) described(ctx context.Context, n cli.Name, kinds ...string) (found client.ObjectDetails, err error) {
	query := url.Values{"warehouse": {p.warehouseOf(n)}, "path": {client.JoinLevels(n.Levels)}}
	err = p.server.Do(ctx, client.Request{Method: http.MethodGet, Path: client.Path("object"), Query: query}, &found)
	switch {
	case isMissing(err):
		return found, p.missing(ctx, n, kinds)
	case err == nil && !slices.Contains(kinds, found.Kind):
		err = cli.Usage(n.String() + " is a " + found.Kind + "; this command takes a " + strings.Join(kinds, " or a "))
	}
	return found, err
}

// labelWord is an operand of the command label: a label of an object, or of one of its fields.
type labelWord struct {
	field *client.Column // nil for the object
	name  string
	value *string // nil to remove the label
}

// labelWordIn parses NAME=VALUE or FIELD:NAME=VALUE. If remove is true, there is no =VALUE.
func labelWordIn(word string, remove bool, columns []client.Column) (made labelWord, err error) {
	name, value, hasValue := strings.Cut(word, "=")
	if hasValue == remove {
		return made, cli.Usage(fmt.Sprintf("%q is not [FIELD:]NAME=VALUE, or with --unset [FIELD:]NAME", word))
	}
	if !remove {
		made.value = &value
	}
	field, label, ofField := strings.Cut(name, ":")
	if made.name = label; !ofField {
		made.name = name
		return made, nil
	}
	if field == "" {
		return made, nil // ":a:b" is the label "a:b" of the object
	}
	for i := range columns {
		if columns[i].Path == field || strconv.Itoa(columns[i].ID) == field {
			made.field = &columns[i]
			return made, nil
		}
	}
	return made, cli.No("there is no field %s", field)
}

// change sets or removes the label in labels, and returns the former value, if there was one.
func (w labelWord) change(labels *client.Labels) (was string, had bool) {
	of := &labels.ObjectLabels
	if w.field != nil {
		at := slices.IndexFunc(labels.Fields, func(f client.FieldLabels) bool { return f.FieldID == w.field.ID })
		if at < 0 {
			at = len(labels.Fields)
			labels.Fields = append(labels.Fields, client.FieldLabels{FieldID: w.field.ID})
		}
		of = &labels.Fields[at].Labels
	}
	if *of == nil {
		*of = make(map[string]string)
	}
	if was, had = (*of)[w.name]; w.value != nil {
		(*of)[w.name] = *w.value
	} else {
		delete(*of, w.name)
	}
	return was, had
}

// labelTries is the number of times that label tries, if other callers change the labels at the
// same time.
const labelTries = 5

// labelObject is the command label.
func labelObject(ctx context.Context, p *person) error {
	found, err := p.described(ctx, p.Name, client.KindTable, client.KindView)
	if err != nil {
		return err
	}
	if len(p.Words) == 0 {
		return p.printLabels(found)
	}
	var words []labelWord
	for _, word := range p.Words {
		read, err := labelWordIn(word, p.Unset, found.Columns)
		if err != nil {
			return err
		}
		words = append(words, read)
	}
	object := client.Object{Warehouse: found.Warehouse, Namespace: found.Namespace, Table: found.Name}
	if found.Kind == client.KindView {
		object.Table, object.View = "", found.Name
	}
	for try := 1; ; try++ {
		err := p.changeLabels(ctx, object, words)
		answered, refused := errors.AsType[*client.Error](err)
		if !refused || answered.Code != http.StatusPreconditionFailed || try == labelTries {
			return err
		}
	}
}

// changeLabels changes the labels of an object. It fails if another caller changes them at the same
// time.
func (p *person) changeLabels(ctx context.Context, object client.Object, words []labelWord) error {
	var labels client.Labels
	var tag string
	read := client.Request{Method: http.MethodGet, Path: client.Path("labels"), Query: object.Query(), Tag: &tag}
	if err := p.server.Do(ctx, read, &labels); err != nil {
		return err
	}
	var lines []string
	for _, word := range words {
		was, had := word.change(&labels)
		name := word.name
		if word.field != nil {
			name = word.field.Path + ":" + name
		}
		before, after := strconv.Quote(was), "removed"
		if !had {
			before = "unset"
		}
		if word.value != nil {
			after = strconv.Quote(*word.value)
		}
		lines = append(lines, fmt.Sprintf("%s  %s -> %s", term.Clean(name), before, after))
	}
	if p.DryRun {
		return p.printRequest(http.MethodPut, client.RootManagement+client.Path("labels"), object.Query(), labels)
	}
	write := client.Request{
		Method: http.MethodPut, Path: client.Path("labels"), Query: object.Query(), Body: labels, IfMatch: tag,
	}
	if err := p.server.Do(ctx, write, new(client.Labels)); err != nil {
		return err
	}
	for _, line := range lines {
		p.done("%s", line)
	}
	return nil
}

// printLabels prints the labels of a table or view.
func (p *person) printLabels(found client.ObjectDetails) error {
	if p.Output == cli.OutputJSON {
		return printJSON(p.out, found.Labels)
	}
	var rows []row
	add := func(field string, labels map[string]string) {
		for _, name := range slices.Sorted(maps.Keys(labels)) {
			whole := name
			if field != "" {
				whole = field + ":" + name
			}
			rows = append(rows, row{
				name: whole, json: map[string]string{"field": field, "label": name, "value": labels[name]},
				cells: []term.Cell{term.Text(field), {Text: name, Style: term.Name}, term.Text(labels[name])},
			})
		}
	}
	add("", found.Labels.ObjectLabels)
	for _, field := range found.Labels.Fields {
		name := strconv.Itoa(field.FieldID) // the schema no longer has the field
		for _, column := range found.Columns {
			if column.ID == field.FieldID {
				name = column.Path
			}
		}
		add(name, field.Labels)
	}
	return p.rows([]string{"FIELD", "LABEL", "VALUE"}, rows)
}

// findObjects is the command find.
func findObjects(ctx context.Context, p *person) error {
	query := url.Values{"q": {strings.Join(p.Words, " ")}}
	if p.Limit > 0 {
		query.Set("limit", strconv.Itoa(p.Limit))
	}
	if p.Kind != "" {
		query.Set("kind", p.Kind)
	}
	var found client.Found
	err := p.server.Do(ctx, client.Request{Method: http.MethodGet, Path: client.Path("search"), Query: query}, &found)
	if err != nil {
		return err
	}
	if len(found.Objects) == 0 {
		return cli.No("nothing has a name with %s", strings.Join(p.Words, " and "))
	}
	rows := make([]row, 0, len(found.Objects))
	for _, each := range found.Objects {
		name := moorage.PersonLevels(each.Levels()...)
		if each.Warehouse != p.Warehouse {
			name = moorage.PersonLevels(each.Warehouse) + "/" + name
		}
		kind, full := each.Kind, name
		if kind == client.KindNamespace {
			kind, full = "ns", name+"."
		}
		rows = append(rows, row{name: full, json: each, cells: []term.Cell{
			{Text: kind, Style: term.Faint}, {Text: name, Style: term.Name},
		}})
	}
	if err := p.rows([]string{"KIND", "NAME"}, rows); err != nil || !found.More || p.Output != cli.OutputTable {
		return err
	}
	p.done("There may be more: add words, or -n.")
	return nil
}
