package metadata

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"time"

	"moorage"
	"moorage/internal/jsontext"
	"moorage/metadata/schema"
)

// Rollback is a commit that returns a table or view to an earlier state. It is an ordinary commit,
// so another rollback can undo it. It removes no snapshot, and does not change the location, format
// version, uuid or statistics.
type Rollback struct {
	// Requirements and Updates are JSON arrays in the form of a commit. The requirements hold as
	// long as nothing replaced by the updates has changed.
	Requirements json.RawMessage `json:"requirements"`
	Updates      json.RawMessage `json:"updates"` // "[]" if the table is already in that state
	// Warnings lists in sentences which parts of the earlier state are not restored.
	Warnings []string `json:"warnings"`
}

// RollbackParts selects the parts of a table that a rollback to an earlier version restores.
type RollbackParts int

// The parts of a rollback. RollbackRefs is one branch or tag. RollbackAll also includes the current
// schema, default spec, default sort order and properties.
const (
	RollbackRefs RollbackParts = iota
	RollbackAll
)

// RollbackToVersion returns the rollback of a table from its present version now to its earlier
// version then. It restores the ref called name and the given parts. Other refs stay.
//
// Errors: KindBadRequest if then has no such ref. KindCommitFailed if now no longer has the
// snapshot of the ref, because it expired.
func RollbackToVersion(now, then *Document, name string, parts RollbackParts) (Rollback, error) {
	b := newRollback(now)
	target := then.ref(name)
	switch {
	case target != nil:
		if err := b.set(name, target, target.snapshotID); err != nil {
			return Rollback{}, err
		}
	case name == mainBranch: // the table was empty
		b.remove(name)
	default:
		return Rollback{}, moorage.Errorf(moorage.KindBadRequest,
			"That version has no branch or tag %s", jsontext.Clip(name))
	}
	var err error
	if parts == RollbackAll {
		err = b.setParts(then)
	} else {
		err = b.warnOfParts(then)
	}
	if err != nil {
		return Rollback{}, err
	}
	return b.build()
}

// RollbackToSnapshot returns the rollback of a ref to a snapshot. Unless unrelated is true, the
// snapshot must be an ancestor of the snapshot to which the ref points now.
//
// Errors: KindBadRequest if the table has no such ref, or if the snapshot is not such an ancestor.
// KindCommitFailed if the table no longer has the snapshot.
func RollbackToSnapshot(now *Document, name string, id int64, unrelated bool) (Rollback, error) {
	current := now.ref(name)
	if current == nil {
		return Rollback{}, moorage.Errorf(moorage.KindBadRequest,
			"The table has no branch or tag %s", jsontext.Clip(name))
	}
	steps := now.arrays[snapshots].len() + 1 // all of them
	if now.HasSnapshot(id) && !unrelated && now.distance(id, current.snapshotID, &steps) == nil {
		return Rollback{}, moorage.Errorf(moorage.KindBadRequest,
			"Snapshot %d is not an ancestor of %s, which is at %d", id, jsontext.Clip(name), current.snapshotID)
	}
	b := newRollback(now)
	if err := b.set(name, current, id); err != nil {
		return Rollback{}, err
	}
	return b.build()
}

// SnapshotAt returns the head of main at a time, according to the snapshot log. It returns false if
// the log begins later, or if main had no head.
func (d *Document) SnapshotAt(at time.Time) (id int64, found bool) {
	ms := at.UnixMilli()
	for _, e := range d.arrays[snapshotLog].all(0) {
		entry, err := readSnapshotLogEntry(reread(d.elementRaw(snapshotLog, e)))
		if err != nil || entry.timestampMS > ms {
			break
		}
		id, found = entry.snapshotID, true
	}
	return id, found
}

// rollbackBuilder plans the rollback of a table.
type rollbackBuilder struct {
	rollbackCommit
	now *Document
}

// rollbackCommit collects the parts of a Rollback.
type rollbackCommit struct {
	identity     map[string]any // the requirement on the uuid; nil without a uuid
	requirements []map[string]any
	updates      []map[string]any
	warnings     []string
}

func newRollback(now *Document) *rollbackBuilder {
	b := &rollbackBuilder{now: now}
	if now.uuid != "" {
		b.identity = map[string]any{"type": assertTableUUID, "uuid": now.uuid}
	}
	return b
}

