package metadata

import (
	"fmt"
	"iter"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"moorage"
	"moorage/internal/jsontext"
	"moorage/metadata/schema"
)

// Properties of a view that affect its commits.
const (
	propVersionHistorySize = "version.history.num-entries"
	propDropDialectAllowed = "replace.drop-dialect.allowed"
	versionHistoryDefault  = 10
)

// CreateView is a request for a new view.
type CreateView struct {
	Location   string // no trailing slash
	Schema     []byte // JSON
	Version    []byte // JSON; its ids are ignored
	Properties map[string]string
}

// viewSkeleton is the document from which a new view is built.
const viewSkeleton = `{"view-uuid":"","format-version":1,"location":"","properties":{},"schemas":[],` +
	`"current-version-id":0,"versions":[],"version-log":[]}`

// NewView returns the document of a new view. Its version gets the id 1, and its schema the id 0.
// The summary and the time of the version stay as the client sent them. Errors are KindBadRequest
// for malformed input, and KindIllegalArgument or KindValidation for input that cannot be a view.
// Source: REST specification, createView; Java BaseMetastoreViewCatalog.
func NewView(request CreateView, env Env) (*ViewDocument, error) {
	s, err := schema.Parse(request.Schema)
	if err != nil {
		return nil, err
	}
	v, err := parseViewVersion(request.Version)
	if err != nil {
		return nil, err
	}
	if len(v.queries) == 0 {
		return nil, illegal("Cannot create view without specifying a query")
	}
	b := newViewBuilder(&ViewDocument{body: bodyOf([]byte(viewSkeleton))}, env)
	b.uuid, b.location = env.NewUUID(), stripTrailingSlash(request.Location)
	b.setProperties(request.Properties)
	if err := b.addSchema(s); err != nil {
		return nil, err
	}
	v.id, v.schemaID = 1, lastAddedID
	if err := b.addVersion(v); err != nil {
		return nil, err
	}
	if err := b.setCurrentVersion(lastAddedID); err != nil {
		return nil, err
	}
	d, err := b.build()
	if err != nil {
		return nil, err
	}
	return ParseView(d.raw) // a new view is checked completely
}

// Apply returns the view after updates, in order, or d itself if they change nothing. Bytes that
// the updates do not touch stay as they are. d does not change.
//
// Errors: KindIllegalArgument and KindValidation for updates that cannot be applied to this view.
// Source: Java ViewMetadata.Builder.
func (d *ViewDocument) Apply(updates []ViewUpdate, env Env) (*ViewDocument, error) {
	b := newViewBuilder(d, env)
	for _, u := range updates {
		if err := u.apply(b); err != nil {
			return nil, err
		}
	}
	if !b.changed {
		return d, nil
	}
	return b.build()
}

// viewBuilder applies the updates of one request to a view. It is not safe for concurrent use.
type viewBuilder struct {
	base    *ViewDocument
	env     Env
	changed bool

	uuid             string
	location         string
	currentVersionID int
	properties       map[string]string
	edits            [viewArrayCount]listEdit // the changes of the arrays

	lastSchema, lastVersion optional        // the ids of the request's last additions
	addedVersions           map[int64]int64 // the times of the added versions, by id
	parsedSchemas           once[*schema.Schema]
	parsedVersions          once[*viewVersion]
}

func newViewBuilder(base *ViewDocument, env Env) *viewBuilder {
	b := &viewBuilder{
		base: base, env: env,
		uuid: base.uuid, location: base.location, currentVersionID: base.currentVersionID,
		properties: make(map[string]string), addedVersions: make(map[int64]int64),
	}
	maps.Copy(b.properties, base.properties)
	for a := range b.edits {
		b.edits[a].base = &base.arrays[a]
	}
	return b
}

// elements ranges over the ids and JSON of an array's present elements.
func (b *viewBuilder) elements(a arrayName) iter.Seq2[int64, []byte] {
	return b.edits[a].elements(b.base.value(viewArrayKeys[a]))
}

