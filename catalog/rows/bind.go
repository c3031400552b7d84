package rows

import (
	"context"
	"fmt"
	"slices"

	"moorage/catalog/rows/parquet"
	"moorage/metadata/schema"
)

// binder matches the fields of a schema with the columns of one data file.
type binder struct {
	alive    func() error // returns an error if binding should end
	file     dataFile
	opened   *parquet.File
	ids      map[*parquet.Node]int          // the IDs of the nodes that have one
	groups   map[*parquet.Node]childrenByID // for the groups that were looked up
	identity map[int]bool                   // columns whose values can be stored in the partition only
	leaves   int                            // the number of columns to read
}

// childrenByID maps IDs to the children of a group.
type childrenByID struct {
	nodes map[int]*parquet.Node
	// twice holds the IDs shared by several children.
	twice map[int]bool
	// hasAll is true if every child has an ID.
	hasAll bool
}

// bind returns the reader of the rows of a file. The schema and the file can have tens of thousands
// of columns each.
func (s *scan) bind(ctx context.Context, opened *parquet.File, file dataFile) (*rowCell, error) {
	identity, known := s.table.Identity[file.spec]
	if !known {
		return nil, notShown("the file %s has the partition spec %d, which the table lacks", file.Path, file.spec)
	}
	b := &binder{
		alive: ctx.Err, file: file, opened: opened, ids: make(map[*parquet.Node]int),
		groups: make(map[*parquet.Node]childrenByID), identity: make(map[int]bool, len(identity)),
	}
	for _, id := range identity {
		b.identity[id] = true
	}
	switch {
	case opened.HasIDs:
		b.collectIDs(opened.Root)
	case s.table.NameMapping == "":
		return nil, notShown("the columns of the file %s have no field ids, and the table has no "+
			"schema.name-mapping.default", file.Path)
	default:
		names, err := parseMapping(s.table.NameMapping)
		if err != nil {
			return nil, err
		}
		b.mapIDs(opened.Root, parquet.None, names)
	}
	row := &rowCell{}
	for _, f := range s.fields {
		c, err := b.field(f, opened.Root)
		if err != nil {
			return nil, err
		}
		row.cells = append(row.cells, c)
		row.columns = append(row.columns, c.columnsOf()...)
	}
	return row, nil
}

// collectIDs collects the field IDs found in the file.
func (b *binder) collectIDs(n *parquet.Node) {
	if n.HasID {
		b.ids[n] = n.ID
	}
	for _, child := range n.Children {
		b.collectIDs(child)
	}
}

// refuse returns the error of a field that cannot be shown.
func (b *binder) refuse(f schema.Field, format string, arguments ...any) error {
	return notShown("the column %.100q of the file %s %s", f.Name, b.file.Path, fmt.Sprintf(format, arguments...))
}

// field returns the reader of a field of the group.
func (b *binder) field(f schema.Field, group *parquet.Node) (cell, error) {
	if err := b.alive(); err != nil {
		return nil, err
	}
	children := b.childrenOf(group)
	found := children.nodes[f.ID]
	switch {
	case children.twice[f.ID]:
		return nil, b.refuse(f, "is there twice")
	case found != nil:
		return b.readerAt(f, found)
	case !children.hasAll && b.opened.HasIDs:
		return nil, b.refuse(f, "cannot be told from columns without field ids")
	}
	return b.missing(f)
}

// childrenOf returns the children of a group by their ids.
func (b *binder) childrenOf(group *parquet.Node) childrenByID {
	if known, ok := b.groups[group]; ok {
		return known
	}
	children := childrenByID{make(map[int]*parquet.Node, len(group.Children)), make(map[int]bool), true}
	for _, n := range group.Children {
		id, hasID := b.ids[n]
		switch {
		case !hasID:
			children.hasAll = false
		case children.nodes[id] != nil:
			children.twice[id] = true
		default:
			children.nodes[id] = n
		}
	}
	b.groups[group] = children
	return children
}

// column returns the column of the file at n, for the field f.
func (b *binder) column(f schema.Field, n *parquet.Node) (*parquet.Column, error) {
	if b.leaves++; b.leaves > leavesMax {
		return nil, b.refuse(f, "would be read with %d others, and at most %d are read. Name fewer columns", leavesMax,
			leavesMax)
	}
	return b.opened.Column(n), nil
}

// missing returns the reader of a field that the file lacks.
//
// Source: table specification, "Column Projection".
func (b *binder) missing(f schema.Field) (cell, error) {
	switch {
	case b.identity[f.ID]:
		return nil, b.refuse(f, "has its value in the partition only, which this server does not read")
	case f.Default != "" && (f.Type.Fields != nil || !f.IsDefault):
		return nil, b.refuse(f, "is missing, and its initial-default is not a value of its type")
	case f.Default != "":
		return constantCell(f.Default), nil
	case f.Required:
		return nil, b.refuse(f, "is required, and missing")
	}
	return constantCell("null"), nil
}