// set makes a ref point to snapshot id, with the type and retention of form.
func (b *rollbackBuilder) set(name string, form *ref, id int64) error {
	if !b.now.HasSnapshot(id) {
		return moorage.Errorf(moorage.KindCommitFailed,
			"Snapshot %d of %s has expired; choose a snapshot or version that the table still has",
			id, jsontext.Clip(name))
	}
	current := b.now.ref(name)
	if current != nil {
		form = current // a rollback moves a ref, and keeps its retention
		if current.snapshotID == id {
			return nil
		}
	}
	b.requireRef(name, current)
	update := map[string]any{"action": "set-snapshot-ref", "ref-name": name, "type": form.kind(), "snapshot-id": id}
	for key, value := range map[string]optional{
		"min-snapshots-to-keep": form.minToKeep, "max-snapshot-age-ms": form.maxAgeMS, "max-ref-age-ms": form.maxRefAge,
	} {
		if value.given {
			update[key] = value.value
		}
	}
	b.updates = append(b.updates, update)
	return nil
}

// remove removes a ref.
func (b *rollbackBuilder) remove(name string) {
	if current := b.now.ref(name); current != nil {
		b.requireRef(name, current)
		b.updates = append(b.updates, map[string]any{"action": "remove-snapshot-ref", "ref-name": name})
	}
}

// requireRef requires that a ref is unchanged. current is nil if there is no such ref.
func (b *rollbackBuilder) requireRef(name string, current *ref) {
	requirement := map[string]any{"type": assertRef, "ref": name, "snapshot-id": nil}
	if current != nil {
		requirement["snapshot-id"] = current.snapshotID
	}
	b.requirements = append(b.requirements, requirement)
}

// setParts restores everything that is not a ref.
func (b *rollbackBuilder) setParts(then *Document) error {
	differs, err := partsThatDiffer(b.now, then)
	if err != nil {
		return err
	}
	b.requirements = append(b.requirements,
		map[string]any{"type": "assert-current-schema-id", "current-schema-id": b.now.currentSchemaID},
		map[string]any{"type": "assert-default-spec-id", "default-spec-id": b.now.defaultSpecID},
		map[string]any{"type": "assert-default-sort-order-id", "default-sort-order-id": b.now.defaultOrderID})
	if differs.schema {
		b.updates = append(b.updates,
			map[string]any{"action": "add-schema", "schema": then.part(schemas, then.currentSchemaID)},
			map[string]any{"action": "set-current-schema", "schema-id": lastAddedID})
	}
	if differs.spec {
		b.updates = append(b.updates,
			map[string]any{"action": "add-spec", "spec": then.part(partitionSpecs, then.defaultSpecID)},
			map[string]any{"action": "set-default-spec", "spec-id": lastAddedID})
	}
	if differs.order {
		b.updates = append(b.updates,
			map[string]any{"action": "add-sort-order", "sort-order": then.part(sortOrders, then.defaultOrderID)},
			map[string]any{"action": "set-default-sort-order", "sort-order-id": lastAddedID})
	}
	b.updates = append(b.updates, propertyUpdates(b.now.props, then.props)...)
	if then.location != b.now.location {
		b.warnings = append(b.warnings, "The table has moved to another location since, and stays there.")
	}
	if then.formatVersion != b.now.formatVersion {
		b.warnings = append(b.warnings, "The table was upgraded to another format version since, and stays upgraded.")
	}
	return nil
}

// propertyUpdates returns the updates that change the properties from now back to then.
func propertyUpdates(now, then map[string]string) (updates []map[string]any) {
	set := make(map[string]string)
	for name, value := range then {
		if present, has := now[name]; !has || present != value {
			set[name] = value
		}
	}
	if len(set) > 0 {
		updates = append(updates, map[string]any{"action": "set-properties", "updates": set})
	}
	var removals []string
	for _, name := range slices.Sorted(maps.Keys(now)) {
		if _, had := then[name]; !had {
			removals = append(removals, name)
		}
	}
	if len(removals) > 0 {
		updates = append(updates, map[string]any{"action": "remove-properties", "removals": removals})
	}
	return updates
}

