package metadata

import (
	"bytes"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"moorage"
	"moorage/internal/jsontext"
)

// Properties of a view that rule its commits.
const (
	propVersionHistorySize = "version.history.num-entries"
	propDropDialectAllowed = "replace.drop-dialect.allowed"
	versionHistoryDefault  = 10
)

// CreateView is a request for a new view.
type CreateView struct {
	Location   string // no trailing slash
	Schema     []byte // JSON
	Version    []byte // JSON; its ids do not matter
	Properties map[string]string
}

// viewSkeleton is the document that a new view grows from.
const viewSkeleton = `{"view-uuid":"","format-version":1,"location":"","properties":{},"schemas":[],` +
	`"current-version-id":0,"versions":[],"version-log":[]}`

// NewView returns the document of a new view. The version becomes number 1 and gets the schema,
// number
// 0. Its summary and time stay as sent. Errors are KindBadRequest for malformed input, and
// KindIllegalArgument or KindValidation for input that cannot be a view. Source: REST
// specification, createView; Java BaseMetastoreViewCatalog.
func NewView(request CreateView, env Env) (*ViewDocument, error) {
	s, err := parseSchema(request.Schema)
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
	members, err := parseObject([]byte(viewSkeleton), "view metadata")
	if err != nil {
		return nil, err
	}
	b := newViewBuilder(&ViewDocument{raw: members.raw, members: members}, env)
	b.uuid, b.location = env.NewUUID(), stripTrailingSlash(request.Location)
	b.setProperties(request.Properties)
	if err := b.addSchema(s); err != nil {
		return nil, err
	}
	if err := b.addVersion(v.with(1, lastAddedID)); err != nil {
		return nil, err
	}
	if err := b.setCurrentVersion(lastAddedID); err != nil {
		return nil, err
	}
	return b.build()
}

// Apply returns the view after updates, in order, or d itself if they change nothing. Bytes that
// the updates do not touch stay as they are. d is left alone.
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

// viewBuilder is a view in the making. It is used by one goroutine.
type viewBuilder struct {
	base    *ViewDocument
	env     Env
	changed bool

	uuid             string
	location         string
	currentVersionID int
	properties       map[string]string
	schemas          []*schema
	versions         []*viewVersion
	log              []viewLogEntry

	lastSchemaID  *int
	lastVersionID *int
	addedVersions map[int]bool // by id
	addedSchemas  map[int]bool // by id
	entry         *viewLogEntry
}

func newViewBuilder(base *ViewDocument, env Env) *viewBuilder {
	b := &viewBuilder{
		base: base, env: env,
		uuid: base.uuid, location: base.location, currentVersionID: base.currentVersionID,
		properties: make(map[string]string),
		schemas:    slices.Clone(base.schemas), versions: slices.Clone(base.versions), log: slices.Clone(base.log),
		addedVersions: make(map[int]bool), addedSchemas: make(map[int]bool),
	}
	maps.Copy(b.properties, base.properties)
	return b
}

func (b *viewBuilder) setProperties(updates map[string]string) {
	maps.Copy(b.properties, updates)
	b.changed = b.changed || len(updates) > 0
}

// addSchema adds a schema under the next free id, unless there is an equal one. Either way the
// schema counts as the one that was added last. The reference does not count an equal one, which
// makes a commit that is sent twice fail the second time.
func (b *viewBuilder) addSchema(s *schema) error {
	if err := s.check(formatVersionMax); err != nil {
		return err
	}
	id := 0
	for _, existing := range b.schemas {
		if existing.sameAs(s) {
			b.lastSchemaID = &existing.id
			return nil
		}
		id = max(id, existing.id+1)
	}
	if id > math.MaxInt32 {
		return illegal("Cannot add a schema above the highest possible id: %d", math.MaxInt32)
	}
	added := *s
	added.id = id
	b.schemas = append(b.schemas, &added)
	b.addedSchemas[id] = true
	b.lastSchemaID = &added.id
	b.changed = true
	return nil
}

// addVersion adds a version, unless there is an equal one. It keeps the id that it came with if
// that is above all others, else it gets the next.
func (b *viewBuilder) addVersion(v *viewVersion) error {
	if v.schemaID == lastAddedID {
		if b.lastSchemaID == nil {
			return moorage.Errorf(moorage.KindValidation,
				"Cannot set last added schema: no schema has been added")
		}
		v = v.with(v.id, *b.lastSchemaID)
	}
	id := v.id
	for _, existing := range b.versions {
		if existing.sameAs(v) {
			b.lastVersionID = &existing.id
			return nil
		}
		id = max(id, existing.id+1)
	}
	if id > math.MaxInt32 {
		return illegal("Cannot add a version above the highest possible id: %d", math.MaxInt32)
	}
	if !slices.ContainsFunc(b.schemas, func(s *schema) bool { return s.id == v.schemaID }) {
		return illegal("Cannot add version with unknown schema: %d", v.schemaID)
	}
	if err := v.check(); err != nil {
		return err
	}
	v = v.with(id, v.schemaID)
	b.versions = append(b.versions, v)
	b.addedVersions[id] = true
	b.lastVersionID = &v.id
	b.changed = true
	return nil
}

func (b *viewBuilder) version(id int) *viewVersion {
	for _, v := range b.versions {
		if v.id == id {
			return v
		}
	}
	return nil
}

