package metadata

import (
	"slices"

	"moorage"
	"moorage/metadata/schema"
)

// ViewDifference holds the differences between two versions of one view. Members that do not differ
// are absent.
type ViewDifference struct {
	Location   *Pair[string]            `json:"location,omitempty"`
	SQL        map[string]Pair[*string] `json:"sql,omitempty"` // by dialect; nil without that dialect
	Schema     *schema.Difference       `json:"schema,omitempty"`
	Properties *PropertiesDifference    `json:"properties,omitempty"`
	// Namespace is the default namespace of names in the SQL. Catalog is their default catalog, or
	// empty if it is not set.
	Namespace *Pair[[]string] `json:"default-namespace,omitempty"`
	Catalog   *Pair[string]   `json:"default-catalog,omitempty"`
}

// DiffViews returns the differences between two versions of a view.
func DiffViews(from, to *ViewDocument) (ViewDifference, error) {
	d := ViewDifference{
		Location: pairOf(from.location, to.location), Properties: diffProperties(from.properties, to.properties),
	}
	was, wasSchema, err := from.current()
	if err != nil {
		return d, err
	}
	is, isSchema, err := to.current()
	if err != nil {
		return d, err
	}
	d.SQL = diffSQL(was.sql(), is.sql())
	if found := schema.Diff(wasSchema, isSchema); !found.IsEmpty() {
		d.Schema = &found
	}
	if !slices.Equal(was.namespace, is.namespace) {
		d.Namespace = &Pair[[]string]{was.namespace, is.namespace}
	}
	d.Catalog = pairOf(was.defaultCatalog(), is.defaultCatalog())
	return d, nil
}

// diffSQL returns the queries that differ, by dialect.
func diffSQL(was, is map[string]string) map[string]Pair[*string] {
	differ := make(map[string]Pair[*string])
	for dialect, sql := range is {
		switch before, had := was[dialect]; {
		case !had:
			differ[dialect] = Pair[*string]{nil, &sql}
		case before != sql:
			differ[dialect] = Pair[*string]{&before, &sql}
		}
	}
	for dialect, sql := range was {
		if _, has := is[dialect]; !has {
			differ[dialect] = Pair[*string]{&sql, nil}
		}
	}
	return differ
}

// current returns the version that readers of the view use, and its schema. ParseView has checked
// that both exist.
func (d *ViewDocument) current() (*viewVersion, *schema.Schema, error) {
	version, err := d.version(d.currentVersionID)
	if err != nil {
		return nil, nil, err
	}
	columns := d.presentSchema()
	if version == nil || columns == nil {
		return nil, nil, illegal("Cannot find the current version %d, or its schema", d.currentVersionID)
	}
	return version, columns, nil
}

// sql returns the queries of the version, by dialect as it was sent.
func (v *viewVersion) sql() map[string]string {
	queries := make(map[string]string, len(v.queries))
	for _, q := range v.queries {
		if q.kind == queryKindSQL {
			queries[q.dialect] = q.sql
		}
	}
	return queries
}

func (v *viewVersion) defaultCatalog() string {
	if v.catalog == nil {
		return ""
	}
	return *v.catalog
}

// RollbackView returns the rollback of a view from its present metadata now to its earlier metadata
// then. The version that was current in then becomes the current one. RollbackAll also restores the
// properties.
//
// Errors: KindCommitFailed if now no longer has that version.
func RollbackView(now, then *ViewDocument, parts RollbackParts) (Rollback, error) {
	id, found, err := now.versionLike(then)
	if err != nil {
		return Rollback{}, err
	}
	if !found {
		return Rollback{}, moorage.Errorf(moorage.KindCommitFailed,
			"Version %d of the view has expired; choose a version that the view still has", then.currentVersionID)
	}
	r := viewRollback(now, id)
	if parts == RollbackAll {
		r.updates = append(r.updates, propertyUpdates(now.properties, then.properties)...)
	} else if diffProperties(now.properties, then.properties) != nil {
		r.warnings = append(r.warnings, changedSince("properties have"))
	}
	if then.location != now.location {
		r.warnings = append(r.warnings, "The view has moved to another location since, and stays there.")
	}
	return r.build()
}

// RollbackViewToID returns the rollback of a view to the version with this id.
//
// Errors: KindNotFound if the view has no such version.
func RollbackViewToID(now *ViewDocument, id int) (Rollback, error) {
	version, err := now.version(id)
	if err != nil {
		return Rollback{}, err
	}
	if version == nil {
		return Rollback{}, moorage.Errorf(moorage.KindNotFound, "The view has no version with the id %d", id)
	}
	return viewRollback(now, id).build()
}

// viewRollback returns the commit that makes a version of a view the current one.
func viewRollback(now *ViewDocument, id int) *rollbackCommit {
	r := &rollbackCommit{identity: map[string]any{"type": assertViewUUID, "uuid": now.uuid}}
	if id != now.currentVersionID {
		r.updates = append(r.updates, map[string]any{"action": "set-current-view-version", "view-version-id": id})
	}
	return r
}

// versionLike returns the id of the version in d that equals the current version of then. A view
// that was registered again may number its versions differently, so the content decides.
func (d *ViewDocument) versionLike(then *ViewDocument) (id int, found bool, err error) {
	wanted, columns, err := then.current()
	if err != nil {
		return 0, false, err
	}
	ids := []int{d.currentVersionID, wanted.id}
	for _, e := range d.arrays[viewVersions].all(0) {
		ids = append(ids, int(e.id))
	}
	for _, id := range ids {
		v, err := d.version(id)
		if err != nil {
			return 0, false, err
		}
		if v == nil {
			continue
		}
		has := schemaIn(d.arrays[viewSchemas], d.value(viewArrayKeys[viewSchemas]), v.schemaID)
		like := *v
		like.schemaID = wanted.schemaID
		if has != nil && has.SameAs(columns) && like.sameAs(wanted) {
			return id, true, nil
		}
	}
	return 0, false, nil
}
