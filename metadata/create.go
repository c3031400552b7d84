package metadata

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"moorage"
	"moorage/internal/jsontext"
	"moorage/metadata/schema"
)

// CreateTable is a request for a new table.
type CreateTable struct {
	Location      string // no trailing slash
	Schema        []byte // JSON, required
	PartitionSpec []byte // JSON or nil
	WriteOrder    []byte // JSON or nil
	Properties    map[string]string
}

// Properties that affect the creation of a table instead of being stored with it. Source: Java
// TableProperties.RESERVED_PROPERTIES.
const propFormatVersion = "format-version"

func isReserved(property string) bool {
	switch property {
	case propFormatVersion, "uuid", "snapshot-count", "current-snapshot-id", "current-snapshot-summary",
		"current-snapshot-timestamp-ms", "current-schema", "default-partition-spec", "default-sort-order":
		return true
	}
	return false
}

const (
	propParquetCompression = "write.parquet.compression-codec"
	newTableCompression    = "zstd"
	propMetricsColumn      = "write.metadata.metrics.column."
	propEncryptionDEK      = "encryption.data-key-length"
)

// Create returns the document of a new table. It assigns new field ids, from 1, and binds partition
// and sort fields to them by name. The schema and the spec get the id 0. The sort order gets the id
// 1, or 0 if it is unsorted. The property format-version sets the format version. The default is 2.
//
// Errors: KindBadRequest for malformed input; KindIllegalArgument and KindValidation for a table
// that no engine could use. Source: REST specification, createTable; Java
// TableMetadata.newTableMetadata.
func Create(request CreateTable, env Env) (*Document, error) {
	version, properties, err := newTableProperties(request.Properties)
	if err != nil {
		return nil, err
	}
	parts, err := freshParts(request)
	if err != nil {
		return nil, err
	}
	if err := checkMetricsColumns(properties, parts.schema); err != nil {
		return nil, err
	}
	d, err := emptyTable(version, env)
	if err != nil {
		return nil, err
	}
	b := newBuilder(d, env)
	b.creating = true
	b.location = stripTrailingSlash(request.Location)
	b.lastColumnID, b.lastPartitionID = parts.lastColumnID, parts.lastPartitionID
	b.defaultOrderID = parts.order.ID
	maps.Copy(b.editProps(), properties)
	if err := parts.check(version); err != nil {
		return nil, err
	}
	b.edit(schemas).add(int64(parts.schema.ID), parts.schema.Raw)
	b.edit(partitionSpecs).add(int64(parts.spec.ID), parts.spec.Raw)
	b.edit(sortOrders).add(int64(parts.order.ID), parts.order.Raw)
	return b.finishNew()
}

// Build returns the document of a table that a commit with assert-create creates. It applies
// updates to an empty table, and keeps the ids in them. The first upgrade-format-version sets the
// format version. The default is 2. Without assign-uuid, the server draws a uuid. Build returns the
// errors of Apply, which include an error for a missing part of the table. Source: REST
// specification, updateTable; Java CatalogHandlers.create.
func Build(updates []Update, env Env) (*Document, error) {
	version := formatVersionDefault
	for _, u := range updates {
		if upgrade, ok := u.op.(upgradeFormatVersion); ok {
			version = upgrade.version
			break
		}
	}
	if version < 1 || version > formatVersionMax {
		return nil, illegal("Unsupported format version: v%d (supported: v%d)", version, formatVersionMax)
	}
	d, err := emptyTable(version, env)
	if err != nil {
		return nil, err
	}
	b := newBuilder(d, env)
	b.creating = true
	if err := b.applyAll(updates); err != nil {
		return nil, err
	}
	return b.finishNew()
}

// finishNew writes a new document and parses it again, because a new table is checked completely.
func (b *builder) finishNew() (*Document, error) {
	d, err := b.finish()
	if err != nil {
		return nil, err
	}
	return Parse(d.raw)
}

// emptyTable returns the document from which a new table is built. It has all members, in their
// usual order, but the arrays of schemas, specs and sort orders are empty.
func emptyTable(version int, env Env) (*Document, error) {
	uuid := env.NewUUID()
	raw := fmt.Appendf(nil, `{"format-version":%d,"table-uuid":%s,"location":"",`, version,
		jsontext.AppendQuoted(nil, uuid))
	if version > 1 {
		raw = append(raw, `"last-sequence-number":0,`...)
	}
	raw = append(raw, `"last-updated-ms":0,"last-column-id":0,`...)
	if version == 1 {
		raw = append(raw, `"schema":null,`...)
	}
	raw = append(raw, `"current-schema-id":0,"schemas":[],`...)
	if version == 1 {
		raw = append(raw, `"partition-spec":null,`...)
	}
	raw = append(raw, `"default-spec-id":0,"partition-specs":[],"last-partition-id":0,"default-sort-order-id":0,`+
		`"sort-orders":[],"properties":{},`...)
	if version >= 3 {
		raw = append(raw, `"current-snapshot-id":null,"next-row-id":0,`...)
	} else {
		raw = append(raw, `"current-snapshot-id":-1,`...)
	}
	raw = append(raw, `"refs":{},"snapshots":[],"statistics":[],"partition-statistics":[],`+
		`"snapshot-log":[],"metadata-log":[]}`...)

	d := &Document{index: index{body: body{raw: raw}, currentSnapshotID: noSnapshot}}
	r := reader{cursor: *strict(raw), index: &d.index}
	return d, r.read()
}

