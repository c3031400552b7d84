package metadata

import (
	"cmp"
	"slices"

	"moorage"
	"moorage/internal/jsontext"
	"moorage/metadata/schema"
)

// lastAddedID is the id in an update that stands for the last addition in the same request.
const lastAddedID = -1

// lastAdded is the request's last addition of a schema, spec or sort order. If the table already
// had an equal part, that part counts as the addition, because the client cannot know about it. The
// Java reference refuses such a request.
type lastAdded struct {
	id    int
	known bool
}

func (l *lastAdded) add(id int) { l.id, l.known = id, true }

type addSchema struct{ schema *schema.Schema }

func decodeAddSchema(o jsontext.Fields) (updateOp, error) {
	v, err := o.Required("schema")
	if err != nil {
		return nil, err
	}
	s, err := schema.Parse(o.Bytes(v))
	return addSchema{s}, err
}

// apply gives the schema the id of an equal schema of the table, or the next id. It ignores the id
// in the request. Source: Java TableMetadata.Builder.addSchemaInternal.
func (u addSchema) apply(b *builder) error {
	if err := u.schema.Check(b.formatVersion); err != nil {
		return err
	}
	highest := max(b.lastColumnID, u.schema.HighestID)
	id, found, err := b.reuseSchemaID(u.schema)
	if err != nil {
		return err
	}
	b.lastAddedSchema.add(id)
	if found && highest == b.lastColumnID {
		return nil
	}
	if !found {
		if err := b.checkEvolved(u.schema); err != nil {
			return err
		}
		b.edit(schemas).add(int64(id), u.schema.WithID(id))
	}
	b.lastColumnID = highest
	b.changed = true
	return nil
}

// checkEvolved refuses a new schema that readers of the table's files could not use. A table
// without the branch main has no files to read. A table that loses main in the same request is
// being replaced, so its schema is not compared either.
func (b *builder) checkEvolved(s *schema.Schema) error {
	if b.creating || b.replaces || !slices.ContainsFunc(b.refs, func(r ref) bool { return r.name == mainBranch }) {
		return nil
	}
	current, err := b.currentSchema("schema")
	if err != nil {
		return err
	}
	type numbered struct {
		id     int64
		schema *schema.Schema
	}
	var earlier []numbered
	for id, raw := range b.elements(schemas) {
		parsed, err := b.parsedSchemas.parse(raw, schema.Parse)
		if err != nil {
			return err
		}
		earlier = append(earlier, numbered{id, parsed})
	}
	slices.SortFunc(earlier, func(a, b numbered) int { return cmp.Compare(b.id, a.id) })
	newestFirst := make([]*schema.Schema, len(earlier))
	for i, e := range earlier {
		newestFirst[i] = e.schema
	}
	return s.CheckEvolved(current, newestFirst, b.formatVersion)
}

func (b *builder) reuseSchemaID(s *schema.Schema) (id int, found bool, err error) {
	id = b.currentSchemaID
	for oldID, raw := range b.elements(schemas) {
		old, err := b.parsedSchemas.parse(raw, schema.Parse)
		if err != nil {
			return 0, false, err
		}
		if old.SameAs(s) {
			return int(oldID), true, nil
		}
		id = max(id, int(oldID)+1)
	}
	return id, false, nil
}

type setCurrentSchema struct{ id int }

func decodeSetCurrentSchema(o jsontext.Fields) (updateOp, error) {
	id, _, err := o.Int("schema-id")
	return setCurrentSchema{id}, err
}

func (u setCurrentSchema) apply(b *builder) error {
	id := u.id
	if id == lastAddedID {
		if !b.lastAddedSchema.known {
			return moorage.Errorf(moorage.KindValidation, "Cannot set last added schema: no schema has been added")
		}
		id = b.lastAddedSchema.id
	}
	if id == b.currentSchemaID {
		return nil
	}
	if _, ok := b.element(schemas, id); !ok {
		return illegal("Cannot set current schema to unknown schema: %d", id)
	}
	b.currentSchemaID = id
	b.changed = true
	return nil
}

type removeSchemas struct{ ids []int }

func decodeRemoveSchemas(o jsontext.Fields) (updateOp, error) {
	ids, err := idList(o, "schema-ids")
	return removeSchemas{ids}, err
}

// apply counts as a change even if there are no such schemas, as in the Java reference.
func (u removeSchemas) apply(b *builder) error {
	if slices.Contains(u.ids, b.currentSchemaID) {
		return illegal("Cannot remove the current schema")
	}
	b.removeParts(schemas, u.ids)
	return nil
}

func idList(o jsontext.Fields, key string) ([]int, error) {
	c, err := valueOf(o, key)
	if err != nil {
		return nil, err
	}
	return c.intList(key)
}

func (b *builder) removeParts(a arrayName, ids []int) {
	if len(ids) == 0 {
		return
	}
	gone := make(map[int64]bool, len(ids))
	for _, id := range ids {
		gone[int64(id)] = true
	}
	b.edit(a).drop(func(id int64) bool { return gone[id] })
	b.changed = true
}

