package metadata

import (
	"maps"
	"slices"
	"strings"

	"moorage"
	"moorage/internal/jsontext"
)

// viewVersion is a version of a view, with its bytes from the request. It is immutable.
type viewVersion struct {
	id          int
	schemaID    int
	timestampMS int64
	raw         []byte

	summary   map[string]string
	queries   []viewQuery
	catalog   *string  // default-catalog
	namespace []string // default-namespace
}

// viewQuery is a representation of a view. If its type is not sql, only kind is set.
type viewQuery struct {
	kind    string // type in lower case
	sql     string
	dialect string
}

const queryKindSQL = "sql"

// parseViewVersion reads a version. Malformed JSON and missing members are KindBadRequest.
// Source: Java ViewVersionParser.
func parseViewVersion(raw []byte) (*viewVersion, error) {
	members, err := jsontext.ParseFields(raw, "view version")
	if err != nil {
		return nil, err
	}
	v := &viewVersion{raw: raw}
	if v.id, _, err = members.Int("version-id"); err != nil {
		return nil, err
	}
	if v.schemaID, _, err = members.Int("schema-id"); err != nil {
		return nil, err
	}
	if v.timestampMS, err = members.Long("timestamp-ms"); err != nil {
		return nil, err
	}
	summary, err := valueOf(members, "summary")
	if err != nil {
		return nil, err
	}
	if v.summary, err = summary.stringMap("summary"); err != nil {
		return nil, err
	}
	if v.queries, err = parseViewQueries(members); err != nil {
		return nil, err
	}
	if _, ok := members.Present("default-catalog"); ok {
		catalog, _, err := members.Str("default-catalog")
		if err != nil {
			return nil, err
		}
		v.catalog = &catalog
	}
	namespace, err := valueOf(members, "default-namespace")
	if err != nil {
		return nil, err
	}
	if v.namespace, err = namespace.stringList("default-namespace"); err != nil {
		return nil, err
	}
	return v, nil
}

func parseViewQueries(members jsontext.Fields) ([]viewQuery, error) {
	const key = "representations"
	value, err := members.Required(key)
	if err != nil {
		return nil, err
	}
	var queries []viewQuery
	isArray, err := members.EachObject(value, "view representation", func(o jsontext.Fields) error {
		kind, _, err := o.Str("type")
		if err != nil {
			return err
		}
		q := viewQuery{kind: strings.ToLower(kind)}
		if q.kind == queryKindSQL {
			if q.sql, _, err = o.Str("sql"); err != nil {
				return err
			}
			if q.dialect, _, err = o.Str("dialect"); err != nil {
				return err
			}
		}
		queries = append(queries, q)
		return nil
	})
	if err == nil && !isArray {
		err = moorage.Errorf(moorage.KindBadRequest,
			"Cannot parse %s from non-array: %s", key, jsontext.Clip(members.Text(value)))
	}
	return queries, err
}

// check refuses a version that must not be added to a view. It refuses more than one query for a
// dialect, in any letter case, and representations that are not SQL, which the Java reference
// cannot write.
func (v *viewVersion) check() error {
	seen := make(map[string]bool, len(v.queries))
	for _, q := range v.queries {
		if q.kind != queryKindSQL {
			return illegal("Found unsupported view representations: [%s]", jsontext.Clip(q.kind))
		}
		dialect := strings.ToLower(q.dialect)
		if seen[dialect] {
			return illegal("Invalid view version: Cannot add multiple queries for dialect %s", jsontext.Clip(dialect))
		}
		seen[dialect] = true
	}
	return nil
}

// sameAs reports whether two versions are equal, apart from their ids and times. Source: Java
// ViewMetadata.Builder.sameViewVersion.
func (v *viewVersion) sameAs(o *viewVersion) bool {
	sameCatalog := v.catalog == nil && o.catalog == nil ||
		v.catalog != nil && o.catalog != nil && *v.catalog == *o.catalog
	return sameCatalog && v.schemaID == o.schemaID && maps.Equal(v.summary, o.summary) &&
		slices.Equal(v.queries, o.queries) && slices.Equal(v.namespace, o.namespace)
}

// dialects returns the dialects of the version's queries, in lower case, sorted.
func (v *viewVersion) dialects() []string {
	dialects := make([]string, 0, len(v.queries))
	for _, q := range v.queries {
		if q.kind == queryKindSQL {
			dialects = append(dialects, strings.ToLower(q.dialect))
		}
	}
	slices.Sort(dialects)
	return slices.Compact(dialects)
}

// with returns the version as it was sent, with other ids.
func (v *viewVersion) with(id, schemaID int) ([]byte, error) {
	d := bodyOf(v.raw)
	next, err := d.splice([]memberEdit{
		intChange("version-id", int64(id)), intChange("schema-id", int64(schemaID)),
	}, nil)
	return next.raw, err
}