// newTableProperties returns the format version requested in the properties, and the properties to
// store.
func newTableProperties(asked map[string]string) (version int, stored map[string]string, err error) {
	version = formatVersionDefault
	if text, ok := asked[propFormatVersion]; ok {
		n, err := strconv.ParseInt(text, 10, 32)
		if err != nil {
			return 0, nil, illegal("Invalid value of property %s, not an integer: %s", propFormatVersion,
				jsontext.Clip(text))
		}
		if n < 1 || n > formatVersionMax {
			return 0, nil, illegal("Unsupported format version: v%d (supported: v%d)", n, formatVersionMax)
		}
		version = int(n)
	}
	stored = map[string]string{propParquetCompression: newTableCompression}
	for key, value := range asked {
		if !isReserved(key) {
			stored[key] = value
		}
	}
	if err := checkCommitProperties(stored); err != nil {
		return 0, nil, err
	}
	if value, ok := stored[PropAppendRebase]; ok {
		if err := CheckAppendRebase(value); err != nil {
			return 0, nil, err
		}
	}
	for _, key := range []string{propEncryptionKeyID, propEncryptionDEK} {
		if _, ok := stored[key]; ok && version < 3 {
			return 0, nil, illegal("Invalid properties for v%d: [%s]", version, key)
		}
	}
	return version, stored, nil
}

// checkCommitProperties follows Java PropertyUtil.validateCommitProperties.
func checkCommitProperties(properties map[string]string) error {
	for _, key := range []string{
		"commit.retry.num-retries", "commit.retry.min-wait-ms", "commit.retry.max-wait-ms",
		"commit.retry.total-timeout-ms",
	} {
		text, ok := properties[key]
		if !ok {
			continue
		}
		n, err := strconv.ParseInt(text, 10, 32)
		if err != nil {
			return moorage.Errorf(moorage.KindValidation, "Table property %s must have integer value", key)
		}
		if n < 0 {
			return moorage.Errorf(moorage.KindValidation, "Table property %s must have non negative integer value", key)
		}
	}
	return nil
}

// checkMetricsColumns refuses metrics modes of unknown columns. Source: Java
// MetricsConfig.validate, which also runs only on creation.
func checkMetricsColumns(properties map[string]string, s *schema.Schema) error {
	names := s.ColumnNames()
	for _, key := range slices.Sorted(maps.Keys(properties)) {
		column, ok := strings.CutPrefix(key, propMetricsColumn)
		if _, found := names.Find(column); ok && !found {
			return moorage.Errorf(moorage.KindValidation,
				"Invalid metrics config, could not find column %s from table prop %s in schema", jsontext.Clip(column),
				jsontext.Clip(key))
		}
	}
	return nil
}

// newParts holds the schema, spec and sort order of a new table, with their new ids.
type newParts struct {
	schema                        *schema.Schema
	spec                          *schema.Spec
	order                         *schema.SortOrder
	lastColumnID, lastPartitionID int
}

func freshParts(request CreateTable) (parts newParts, err error) {
	asked := newParts{}
	if len(request.Schema) == 0 {
		return parts, moorage.Errorf(moorage.KindBadRequest, "Invalid schema: null")
	}
	if asked.schema, err = parseStrictly(request.Schema, schema.Parse); err != nil {
		return parts, err
	}
	if request.PartitionSpec != nil {
		if asked.spec, err = parseStrictly(request.PartitionSpec, schema.ParseSpec); err != nil {
			return parts, err
		}
	}
	if request.WriteOrder != nil {
		if asked.order, err = parseStrictly(request.WriteOrder, schema.ParseSortOrder); err != nil {
			return parts, err
		}
	}
	schemaRaw, specRaw, orderRaw, lastColumnID, lastPartitionID,
		err := schema.Fresh(asked.schema, asked.spec, asked.order)
	if err != nil {
		return parts, err
	}
	parts.lastColumnID, parts.lastPartitionID = lastColumnID, lastPartitionID
	if parts.schema, err = schema.Parse(schemaRaw); err != nil {
		return parts, err
	}
	if parts.spec, err = schema.ParseSpec(specRaw); err != nil {
		return parts, err
	}
	parts.order, err = schema.ParseSortOrder(orderRaw)
	return parts, err
}

// parseStrictly parses untrusted text.
func parseStrictly[T any](raw []byte, parse func([]byte) (T, error)) (part T, err error) {
	if err := checkJSON(raw); err != nil {
		return part, err
	}
	return parse(raw)
}

func (p *newParts) check(version int) error {
	if err := p.schema.Check(version); err != nil {
		return err
	}
	if err := p.spec.Check(p.schema, version); err != nil {
		return err
	}
	return p.order.Check(p.schema)
}