// warnOfParts adds warnings about the parts that are not restored.
func (b *rollbackBuilder) warnOfParts(then *Document) error {
	differs, err := partsThatDiffer(b.now, then)
	if err != nil {
		return err
	}
	for _, part := range []struct {
		differs bool
		name    string
	}{
		{differs.schema, "schema has"}, {differs.spec, "partition spec has"}, {differs.order, "sort order has"},
		{!maps.Equal(then.props, b.now.props), "properties have"},
	} {
		if part.differs {
			b.warnings = append(b.warnings, changedSince(part.name))
		}
	}
	return nil
}

// changedSince returns the warning that some parts are not restored. parts includes the verb.
func changedSince(parts string) string {
	return "The " + parts + " changed since. To take that back too, roll back all parts."
}

// build returns the commit. Without updates it is empty.
func (b *rollbackCommit) build() (r Rollback, err error) {
	if len(b.updates) == 0 {
		b.requirements, b.updates = []map[string]any{}, []map[string]any{}
	} else if b.identity != nil {
		b.requirements = slices.Insert(b.requirements, 0, b.identity)
	}
	r.Warnings = append([]string{}, b.warnings...)
	if r.Requirements, err = json.Marshal(b.requirements); err != nil {
		return r, moorage.E("metadata.build", "", moorage.KindInternal, err)
	}
	r.Updates, err = json.Marshal(b.updates)
	return r, moorage.E("metadata.build", "", moorage.KindInternal, err)
}

// differingParts returns the parts in which two versions differ.
type differingParts struct{ schema, spec, order bool }

func partsThatDiffer(a, b *Document) (differs differingParts, err error) {
	schemaA, err := a.currentSchema()
	if err != nil {
		return differs, err
	}
	schemaB, err := b.currentSchema()
	if err != nil {
		return differs, err
	}
	specA, err := schema.ParseSpec(a.part(partitionSpecs, a.defaultSpecID))
	if err != nil {
		return differs, err
	}
	specB, err := schema.ParseSpec(b.part(partitionSpecs, b.defaultSpecID))
	if err != nil {
		return differs, err
	}
	orderA, err := schema.ParseSortOrder(a.part(sortOrders, a.defaultOrderID))
	if err != nil {
		return differs, err
	}
	orderB, err := schema.ParseSortOrder(b.part(sortOrders, b.defaultOrderID))
	if err != nil {
		return differs, err
	}
	return differingParts{!schemaA.SameAs(schemaB), !specA.SameAs(specB), !orderA.SameAs(orderB)}, nil
}

// IsEmpty reports whether the table or view is already in the earlier state.
func (r Rollback) IsEmpty() bool { return string(r.Updates) == "[]" }

// NoRollback returns a Rollback that changes nothing, with a warning.
func NoRollback(warning string) Rollback {
	return Rollback{
		Requirements: json.RawMessage("[]"), Updates: json.RawMessage("[]"), Warnings: []string{warning},
	}
}

// MainBranch is the branch that readers use by default.
const MainBranch = mainBranch

// Step returns the rollback of a table in the form of a commit.
func (r Rollback) Step() (step Step, err error) {
	requirements, updates, err := r.checked()
	if err != nil {
		return step, err
	}
	if step.Requirements, err = DecodeRequirements(requirements); err != nil {
		return step, err
	}
	step.Updates, err = DecodeUpdates(updates)
	return step, err
}

// ViewStep returns the rollback of a view in the form of a commit.
func (r Rollback) ViewStep() (requirements []ViewRequirement, updates []ViewUpdate, err error) {
	asserted, changed, err := r.checked()
	if err != nil {
		return nil, nil, err
	}
	if requirements, err = DecodeViewRequirements(asserted); err != nil {
		return nil, nil, err
	}
	updates, err = DecodeViewUpdates(changed)
	return requirements, updates, err
}

// checked returns the arrays of r as checked text.
func (r Rollback) checked() (requirements, updates jsontext.Checked, err error) {
	if requirements, err = jsontext.Check(r.Requirements); err == nil {
		updates, err = jsontext.Check(r.Updates)
	}
	return requirements, updates, moorage.E("metadata.checked", "", moorage.KindInternal, err)
}

// SnapshotCalled returns the snapshot that text refers to, as a branch, a tag or an id. A ref takes
// precedence over an id.
func (d *Document) SnapshotCalled(text string) (id int64, found bool) {
	if named := d.ref(text); named != nil {
		return named.snapshotID, true
	}
	id, err := strconv.ParseInt(text, 10, 64)
	return id, err == nil && d.HasSnapshot(id)
}