func (b *viewBuilder) setProperties(updates map[string]string) {
	maps.Copy(b.properties, updates)
	b.changed = b.changed || len(updates) > 0
}

// addSchema adds a schema with the next free id, unless an equal schema exists. In both cases, the
// schema counts as the last addition. In the Java reference, an equal schema does not count, so a
// retried commit fails there.
func (b *viewBuilder) addSchema(s *schema.Schema) error {
	if err := s.Check(formatVersionMax); err != nil {
		return err
	}
	id := 0
	for oldID, raw := range b.elements(viewSchemas) {
		old, err := b.parsedSchemas.parse(raw, schema.Parse)
		if err != nil {
			return err
		}
		if old.SameAs(s) {
			b.lastSchema = optional{oldID, true}
			return nil
		}
		id = max(id, int(oldID)+1)
	}
	if id > math.MaxInt32 {
		return illegal("Cannot add a schema above the highest possible id: %d", math.MaxInt32)
	}
	b.edits[viewSchemas].add(int64(id), s.WithID(id))
	b.lastSchema = optional{int64(id), true}
	b.changed = true
	return nil
}

// addVersion adds a version, unless an equal version exists. The version keeps the id in the
// request if that id is above all others. Otherwise it gets the next id.
func (b *viewBuilder) addVersion(sent *viewVersion) error {
	v := *sent
	if v.schemaID == lastAddedID {
		if !b.lastSchema.given {
			return moorage.Errorf(moorage.KindValidation,
				"Cannot set last added schema: no schema has been added")
		}
		v.schemaID = int(b.lastSchema.value)
	}
	id := v.id
	for oldID, raw := range b.elements(viewVersions) {
		old, err := b.parsedVersions.parse(raw, parseViewVersion)
		if err != nil {
			return err
		}
		if old.sameAs(&v) {
			b.lastVersion = optional{oldID, true}
			return nil
		}
		id = max(id, int(oldID)+1)
	}
	if id > math.MaxInt32 {
		return illegal("Cannot add a version above the highest possible id: %d", math.MaxInt32)
	}
	if b.element(viewSchemas, v.schemaID) == nil {
		return illegal("Cannot add version with unknown schema: %d", v.schemaID)
	}
	if err := v.check(); err != nil {
		return err
	}
	raw, err := v.with(id, v.schemaID)
	if err != nil {
		return err
	}
	b.edits[viewVersions].add(int64(id), raw)
	b.addedVersions[int64(id)] = v.timestampMS
	b.lastVersion = optional{int64(id), true}
	b.changed = true
	return nil
}

// element returns the JSON of the element with an id, or nil if there is no such element.
func (b *viewBuilder) element(a arrayName, id int) []byte {
	for other, raw := range b.elements(a) {
		if other == int64(id) {
			return raw
		}
	}
	return nil
}

// setCurrentVersion makes a version the current version. If the request added the version, its log
// entry has the version's own time. Otherwise it has the server's time.
func (b *viewBuilder) setCurrentVersion(id int) error {
	if id == lastAddedID {
		if !b.lastVersion.given {
			return moorage.Errorf(moorage.KindValidation,
				"Cannot set last version id: no current version id has been set")
		}
		id = int(b.lastVersion.value)
	}
	if id == b.currentVersionID {
		return nil
	}
	if b.element(viewVersions, id) == nil {
		return illegal("Cannot set current version to unknown version: %d", id)
	}
	timestampMS, added := b.addedVersions[int64(id)]
	if !added {
		timestampMS = b.env.Now.UnixMilli()
	}
	b.currentVersionID = id
	b.edits[viewLog].added = []newElement{{int64(id),
		fmt.Appendf(nil, `{"timestamp-ms":%d,"version-id":%d}`, timestampMS, id)}}
	b.changed = true
	return nil
}