// readerAt returns the reader of a field whose values are at n.
func (b *binder) readerAt(f schema.Field, n *parquet.Node) (cell, error) {
	switch f.Type.Name {
	case "struct":
		return b.structAt(f, n)
	case "list":
		return b.listAt(f, n)
	case "map":
		return b.mapAt(f, n)
	}
	if n.Repetition == parquet.Repeated {
		return nil, b.refuse(f, "has an old form of lists")
	}
	if !n.IsColumn() {
		return nil, b.refuse(f, "is a group of columns, and has the type %s in the table", f.Type.Name)
	}
	show, err := showerOf(f.Type, n)
	if err != nil {
		return nil, b.refuse(f, "%v", err)
	}
	column, err := b.column(f, n)
	return &valueCell{column: column, show: show}, err
}

func (b *binder) structAt(f schema.Field, n *parquet.Node) (cell, error) {
	if n.IsColumn() || n.Repetition == parquet.Repeated || n.Annotation != parquet.None {
		return nil, b.refuse(f, "is no struct")
	}
	s := &structCell{node: n}
	for _, inner := range f.Type.Fields {
		c, err := b.field(inner, n)
		if err != nil {
			return nil, err
		}
		s.fields = append(s.fields, namedCell{inner.Name, c})
		s.columns = append(s.columns, c.columnsOf()...)
	}
	if len(s.columns) > 0 {
		return s, nil
	}
	// The levels of any other column in the group show which structs are null.
	marker := firstColumn(n)
	if marker == nil {
		return nil, b.refuse(f, "is a group without columns")
	}
	var err error
	s.marker, err = b.column(f, marker)
	s.columns = []*parquet.Column{s.marker}
	return s, err
}

// firstColumn returns the first column in a group, or nil.
func firstColumn(n *parquet.Node) *parquet.Node {
	if n.IsColumn() {
		return n
	}
	for _, child := range n.Children {
		if found := firstColumn(child); found != nil {
			return found
		}
	}
	return nil
}

// listAt returns the reader of a list, which has the form
//
//	group name (LIST) { repeated group { element } }
//
// Source: LogicalTypes.md, "Lists". The older forms with two levels are refused.
func (b *binder) listAt(f schema.Field, n *parquet.Node) (cell, error) {
	if n.IsColumn() || n.Annotation != parquet.List || n.Repetition == parquet.Repeated || len(n.Children) != 1 {
		return nil, b.refuse(f, "is no list")
	}
	repeated := n.Children[0]
	if repeated.Repetition != parquet.Repeated || repeated.IsColumn() || len(repeated.Children) != 1 ||
		repeated.Name == "array" || repeated.Name == n.Name+"_tuple" {
		return nil, b.refuse(f, "has an old form of lists")
	}
	element, err := b.inside(f.Type.Fields[0], repeated.Children[0])
	if err != nil {
		return nil, err
	}
	return &listCell{node: n, repeated: repeated, element: element, columns: element.columnsOf()}, nil
}

// mapAt returns the reader of a map, which has the form
//
//	group name (MAP) { repeated group { key, value } }
//
// Source: LogicalTypes.md, "Maps".
func (b *binder) mapAt(f schema.Field, n *parquet.Node) (cell, error) {
	if n.IsColumn() || n.Annotation != parquet.Map || n.Repetition == parquet.Repeated || len(n.Children) != 1 {
		return nil, b.refuse(f, "is no map")
	}
	repeated := n.Children[0]
	if repeated.Repetition != parquet.Repeated || len(repeated.Children) != 2 {
		return nil, b.refuse(f, "is no map with keys and values")
	}
	key, err := b.inside(f.Type.Fields[0], repeated.Children[0])
	if err != nil {
		return nil, err
	}
	value, err := b.inside(f.Type.Fields[1], repeated.Children[1])
	if err != nil {
		return nil, err
	}
	columns := slices.Concat(key.columnsOf(), value.columnsOf())
	return &mapCell{listCell{node: n, repeated: repeated, element: key, columns: columns}, value}, nil
}

// inside returns the reader of an element, key or value at n.
func (b *binder) inside(f schema.Field, n *parquet.Node) (cell, error) {
	if id, hasID := b.ids[n]; !hasID || id != f.ID {
		return nil, b.refuse(f, "has the id %d in the table, and another or none in the file", f.ID)
	}
	return b.readerAt(f, n)
}