// setCurrentVersion makes a version the one that readers get. A version that was added in the same
// request is in the log with its own time, another with the server's.
func (b *viewBuilder) setCurrentVersion(id int) error {
	if id == lastAddedID {
		if b.lastVersionID == nil {
			return moorage.Errorf(moorage.KindValidation,
				"Cannot set last version id: no current version id has been set")
		}
		id = *b.lastVersionID
	}
	if id == b.currentVersionID {
		return nil
	}
	v := b.version(id)
	if v == nil {
		return illegal("Cannot set current version to unknown version: %d", id)
	}
	timestampMS := b.env.Now.UnixMilli()
	if b.addedVersions[id] {
		timestampMS = v.timestampMS
	}
	b.currentVersionID = id
	b.entry = &viewLogEntry{id, fmt.Appendf(nil, `{"timestamp-ms":%d,"version-id":%d}`, timestampMS, id)}
	b.changed = true
	return nil
}

// build returns the view. Source: Java ViewMetadata.Builder.build.
func (b *viewBuilder) build() (*ViewDocument, error) {
	if b.location == "" {
		return nil, illegal("Invalid location: null")
	}
	if b.entry != nil {
		b.log = append(b.log, *b.entry)
	}
	if err := b.checkDialects(); err != nil {
		return nil, err
	}
	if err := b.trim(); err != nil {
		return nil, err
	}
	return ParseView(applyPatches(b.base.raw, b.patches()))
}

// checkDialects refuses to lose a query that engines of a dialect read the view by.
func (b *viewBuilder) checkDialects() error {
	previous := b.base.version(b.base.currentVersionID)
	if previous == nil || strings.EqualFold(b.properties[propDropDialectAllowed], "true") {
		return nil
	}
	before, after := previous.dialects(), b.version(b.currentVersionID).dialects()
	for _, dialect := range before {
		if !slices.Contains(after, dialect) {
			return illegal("Cannot replace view due to loss of view dialects (%s=false):\n"+
				"Previous dialects: [%s]\nNew dialects: [%s]", propDropDialectAllowed,
				jsontext.Clip(strings.Join(before, ", ")), jsontext.Clip(strings.Join(after, ", ")))
		}
	}
	return nil
}

// trim drops the oldest versions beyond version.history.num-entries. It keeps the current version
// and those that were added now. The log then begins after the last entry whose version is gone.
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
	b.addedVersions[b.currentVersionID] = true
	keep = max(keep, len(b.addedVersions))
	if len(b.versions) <= keep {
		return nil
	}
	newest := make([]int, 0, len(b.versions))
	for _, v := range b.versions {
		if v.id != b.currentVersionID {
			newest = append(newest, v.id)
		}
	}
	slices.Sort(newest)
	kept := map[int]bool{b.currentVersionID: true}
	for _, id := range newest[len(newest)-(keep-1):] {
		kept[id] = true
	}
	b.versions = slices.DeleteFunc(b.versions, func(v *viewVersion) bool { return !kept[v.id] })
	for i := len(b.log) - 1; i >= 0; i-- {
		if !kept[b.log[i].versionID] {
			b.log = b.log[i+1:]
			break
		}
	}
	return nil
}

// patches are the members of the base that change.
func (b *viewBuilder) patches() []patch {
	var patches []patch
	set := func(changed bool, key string, value []byte) {
		if changed {
			patches = append(patches, b.base.members.setMember(key, string(value)))
		}
	}
	base := b.base
	set(b.uuid != base.uuid, keyViewUUID, jsontext.AppendQuoted(nil, b.uuid))
	set(b.location != base.location, keyLocation, jsontext.AppendQuoted(nil, b.location))
	set(b.currentVersionID != base.currentVersionID, keyCurrentVersionID,
		strconv.AppendInt(nil, int64(b.currentVersionID), 10))
	set(!maps.Equal(b.properties, base.properties), keyProperties, b.propertiesJSON())
	set(len(b.addedSchemas) > 0, schemas.key(), joinArray(b.schemas, func(s *schema) []byte {
		if b.addedSchemas[s.id] {
			return s.withID(s.id)
		}
		return s.raw
	}))
	sameVersions := slices.Equal(b.versions, base.versions)
	set(!sameVersions, keyVersions, joinArray(b.versions, func(v *viewVersion) []byte { return v.json() }))
	set(b.entry != nil || !sameVersions, keyVersionLog, joinArray(b.log, func(e viewLogEntry) []byte { return e.raw }))
	return patches
}

// propertiesJSON writes the properties. Those that stay keep their place, and their values the
// spelling.
func (b *viewBuilder) propertiesJSON() []byte {
	var members [][]byte
	if v, ok := b.base.members.find(keyProperties); ok {
		old, err := parseObject(b.base.members.bytes(v), keyProperties)
		if err != nil {
			old = jsonObject{} // not reached: ParseView has read it
		}
		for _, m := range old.members {
			value, stays := b.properties[m.key]
			switch {
			case stays && value == b.base.properties[m.key]:
				members = append(members, slices.Concat(jsontext.AppendQuoted(nil, m.key), []byte{':'},
					old.bytes(m.value)))
			case stays:
				members = append(members, propertyJSON(m.key, value))
			}
		}
	}
	for _, key := range slices.Sorted(maps.Keys(b.properties)) {
		if _, was := b.base.properties[key]; !was {
			members = append(members, propertyJSON(key, b.properties[key]))
		}
	}
	return slices.Concat([]byte{'{'}, bytes.Join(members, []byte{','}), []byte{'}'})
}

func propertyJSON(key, value string) []byte {
	return jsontext.AppendQuoted(append(jsontext.AppendQuoted(nil, key), ':'), value)
}

func joinArray[T any](elements []T, json func(T) []byte) []byte {
	raws := make([][]byte, len(elements))
	for i, e := range elements {
		raws[i] = json(e)
	}
	return slices.Concat([]byte{'['}, bytes.Join(raws, []byte{','}), []byte{']'})
}
