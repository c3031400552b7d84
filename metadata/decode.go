package metadata

import (
	"strconv"
	"strings"

	"moorage"
	"moorage/internal/jsontext"
)

// Update is one change that a commit asks for. It is immutable, and safe for concurrent use.
type Update struct {
	action string
	op     operation
}

// operation is what an update does to a table.
type operation interface {
	apply(b *builder) error
}

// Action returns the action of the update in lower case, "add-snapshot".
func (u Update) Action() string { return u.action }

func decodeUpdate(o jsonObject) (Update, error) {
	action, err := o.discriminator("metadata update", "action")
	if err != nil {
		return Update{}, err
	}
	op, err := decodeOperation(o, action)
	return Update{action, op}, err
}

func decodeOperation(o jsonObject, action string) (operation, error) {
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

// decodeEach returns what decode makes of the objects of the array that r reads, in their order.
func decodeEach[T any](r jsontext.Reader, what string, decode func(jsonObject) (T, error)) ([]T, error) {
	all := []T{}
	c := cursor{r}
	err := c.Array(func() error {
		o, err := c.objectHere(what)
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

// discriminator returns the member that says what an object is, in lower case.
func (o jsonObject) discriminator(what, key string) (string, error) {
	if _, ok := o.present(key); !ok {
		return "", moorage.Errorf(moorage.KindBadRequest, "Cannot parse %s. Missing field: %s", what, key)
	}
	text, _, err := o.str(key)
	return strings.ToLower(text), err
}

// bytes returns the value of a member.
func (o jsonObject) bytes(v jsonValue) []byte { return o.raw[v.at.start:v.at.end] }

// long returns a member that must be an integer of 64 bits.
func (o jsonObject) long(key string) (int64, error) {
	v, ok := o.find(key)
	if !ok {
		return 0, moorage.Errorf(moorage.KindBadRequest, "Cannot parse missing long: %s", key)
	}
	n, err := strconv.ParseInt(o.text(v), 10, 64)
	if err != nil {
		return 0, moorage.Errorf(moorage.KindBadRequest,
			"Cannot parse to a long value: %s: %s", key, jsontext.Clip(o.text(v)))
	}
	return n, nil
}

// longOrAbsent returns a member that is an integer of 64 bits; false if it is null or missing.
func (o jsonObject) longOrAbsent(key string) (int64, bool, error) {
	if _, ok := o.present(key); !ok {
		return 0, false, nil
	}
	n, err := o.long(key)
	return n, true, err
}

// cursor returns a cursor on the value of a member, which must be there and not null.
func (o jsonObject) cursor(key string) (*cursor, error) {
	v, err := o.required(key)
	return reread(o.bytes(v)), err
}

// firstOf returns the first of keys that the object has, or else the first of all.
func (o jsonObject) firstOf(keys ...string) string {
	for _, key := range keys {
		if _, ok := o.find(key); ok {
			return key
		}
	}
	return keys[0]
}
