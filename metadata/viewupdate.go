package metadata

import (
	"iter"
	"maps"
	"slices"
	"strings"

	"moorage"
	"moorage/internal/jsontext"
	"moorage/metadata/schema"
)

// ViewUpdate is one change in a commit of a view. It is immutable, and safe for concurrent use.
type ViewUpdate struct {
	action   string
	names    []string
	sets     map[string]string // the properties that it sets
	location string            // that it sets; empty for other updates
	apply    func(b *viewBuilder) error
}

// Action returns the action of the update in lower case, "add-view-version".
func (u ViewUpdate) Action() string { return u.action }

// String returns the action of the update, and the names: "set-properties a,b".
func (u ViewUpdate) String() string { return updateText(u.action, u.names) }

// Names returns the sorted names of the properties that the update sets or removes. It returns nil
// for other updates. The caller must not write to the slice.
func (u ViewUpdate) Names() []string { return u.names }

// Properties ranges over the names and values of the properties that the update sets.
func (u ViewUpdate) Properties() iter.Seq2[string, string] { return maps.All(u.sets) }

// Location returns the location that the update sets. It is empty for other updates.
func (u ViewUpdate) Location() string { return u.location }

// viewUpdatesMax is the maximum number of updates in one commit of a view. Engines send four. Each
// addition is compared with all existing parts, and stays even beyond version.history.num-entries.
// So a request of many megabytes would take minutes, and each later commit would take a part of
// that time.
const viewUpdatesMax = 1000

func decodeViewUpdates(r jsontext.Reader) ([]ViewUpdate, error) {
	count := 0
	return decodeEach(r, "metadata update", func(o jsontext.Fields) (ViewUpdate, error) {
		if count++; count > viewUpdatesMax {
			return ViewUpdate{}, moorage.Errorf(moorage.KindBadRequest,
				"Cannot change a view by more than %d updates at once", viewUpdatesMax)
		}
		action, err := discriminator(o, "metadata update", "action")
		if err != nil {
			return ViewUpdate{}, err
		}
		update := ViewUpdate{action: action}
		err = update.decode(o)
		return update, err
	})
}

// decode reads the content of the update.
func (u *ViewUpdate) decode(o jsontext.Fields) (err error) {
	switch u.action {
	case "set-properties":
		u.sets, u.apply, err = decodeSetViewProperties(o)
		u.names = slices.Sorted(maps.Keys(u.sets))
	case "remove-properties":
		u.names, u.apply, err = decodeRemoveViewProperties(o)
	case "set-location":
		u.location, u.apply, err = decodeSetViewLocation(o)
	default:
		u.apply, err = decodeViewUpdate(o, u.action)
	}
	return err
}

func decodeViewUpdate(o jsontext.Fields, action string) (func(*viewBuilder) error, error) {
	switch action {
	case "assign-uuid":
		return decodeAssignViewUUID(o)
	case actionUpgrade:
		return decodeUpgradeView(o)
	case "add-schema":
		return decodeAddViewSchema(o)
	case "add-view-version":
		return decodeAddViewVersion(o)
	case "set-current-view-version":
		id, _, err := o.Int("view-version-id")
		return func(b *viewBuilder) error { return b.setCurrentVersion(id) }, err
	}
	return nil, moorage.Errorf(moorage.KindBadRequest, "Unrecognized view update: %s", jsontext.Clip(action))
}

func decodeAssignViewUUID(o jsontext.Fields) (func(*viewBuilder) error, error) {
	uuid, _, err := o.Str("uuid")
	return func(b *viewBuilder) error {
		if !strings.EqualFold(uuid, b.uuid) {
			return illegal("Cannot reassign uuid")
		}
		return nil
	}, err
}

func decodeUpgradeView(o jsontext.Fields) (func(*viewBuilder) error, error) {
	version, _, err := o.Int(keyFormatVersion)
	return func(*viewBuilder) error {
		switch {
		case version < viewFormatVersion:
			return illegal("Cannot downgrade v%d view to v%d", viewFormatVersion, version)
		case version > viewFormatVersion:
			return illegal("Unsupported format version: %d", version)
		}
		return nil
	}, err
}

func decodeAddViewSchema(o jsontext.Fields) (func(*viewBuilder) error, error) {
	v, err := o.Required("schema")
	if err != nil {
		return nil, err
	}
	s, err := schema.Parse(o.Bytes(v))
	return func(b *viewBuilder) error { return b.addSchema(s) }, err
}

func decodeSetViewLocation(o jsontext.Fields) (location string, apply func(*viewBuilder) error, err error) {
	location, _, err = o.Str(keyLocation)
	location = stripTrailingSlash(location)
	if err == nil && location == "" {
		err = illegal("Invalid view location: it must not be empty")
	}
	return location, func(b *viewBuilder) error {
		b.changed = b.changed || location != b.location
		b.location = location
		return nil
	}, err
}

func decodeSetViewProperties(o jsontext.Fields) (sets map[string]string, apply func(*viewBuilder) error, err error) {
	key := o.FirstOf("updates", "updated")
	c, err := valueOf(o, key)
	if err != nil {
		return nil, nil, err
	}
	sets, err = c.stringMap(key)
	return sets, func(b *viewBuilder) error {
		b.setProperties(sets)
		return nil
	}, err
}

func decodeRemoveViewProperties(o jsontext.Fields) (names []string, apply func(*viewBuilder) error, err error) {
	key := o.FirstOf("removals", "removed")
	c, err := valueOf(o, key)
	if err != nil {
		return nil, nil, err
	}
	removals, err := c.stringList(key)
	return slices.Sorted(slices.Values(removals)), func(b *viewBuilder) error {
		for _, name := range removals {
			delete(b.properties, name)
		}
		b.changed = b.changed || len(removals) > 0
		return nil
	}, err
}

func decodeAddViewVersion(o jsontext.Fields) (func(*viewBuilder) error, error) {
	value, err := o.Required("view-version")
	if err != nil {
		return nil, err
	}
	v, err := parseViewVersion(o.Bytes(value))
	return func(b *viewBuilder) error { return b.addVersion(v) }, err
}