// build returns the view. Source: Java ViewMetadata.Builder.build.
func (b *viewBuilder) build() (*ViewDocument, error) {
	if b.location == "" {
		return nil, illegal("Invalid location: null")
	}
	if err := b.checkDialects(); err != nil {
		return nil, err
	}
	if err := b.trim(); err != nil {
		return nil, err
	}
	next := &ViewDocument{
		arrays: b.base.arrays, uuid: b.uuid, location: b.location, currentVersionID: b.currentVersionID,
		properties: b.properties,
	}
	var err error
	next.body, err = b.base.splice(b.changes(), next.arrays[:])
	return next, err
}

// checkDialects refuses a new current version that lacks a query in a dialect of the old version.
// Engines of that dialect could no longer read the view.
func (b *viewBuilder) checkDialects() error {
	previous, err := b.base.version(b.base.currentVersionID)
	if err != nil || previous == nil || strings.EqualFold(b.properties[propDropDialectAllowed], "true") {
		return err
	}
	current, err := b.parsedVersions.parse(b.element(viewVersions, b.currentVersionID), parseViewVersion)
	if err != nil {
		return err
	}
	before, after := previous.dialects(), current.dialects()
	for _, dialect := range before {
		if !slices.Contains(after, dialect) {
			return illegal("Cannot replace view due to loss of view dialects (%s=false):\n"+
				"Previous dialects: [%s]\nNew dialects: [%s]", propDropDialectAllowed,
				jsontext.Clip(strings.Join(before, ", ")), jsontext.Clip(strings.Join(after, ", ")))
		}
	}
	return nil
}

// trim drops the oldest versions beyond version.history.num-entries. It never drops the current
// version, or versions added by this request. The log then begins after the last entry whose
// version was dropped.
func (b *viewBuilder) trim() error {
	keep := versionHistoryDefault
	if text, ok := b.properties[propVersionHistorySize]; ok {
		n, err := strconv.ParseInt(text, 10, 32)
		if err != nil {
			return illegal("Cannot parse property %s: %s", propVersionHistorySize, jsontext.Clip(text))
		}
		if n <= 0 {
			return illegal("%s must be positive but was %d", propVersionHistorySize, n)
		}
		keep = int(n)
	}
	kept := map[int64]bool{int64(b.currentVersionID): true}
	for id := range b.addedVersions {
		kept[id] = true
	}
	keep = max(keep, len(kept))
	if b.edits[viewVersions].len() <= keep {
		return nil
	}
	newest := make([]int64, 0, b.edits[viewVersions].len())
	for id := range b.elements(viewVersions) {
		if id != int64(b.currentVersionID) {
			newest = append(newest, id)
		}
	}
	slices.Sort(newest)
	kept = map[int64]bool{int64(b.currentVersionID): true}
	for _, id := range newest[len(newest)-(keep-1):] {
		kept[id] = true
	}
	b.edits[viewVersions].drop(func(id int64) bool { return !kept[id] })
	for i := b.base.arrays[viewLog].len() - 1; i >= 0; i-- { // a new entry is for the current version, which stays
		if !kept[b.base.arrays[viewLog].at(i).id] {
			for gone := range i + 1 {
				b.edits[viewLog].dropAt(gone)
			}
			break
		}
	}
	return nil
}

// changes returns the differences between the new document and the base.
func (b *viewBuilder) changes() []memberEdit {
	var changes []memberEdit
	set := func(changed bool, key string, value []byte) {
		if changed {
			changes = append(changes, memberEdit{key: key, value: value})
		}
	}
	base := b.base
	set(b.uuid != base.uuid, keyViewUUID, jsontext.AppendQuoted(nil, b.uuid))
	set(b.location != base.location, keyLocation, jsontext.AppendQuoted(nil, b.location))
	set(b.currentVersionID != base.currentVersionID, keyCurrentVersionID,
		strconv.AppendInt(nil, int64(b.currentVersionID), 10))
	set(!maps.Equal(b.properties, base.properties), keyProperties,
		propertiesJSON(base.value(keyProperties), b.properties))
	for a := range b.edits {
		if edit := &b.edits[a]; edit.changes() {
			changes = append(changes, memberEdit{key: viewArrayKeys[a], list: edit, array: arrayName(a)})
		}
	}
	return changes
}
