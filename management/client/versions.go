package client

import "encoding/json"

// TableVersion is a version of a table or view.
type TableVersion struct {
	MetadataLocation string `json:"metadata-location"`
	// TimestampMS is the time at which the version of a table, or of a view's SQL, was made. It is
	// in milliseconds since 1970.
	TimestampMS int64 `json:"timestamp-ms"`
}

// TableDifference describes the differences between two versions of a table or view. Members that
// do not differ are absent. A pair has the values in the first and in the second version.
type TableDifference struct {
	From          TableVersion       `json:"from"`
	To            TableVersion       `json:"to"`
	FormatVersion *[2]int            `json:"format-version,omitempty"`
	Location      *[2]string         `json:"location,omitempty"`
	Schema        *SchemaDifference  `json:"schema,omitempty"`
	PartitionSpec *[2]any            `json:"partition-spec,omitempty"`
	SortOrder     *[2]any            `json:"sort-order,omitempty"`
	Properties    *PropertyChanges   `json:"properties,omitempty"`
	Refs          *RefsDifference    `json:"refs,omitempty"`
	Snapshots     *SnapshotsAdded    `json:"snapshots,omitempty"`
	Totals        map[string][]int64 `json:"totals,omitempty"` // -1: unknown
	// Only for views: the SQL by dialect, and the default catalog and namespace of names in it.
	SQL              map[string][2]*string `json:"sql,omitempty"`
	DefaultNamespace *[2][]string          `json:"default-namespace,omitempty"`
	DefaultCatalog   *[2]string            `json:"default-catalog,omitempty"` // empty if it is not set
}

// SchemaDifference lists the columns that differ.
type SchemaDifference struct {
	Added   []ColumnShown  `json:"added,omitempty"`
	Removed []ColumnShown  `json:"removed,omitempty"`
	Changed []ColumnChange `json:"changed,omitempty"`
}

// ColumnShown is a column.
type ColumnShown struct {
	ID       int    `json:"id"`
	Path     string `json:"path"`
	Type     string `json:"type"`
	Required bool   `json:"required"`
	Doc      string `json:"doc"`
}

// ColumnChange is a column that differs, with the members that differ.
type ColumnChange struct {
	ID   int            `json:"id"`
	Path string         `json:"path"`
	Was  map[string]any `json:"was"`
	Is   map[string]any `json:"is"`
}

// PropertyChanges lists the properties that differ.
type PropertyChanges struct {
	Set     map[string][2]*string `json:"set,omitempty"`
	Removed map[string]string     `json:"removed,omitempty"`
}

// RefsDifference lists the branches and tags that differ.
type RefsDifference struct {
	Added   []RefShown `json:"added,omitempty"`
	Removed []RefShown `json:"removed,omitempty"`
	Moved   []struct {
		Name  string `json:"name"`
		Was   int64  `json:"was"`
		Is    int64  `json:"is"`
		Ahead *int   `json:"ahead"`
	} `json:"moved,omitempty"`
	Changed []struct {
		Name string          `json:"name"`
		Was  json.RawMessage `json:"was"`
		Is   json.RawMessage `json:"is"`
	} `json:"changed,omitempty"`
}

// RefShown is a branch or a tag.
type RefShown struct {
	Name       string `json:"name"`
	Type       string `json:"type"`
	SnapshotID int64  `json:"snapshot-id"`
}

// SnapshotsAdded lists the snapshots that only one of the versions has.
type SnapshotsAdded struct {
	Added   []json.RawMessage `json:"added,omitempty"`
	Removed []int64           `json:"removed,omitempty"`
	More    int               `json:"more"`
}

// The parts of a rollback.
const (
	PartRefs = "refs"
	PartAll  = "all"
)

// RollbackRequest is a request to take a table or view back to an earlier state.
type RollbackRequest struct {
	To     string   `json:"to"`
	Ref    string   `json:"ref,omitempty"` // of a table
	Any    bool     `json:"any,omitempty"` // of a table
	Parts  []string `json:"parts,omitempty"`
	DryRun bool     `json:"dry-run,omitempty"`
	// PreviousMetadataLocation is the metadata file that must be current when the rollback begins.
	// If it is empty, any file may be current.
	PreviousMetadataLocation string `json:"previous-metadata-location,omitempty"`
}

// RolledBack describes the commit that took a table or view back. Updates is empty if the table or
// view was already in that state.
type RolledBack struct {
	Requirements             json.RawMessage `json:"requirements"`
	Updates                  json.RawMessage `json:"updates"`
	Warnings                 []string        `json:"warnings"`
	MetadataLocation         string          `json:"metadata-location"`
	PreviousMetadataLocation string          `json:"previous-metadata-location"`
	// To is what the request has named, with the time that a duration has meant.
	To string `json:"to,omitempty"`
}
