package metadata

import (
	"encoding/hex"
	"strings"

	"moorage"
	"moorage/internal/jsontext"
)

const actionUpgrade = "upgrade-format-version"

// assignUUID gives a new table its uuid. An existing table keeps its uuid, which identifies it for
// clients and the catalog.
type assignUUID struct{ uuid string }

func decodeAssignUUID(o jsontext.Fields) (updateOp, error) {
	uuid, _, err := o.Str("uuid")
	if err != nil {
		return nil, err
	}
	if !isUUID(uuid) {
		return nil, illegal("Invalid UUID: %s", jsontext.Clip(uuid))
	}
	return assignUUID{uuid}, nil
}

// isUUID reports whether text is a UUID in the form of RFC 9562. Some readers accept no other form.
func isUUID(text string) bool {
	digits := strings.ReplaceAll(text, "-", "")
	if len(text) != 36 || len(digits) != 32 {
		return false
	}
	for _, i := range []int{8, 13, 18, 23} {
		if text[i] != '-' {
			return false
		}
	}
	_, err := hex.DecodeString(digits)
	return err == nil
}

func (u assignUUID) apply(b *builder) error {
	switch {
	case strings.EqualFold(u.uuid, b.uuid):
		return nil
	case b.uuid != "" && !b.creating:
		return illegal("Cannot reassign uuid: %s != %s", b.uuid, u.uuid)
	}
	b.uuid = u.uuid
	b.changed = true
	return nil
}

type upgradeFormatVersion struct{ version int }

func decodeUpgrade(o jsontext.Fields) (updateOp, error) {
	version, _, err := o.Int(keyFormatVersion)
	return upgradeFormatVersion{version}, err
}

func (u upgradeFormatVersion) apply(b *builder) error {
	switch {
	case u.version > formatVersionMax:
		return illegal("Cannot upgrade table to unsupported format version: v%d (supported: v%d)",
			u.version, formatVersionMax)
	case u.version < b.formatVersion:
		return illegal("Cannot downgrade v%d table to v%d", b.formatVersion, u.version)
	case u.version == b.formatVersion:
		return nil
	}
	b.formatVersion = u.version
	b.changed = true
	return nil
}

type setLocation struct{ location string }

func decodeSetLocation(o jsontext.Fields) (updateOp, error) {
	location, _, err := o.Str(keyLocation)
	if err != nil {
		return nil, err
	}
	location = stripTrailingSlash(location)
	if location == "" {
		return nil, illegal("Invalid table location: it must not be empty")
	}
	return setLocation{location}, nil
}

// stripTrailingSlash removes slashes at the end of a location, but not the slashes of its scheme.
func stripTrailingSlash(location string) string {
	for strings.HasSuffix(location, "/") && !strings.HasSuffix(location, "://") {
		location = location[:len(location)-1]
	}
	return location
}

func (u setLocation) apply(b *builder) error {
	if u.location != b.location {
		b.location = u.location
		b.changed = true
	}
	return nil
}

type setProperties struct{ updates []property }

type property struct{ name, value string }

func decodeSetProperties(o jsontext.Fields) (updateOp, error) {
	key := o.FirstOf("updates", "updated")
	c, err := valueOf(o, key)
	if err != nil {
		return nil, err
	}
	var updates []property
	err = c.eachString(key, func(name, value string) { updates = append(updates, property{name, value}) })
	return setProperties{updates}, err
}

// apply counts as a change even if every property already has its value, as in the Java reference.
func (u setProperties) apply(b *builder) error {
	if len(u.updates) == 0 {
		return nil
	}
	for _, p := range u.updates {
		if err := b.guardProperty(p.name, p.value, true); err != nil {
			return err
		}
		b.editProps()[p.name] = p.value
	}
	b.changed = true
	return nil
}

type removeProperties struct{ removals []string }

func decodeRemoveProperties(o jsontext.Fields) (updateOp, error) {
	key := o.FirstOf("removals", "removed")
	c, err := valueOf(o, key)
	if err != nil {
		return nil, err
	}
	removals, err := c.stringList(key)
	return removeProperties{removals}, err
}

func (u removeProperties) apply(b *builder) error {
	if len(u.removals) == 0 {
		return nil
	}
	for _, key := range u.removals {
		if err := b.guardProperty(key, "", false); err != nil {
			return err
		}
		delete(b.editProps(), key)
	}
	b.changed = true
	return nil
}

