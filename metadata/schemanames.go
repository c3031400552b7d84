package metadata

import (
	"strings"

	"moorage"
)

// nameTree holds the full names of a schema's fields, cut at their dots: a tree, because spelled
// out the names of a deep schema take far more bytes than the schema does.
type nameTree struct {
	below map[string]*nameTree
	field *field
}

// at returns the node for a name below n; nil if there is none.
func (n *nameTree) at(name string) *nameTree {
	for part := range strings.SplitSeq(name, ".") {
		if n = n.below[part]; n == nil {
			return nil
		}
	}
	return n
}

// grow returns the node for a name below n, made if there is none.
func (n *nameTree) grow(name string) *nameTree {
	for part := range strings.SplitSeq(name, ".") {
		c := n.below[part]
		if c == nil {
			if n.below == nil {
				n.below = make(map[string]*nameTree)
			}
			c = &nameTree{}
			n.below[part] = c
		}
		n = c
	}
	return n
}

// indexNames returns the names of the fields of t. Two fields with one full name, as a column
// "a.b" and the field b of a struct a, are refused.
func indexNames(t *fieldType, tree *nameTree) (*nameTree, error) {
	if tree == nil {
		tree = &nameTree{}
	}
	for _, f := range t.fields {
		node := tree.grow(f.name)
		if node.field != nil {
			return nil, moorage.Errorf(moorage.KindValidation,
				"Invalid schema: multiple fields for name %s: %d and %d", f.fullName(), node.field.id, f.id)
		}
		node.field = f
		if _, err := indexNames(f.typ, node); err != nil {
			return nil, err
		}
	}
	return tree, nil
}

// indexShortNames adds the names of t's fields that leave out "element" and "value" where a struct
// follows: "points.x" beside "points.element.x". The first field with a name keeps it.
func indexShortNames(t *fieldType, tree *nameTree) {
	for _, f := range t.fields {
		node := tree.grow(f.name)
		if node.field == nil {
			node.field = f
		}
		if f.typ.kind == kindStruct && (t.kind == kindList || t.kind == kindMap && f.name == "value") {
			node = tree
		}
		indexShortNames(f.typ, node)
	}
}

// columnNames finds columns by their names.
type columnNames struct{ full, short *nameTree }

// columnNames indexes the names of a schema, which takes as long as parsing it.
func (s *schema) columnNames() columnNames {
	full, err := indexNames(s.root, nil)
	if err != nil {
		full = &nameTree{} // not reached: parseSchema has refused it
	}
	short := &nameTree{}
	indexShortNames(s.root, short)
	return columnNames{full, short}
}

// find returns the field with a full or else a short name; nil if there is none.
func (c columnNames) find(name string) *field {
	for _, tree := range []*nameTree{c.full, c.short} {
		if node := tree.at(name); node != nil && node.field != nil {
			return node.field
		}
	}
	return nil
}
