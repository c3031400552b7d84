package metadata

import (
	"fmt"
	"strings"

	"moorage"
	"moorage/internal/jsontext"
)

// Requirement is a condition of a commit on the table that it changes. It is immutable, and safe
// for concurrent use.
type Requirement struct {
	kind  string
	check func(d *Document) error
	head  refHead // the condition of assert-ref-snapshot-id
}

// refHead is a ref and the snapshot to which it points. snapshot is absent if the ref must not
// exist.
type refHead struct {
	ref      string
	snapshot optional
}

// Type returns the type of the requirement in lower case, "assert-table-uuid".
func (r Requirement) Type() string { return r.kind }

const (
	assertCreate    = "assert-create"
	assertTableUUID = "assert-table-uuid"
	assertRef       = "assert-ref-snapshot-id"
)

func decodeRequirement(o jsontext.Fields) (r Requirement, err error) {
	r.kind, err = discriminator(o, "update requirement", "type")
	if err != nil {
		return r, err
	}
	switch r.kind {
	case assertCreate:
		r.check = requireNoTable
	case assertTableUUID:
		r.check, err = decodeTableUUID(o)
	case assertRef:
		return decodeRefSnapshotID(o)
	case "assert-last-assigned-field-id":
		r.check, err = requireInt(o, "last-assigned-field-id", "last assigned field id",
			func(d *Document) int { return d.lastColumnID })
	case "assert-current-schema-id":
		r.check, err = requireInt(o, "current-schema-id", "current schema",
			func(d *Document) int { return d.currentSchemaID })
	case "assert-last-assigned-partition-id":
		r.check, err = requireInt(o, "last-assigned-partition-id", "last assigned partition id",
			func(d *Document) int { return d.lastPartitionID })
	case "assert-default-spec-id":
		r.check, err = requireInt(o, "default-spec-id", "default partition spec",
			func(d *Document) int { return d.defaultSpecID })
	case "assert-default-sort-order-id":
		r.check, err = requireInt(o, "default-sort-order-id", "default sort order",
			func(d *Document) int { return d.defaultOrderID })
	case "assert-view-uuid":
		_, _, err = o.Str("uuid")
		r.check = func(*Document) error {
			return moorage.Errorf(moorage.KindValidation, "Cannot validate AssertViewUUID against a table")
		}
	default:
		err = moorage.Errorf(moorage.KindBadRequest, "Unrecognized update requirement: %s", jsontext.Clip(r.kind))
	}
	return r, err
}

// unmet returns the error for a requirement that does not hold. After this error, clients refresh
// and retry.
func unmet(format string, args ...any) error {
	return unmetBecause(&UnmetError{}, format, args...)
}

// unmetBecause is like unmet, with a cause.
func unmetBecause(cause *UnmetError, format string, args ...any) error {
	return &moorage.Error{
		Kind: moorage.KindCommitFailed, Message: "Requirement failed: " + fmt.Sprintf(format, args...), Err: cause,
	}
}

// UnmetError is the cause of the error of a requirement that does not hold. Ref is the branch or
// tag in the requirement, or empty. Expected is nil if the ref must not exist. Found is nil if the
// ref does not exist.
type UnmetError struct {
	Ref             string
	Expected, Found *int64 // snapshots
}

// Error returns the text of the error. Clients see the text of the error that it causes.
func (e *UnmetError) Error() string { return "metadata: a requirement does not hold" }

func requireNoTable(d *Document) error {
	if d == nil {
		return nil
	}
	return unmet("table already exists")
}

func decodeTableUUID(o jsontext.Fields) (func(*Document) error, error) {
	uuid, _, err := o.Str("uuid")
	return func(d *Document) error {
		if strings.EqualFold(uuid, d.uuid) {
			return nil
		}
		return unmet("UUID does not match: expected %s != %s", d.uuid, jsontext.Clip(uuid))
	}, err
}

// decodeRefSnapshotID reads a requirement that a ref points to a snapshot or, if the id is null or
// missing, does not exist. Older PyIceberg omits the null.
func decodeRefSnapshotID(o jsontext.Fields) (Requirement, error) {
	name, _, err := o.Str("ref")
	if err != nil {
		return Requirement{}, err
	}
	id, given, err := o.LongOrAbsent("snapshot-id")
	given = given && id != noSnapshot // older clients send -1 for a ref that must not exist
	return requireRef(refHead{name, optional{id, given}}), err
}

// requireRef returns the requirement that a ref points to a snapshot, or does not exist.
func requireRef(want refHead) Requirement {
	return Requirement{kind: assertRef, check: want.check, head: want}
}

func (want refHead) check(d *Document) error {
	r := d.ref(want.ref)
	switch {
	case r == nil && want.snapshot.given:
		return unmetBecause(want.unmet(r), "branch or tag %s is missing, expected %d", jsontext.Clip(want.ref),
			want.snapshot.value)
	case r == nil:
		return nil
	case !want.snapshot.given:
		return unmetBecause(want.unmet(r), "%s %s was created concurrently", r.kind(), jsontext.Clip(want.ref))
	case r.snapshotID != want.snapshot.value:
		return unmetBecause(want.unmet(r), "%s %s has changed: expected id %d != %d", r.kind(), jsontext.Clip(want.ref),
			want.snapshot.value, r.snapshotID)
	}
	return nil
}

// unmet returns the cause of the failure of want. r is the ref, or nil.
func (want refHead) unmet(r *ref) *UnmetError {
	cause := &UnmetError{Ref: want.ref}
	if expected := want.snapshot.value; want.snapshot.given {
		cause.Expected = &expected
	}
	if r != nil {
		found := r.snapshotID
		cause.Found = &found
	}
	return cause
}

func requireInt(o jsontext.Fields, key, what string, actual func(*Document) int) (func(*Document) error, error) {
	expected, _, err := o.Int(key)
	return func(d *Document) error {
		if found := actual(d); found != expected {
			return unmet("%s changed: expected id %d != %d", what, expected, found)
		}
		return nil
	}, err
}

// IsCreate reports whether requirements request a new table: the only requirement is assert-create.
// It returns KindIllegalArgument for assert-create together with another requirement.
func IsCreate(requirements []Requirement) (bool, error) {
	create, others := false, []string(nil)
	for _, r := range requirements {
		if r.kind == assertCreate {
			create = true
		} else {
			others = append(others, r.kind)
		}
	}
	if create && len(others) > 0 {
		return false, illegal("Invalid create requirements: %s", jsontext.Clip(strings.Join(others, ", ")))
	}
	return create, nil
}

// Check checks requirements, in order, against d, which is nil if there is no such table. It
// returns the error of the first requirement that fails. The error is KindCommitFailed if the
// requirement does not hold, and KindValidation if it is not for tables. Without a table, every
// requirement except assert-create is KindNoSuchTable.
func Check(d *Document, requirements []Requirement) error {
	for _, r := range requirements {
		if d == nil && r.kind != assertCreate {
			return moorage.Errorf(moorage.KindNoSuchTable, "Table does not exist")
		}
		if err := r.check(d); err != nil {
			return err
		}
	}
	return nil
}

// AssertsUUID reports whether one of requirements is assert-table-uuid.
func AssertsUUID(requirements []Requirement) bool {
	for _, r := range requirements {
		if r.kind == assertTableUUID {
			return true
		}
	}
	return false
}
