package client

// Manifests are the manifests of a snapshot, and the files of one of them.
type Manifests struct {
	SnapshotID int64      `json:"snapshot-id"` // 0 if the table has no snapshot
	Manifests  []Manifest `json:"manifests"`   // in the order of the manifest list
	More       bool       `json:"more,omitempty"`
	// Files are files of the requested manifest. FilesMore is true if the manifest has more.
	Files     []ManifestFile `json:"files,omitempty"`
	FilesMore bool           `json:"files-more,omitempty"`
}

// Manifest is a manifest of a snapshot. A count that the manifest list lacks is nil.
type Manifest struct {
	Path    string `json:"path"`
	Content string `json:"content"` // ContentData or ContentDeletes
	Bytes   int64  `json:"bytes"`
	// Added, Existing and Removed are the numbers of files with each status in the manifest.
	Added    *int64 `json:"added,omitempty"`
	Existing *int64 `json:"existing,omitempty"`
	Removed  *int64 `json:"removed,omitempty"`
}

// ManifestFile is a file in a manifest.
type ManifestFile struct {
	Path      string         `json:"path"`
	Content   string         `json:"content"` // ContentData, ContentPositions or ContentEquality
	Status    string         `json:"status"`
	Format    string         `json:"format"`
	Rows      int64          `json:"rows"`
	Bytes     int64          `json:"bytes"`
	Partition string         `json:"partition"` // such as "departed_month=2026-11"
	Bounds    []ColumnBounds `json:"bounds,omitempty"`
}

// ColumnBounds are the bounds of the values of a column in a file. They can be wider than the
// values, and are nil if they are not known.
type ColumnBounds struct {
	ID    int     `json:"id"`
	Path  string  `json:"path,omitempty"` // empty if the schema lacks the column
	Lower *string `json:"lower,omitempty"`
	Upper *string `json:"upper,omitempty"`
}

// The contents of manifests and files, and the status of a file in a manifest.
const (
	ContentData      = "data"
	ContentDeletes   = "deletes"
	ContentPositions = "position-deletes"
	ContentEquality  = "equality-deletes"

	StatusExisting = "existing"
	StatusAdded    = "added"
	StatusRemoved  = "removed"
)