// currentSchema returns the schema that a new spec or order must fit. In errors, what describes the
// spec or order.
func (b *builder) currentSchema(what string) (*schema.Schema, error) {
	raw, ok := b.element(schemas, b.currentSchemaID)
	if !ok {
		return nil, moorage.Errorf(moorage.KindValidation, "Attempting to add a %s before a schema is added", what)
	}
	return schema.Parse(raw)
}

type addSpec struct{ raw []byte }

func decodeAddSpec(o jsontext.Fields) (updateOp, error) {
	v, err := o.Required("spec")
	if err != nil {
		return nil, err
	}
	_, err = schema.ParseSpec(o.Bytes(v))
	return addSpec{o.Bytes(v)}, err
}

// apply gives the spec the id of a spec with equal fields, or the next id. Source: Java
// TableMetadata.Builder.addPartitionSpecInternal.
func (u addSpec) apply(b *builder) error {
	s, err := b.currentSchema("partition spec")
	if err != nil {
		return err
	}
	p, err := schema.ParseSpec(u.raw) // parsed for each apply, because the steps below change p depending on the table
	if err != nil {
		return err
	}
	last := b.lastPartitionID
	if b.formatVersion == 1 {
		last = 0 // the ids of every v1 spec count from 1000
	}
	p.AssignFieldIDs(last)
	if err := p.CheckBound(s); err != nil { // other checks do not concern an existing spec
		return err
	}
	id := 0
	var conflict error
	for oldID, raw := range b.elements(partitionSpecs) {
		old, err := b.parsedSpecs.parse(raw, schema.ParseSpec)
		if err != nil {
			return err
		}
		if p.SameAs(old) {
			b.lastAddedSpec.add(int(oldID))
			return nil
		}
		if conflict == nil && b.formatVersion > 1 {
			conflict = p.CheckJoins(old)
		}
		id = max(id, int(oldID)+1)
	}
	if conflict != nil {
		return conflict
	}
	if err := p.Check(s, b.formatVersion); err != nil {
		return err
	}
	b.edit(partitionSpecs).add(int64(id), p.WithID(id))
	b.lastPartitionID = max(b.lastPartitionID, p.LastFieldID)
	b.lastAddedSpec.add(id)
	b.changed = true
	return nil
}

type setDefaultSpec struct{ id int }

func decodeSetDefaultSpec(o jsontext.Fields) (updateOp, error) {
	id, _, err := o.Int("spec-id")
	return setDefaultSpec{id}, err
}

// apply does not check that the spec exists: it may come later in the request.
func (u setDefaultSpec) apply(b *builder) error {
	id := u.id
	if id == lastAddedID {
		if !b.lastAddedSpec.known {
			return moorage.Errorf(moorage.KindValidation, "Cannot set last added spec: no spec has been added")
		}
		id = b.lastAddedSpec.id
	}
	if id != b.defaultSpecID {
		b.defaultSpecID = id
		b.changed = true
	}
	return nil
}

type removeSpecs struct{ ids []int }

func decodeRemoveSpecs(o jsontext.Fields) (updateOp, error) {
	ids, err := idList(o, "spec-ids")
	return removeSpecs{ids}, err
}

func (u removeSpecs) apply(b *builder) error {
	if slices.Contains(u.ids, b.defaultSpecID) {
		return illegal("Cannot remove the default partition spec")
	}
	b.removeParts(partitionSpecs, u.ids)
	return nil
}

type addSortOrder struct{ order *schema.SortOrder }

func decodeAddSortOrder(o jsontext.Fields) (updateOp, error) {
	v, err := o.Required("sort-order")
	if err != nil {
		return nil, err
	}
	order, err := schema.ParseSortOrder(o.Bytes(v))
	return addSortOrder{order}, err
}

// apply gives the order the id of an order with equal fields, or the next id; the unsorted order is
// 0. Source: Java TableMetadata.Builder.addSortOrderInternal.
func (u addSortOrder) apply(b *builder) error {
	s, err := b.currentSchema("sort order")
	if err != nil {
		return err
	}
	if err := u.order.Check(s); err != nil {
		return err
	}
	id := 1
	if u.order.IsUnsorted() {
		id = 0
	}
	for oldID, raw := range b.elements(sortOrders) {
		old, err := b.parsedOrders.parse(raw, schema.ParseSortOrder)
		if err != nil {
			return err
		}
		if old.SameAs(u.order) {
			b.lastAddedOrder.add(int(oldID))
			return nil
		}
		if !u.order.IsUnsorted() {
			id = max(id, int(oldID)+1)
		}
	}
	b.edit(sortOrders).add(int64(id), u.order.WithID(id))
	b.lastAddedOrder.add(id)
	b.changed = true
	return nil
}

type setDefaultSortOrder struct{ id int }

func decodeSetDefaultSortOrder(o jsontext.Fields) (updateOp, error) {
	id, _, err := o.Int("sort-order-id")
	return setDefaultSortOrder{id}, err
}

// apply does not check that the order exists: it may come later in the request.
func (u setDefaultSortOrder) apply(b *builder) error {
	id := u.id
	if id == lastAddedID {
		if !b.lastAddedOrder.known {
			return moorage.Errorf(moorage.KindValidation,
				"Cannot set last added sort order: no sort order has been added")
		}
		id = b.lastAddedOrder.id
	}
	if id != b.defaultOrderID {
		b.defaultOrderID = id
		b.changed = true
	}
	return nil
}
