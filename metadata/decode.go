package metadata

import (
	"iter"
	"slices"
	"strings"

	"moorage"
	"moorage/internal/jsontext"
)

// Update is one change in a commit. It is immutable, and safe for concurrent use.
type Update struct {
	action string
	op     updateOp
}

// updateOp is the effect of an update on a table.
type updateOp interface {
	apply(b *builder) error
}

// Action returns the action of the update in lower case, "add-snapshot".
func (u Update) Action() string { return u.action }

// Names returns the names of the ref or of the properties that the update sets or removes. It
// returns nil for other updates.
func (u Update) Names() (names []string) {
	switch op := u.op.(type) {
	case setRef:
		return []string{op.ref.name}
	case removeRef:
		return []string{op.name}
	case setProperties:
		for _, p := range op.updates {
			names = append(names, p.name)
		}
	case removeProperties:
		return slices.Clone(op.removals)
	}
	return names
}

// String returns the action of the update, and the names: "set-properties a,b".
func (u Update) String() string { return updateText(u.action, u.Names()) }

func updateText(action string, names []string) string {
	if len(names) == 0 {
		return action
	}
	return action + " " + strings.Join(names, ",")
}

// Properties ranges over the names and values of the properties that the update sets.
func (u Update) Properties() iter.Seq2[string, string] {
	return func(yield func(name, value string) bool) {
		op, _ := u.op.(setProperties)
		for _, p := range op.updates {
			if !yield(p.name, p.value) {
				return
			}
		}
	}
}

// Location returns the location that the update sets. It is empty for other updates.
func (u Update) Location() string {
	op, _ := u.op.(setLocation)
	return op.location
}

func decodeUpdate(o jsontext.Fields) (Update, error) {
	action, err := discriminator(o, "metadata update", "action")
	if err != nil {
		return Update{}, err
	}
	op, err := decodeUpdateOp(o, action)
	return Update{action, op}, err
}

func decodeUpdateOp(o jsontext.Fields, action string) (updateOp, error) {
	switch action {
	case "assign-uuid":
		return decodeAssignUUID(o)
	case actionUpgrade:
		return decodeUpgrade(o)
	case "add-schema":
		return decodeAddSchema(o)
	case "set-current-schema":
		return decodeSetCurrentSchema(o)
	case "add-spec":
		return decodeAddSpec(o)
	case "set-default-spec":
		return decodeSetDefaultSpec(o)
	case "add-sort-order":
		return decodeAddSortOrder(o)
	case "set-default-sort-order":
		return decodeSetDefaultSortOrder(o)
	case "add-snapshot":
		return decodeAddSnapshot(o)
	case "set-snapshot-ref":
		return decodeSetRef(o)
	case "remove-snapshots":
		return decodeRemoveSnapshots(o)
	case "remove-snapshot-ref":
		return decodeRemoveRef(o)
	case "set-location":
		return decodeSetLocation(o)
	case "set-properties":
		return decodeSetProperties(o)
	case "remove-properties":
		return decodeRemoveProperties(o)
	case "set-statistics":
		return decodeSetStatistics(o, statistics, "statistics", readStatistics)
	case "remove-statistics":
		return decodeRemoveStatistics(o, statistics)
	case "set-partition-statistics":
		return decodeSetStatistics(o, partitionStatistics, "partition-statistics", readPartitionStatistics)
	case "remove-partition-statistics":
		return decodeRemoveStatistics(o, partitionStatistics)
	case "remove-partition-specs":
		return decodeRemoveSpecs(o)
	case "remove-schemas":
		return decodeRemoveSchemas(o)
	case "add-encryption-key":
		return decodeAddEncryptionKey(o)
	case "remove-encryption-key":
		return decodeRemoveEncryptionKey(o)
	}
	return nil, moorage.Errorf(moorage.KindBadRequest, "Unrecognized table update: %s", jsontext.Clip(action))
}

// decodeEach decodes each object of the array that r reads, in order.
func decodeEach[T any](r jsontext.Reader, what string, decode func(jsontext.Fields) (T, error)) ([]T, error) {
	all := []T{}
	c := cursor{r}
	err := c.Array(func() error {
		o, err := c.Fields(what)
		if err != nil {
			return err
		}
		one, err := decode(o)
		all = append(all, one)
		return err
	})
	if err == nil {
		err = c.End()
	}
	if err != nil {
		return nil, err
	}
	return all, nil
}

// discriminator returns, in lower case, the member that selects the variant of an object. In
// errors, what describes the object.
func discriminator(o jsontext.Fields, what, key string) (string, error) {
	if _, ok := o.Present(key); !ok {
		return "", moorage.Errorf(moorage.KindBadRequest, "Cannot parse %s. Missing field: %s", what, key)
	}
	text, _, err := o.Str(key)
	return strings.ToLower(text), err
}

// valueOf returns a cursor positioned before the value of a member. The member is required and must
// not be null.
func valueOf(o jsontext.Fields, key string) (*cursor, error) {
	at, err := o.Required(key)
	return reread(o.Bytes(at)), err
}