// propEncryptionKeyID is the property with the id of the key that encrypts a table's keys.
const propEncryptionKeyID = "encryption.key-id"

// guardProperty refuses a change of an encrypted table's propEncryptionKeyID, because it would make
// the table's files unreadable. Source: Iceberg documentation, "Table encryption", catalog security
// requirements.
func (b *builder) guardProperty(key, value string, given bool) error {
	if key == PropAppendRebase && given {
		return CheckAppendRebase(value)
	}
	if key != propEncryptionKeyID {
		return nil
	}
	old, encrypted := b.base.props[propEncryptionKeyID]
	if !encrypted || given && value == old {
		return nil
	}
	return illegal("Cannot change property %s of an encrypted table", propEncryptionKeyID)
}

type addEncryptionKey struct {
	id  string
	raw []byte
}

func decodeAddEncryptionKey(o jsontext.Fields) (updateOp, error) {
	c, err := valueOf(o, "encryption-key")
	if err != nil {
		return nil, err
	}
	id, err := readEncryptionKey(c)
	return addEncryptionKey{id, c.Raw()}, err
}

// apply keeps an existing key with the same id. Keys need format version 3. The Java reference
// would also add a key in a lower version, but then some readers cannot load the table.
func (u addEncryptionKey) apply(b *builder) error {
	if b.formatVersion < 3 {
		return illegal("Cannot add an encryption key to a v%d table, it needs v3", b.formatVersion)
	}
	for id := range b.encryptionKeyIDs() {
		if id == u.id {
			return nil
		}
	}
	b.edit(encryptionKeys).add(0, u.raw)
	b.changed = true
	return nil
}

type removeEncryptionKey struct{ id string }

func decodeRemoveEncryptionKey(o jsontext.Fields) (updateOp, error) {
	id, _, err := o.Str("key-id")
	return removeEncryptionKey{id}, err
}

func (u removeEncryptionKey) apply(b *builder) error {
	for id, drop := range b.encryptionKeyIDs() {
		if id == u.id {
			drop()
			b.changed = true
			return nil
		}
	}
	return nil
}

// encryptionKeyIDs ranges over the ids of the keys, each with a function that removes the key.
func (b *builder) encryptionKeyIDs() func(yield func(string, func()) bool) {
	edit := b.edit(encryptionKeys)
	idOf := func(raw []byte) string {
		id, _ := readEncryptionKey(reread(raw))
		return id
	}
	return func(yield func(string, func()) bool) {
		for i, e := range edit.remaining() {
			if !yield(idOf(b.base.elementRaw(encryptionKeys, e)), func() { edit.dropAt(i) }) {
				return
			}
		}
		for i, added := range edit.added {
			if !yield(idOf(added.raw), func() {
				edit.added = append(edit.added[:i:i], edit.added[i+1:]...)
			}) {
				return
			}
		}
	}
}

type setStatistics struct {
	array      arrayName
	snapshotID int64
	raw        []byte
}

func decodeSetStatistics(
	o jsontext.Fields, array arrayName, key string, read func(*cursor) (int64, error),
) (updateOp, error) {
	c, err := valueOf(o, key)
	if err != nil {
		return nil, err
	}
	id, err := read(c)
	return setStatistics{array, id, c.Raw()}, err
}

// apply replaces the file of the same snapshot. It does not check that the snapshot exists.
func (u setStatistics) apply(b *builder) error {
	edit := b.edit(u.array)
	edit.drop(func(id int64) bool { return id == u.snapshotID })
	edit.add(u.snapshotID, u.raw)
	b.changed = true
	return nil
}

type removeStatistics struct {
	array      arrayName
	snapshotID int64
}

func decodeRemoveStatistics(o jsontext.Fields, array arrayName) (updateOp, error) {
	id, err := o.Long("snapshot-id")
	return removeStatistics{array, id}, err
}

func (u removeStatistics) apply(b *builder) error {
	if b.edit(u.array).drop(func(id int64) bool { return id == u.snapshotID }) > 0 {
		b.changed = true
	}
	return nil
}

// checkReady refuses a snapshot if the table lacks a part that snapshots need.
func (b *builder) checkReady() error {
	for _, part := range []struct {
		array arrayName
		what  string
	}{{schemas, "schema"}, {partitionSpecs, "partition spec"}, {sortOrders, "sort order"}} {
		if b.edits[part.array].len() == 0 {
			return moorage.Errorf(moorage.KindValidation,
				"Attempting to add a snapshot before a %s is added", part.what)
		}
	}
	return nil
}
