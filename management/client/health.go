package client

// Health is the state of a table.
type Health struct {
	MetadataLocation string          `json:"metadata-location"`
	Snapshot         int64           `json:"snapshot,omitempty"` // of the branch main
	Level            string          `json:"level"`              // the worst level of the findings
	Findings         []HealthFinding `json:"findings"`
	Shape            *Shape          `json:"shape,omitempty"` // if the manifests were read
}

// HealthFinding is what was found about one aspect of a table.
type HealthFinding struct {
	Level string `json:"level"` // ok, warn or bad
	What  string `json:"what"`  // such as "small files"
	Fact  string `json:"fact"`
	Limit string `json:"limit,omitempty"` // beyond it the level is not ok
	// Command is what to type against it: a command of moorage, or a statement of SQL that begins
	// with CALL or ALTER. Empty if the level is ok.
	Command string `json:"command,omitempty"`
}

// Shape is how the live files of the current snapshot are distributed.
type Shape struct {
	// Stopped is why not all manifests were read; empty if they were. The numbers are then of the
	// manifests that were read.
	Stopped    string      `json:"stopped,omitempty"`
	Manifests  int64       `json:"manifests"` // that were read
	Files      int64       `json:"files"`     // data files
	Bytes      int64       `json:"bytes"`
	Rows       int64       `json:"rows"`
	Deletes    int64       `json:"deletes"`     // delete files
	DeleteRows int64       `json:"delete-rows"` // rows in delete files
	Small      int64       `json:"small"`       // data files below 32 MB
	Sizes      []SizeClass `json:"sizes"`       // of data files, ascending
	// ByRows are the data files by their rows, and ByFiles the partitions by how many data files
	// they have, ascending.
	ByRows     []CountClass     `json:"by-rows,omitempty"`
	ByFiles    []CountClass     `json:"by-files,omitempty"`
	Partitions int              `json:"partitions"` // that have data files
	Lone       int              `json:"lone"`       // partitions with one file, which is small
	Worst      []PartitionShape `json:"worst"`      // with the most small files; at most ten
}

// SizeClass has the data files below a size, and not below that of the class before it.
type SizeClass struct {
	Below int64 `json:"below,omitempty"` // bytes; 0 in the last class, which has no bound
	Files int64 `json:"files"`
	Bytes int64 `json:"bytes"`
}

// CountClass has how many things have fewer than Below of something, and not fewer than in the
// class before it.
type CountClass struct {
	Below int64 `json:"below,omitempty"` // 0 in the last class, which has no bound
	Count int64 `json:"count"`
}

// PartitionShape has the numbers of one partition.
type PartitionShape struct {
	Partition string `json:"partition"` // such as "departed_month=2026-11"; empty without partitions
	Files     int64  `json:"files"`     // data files
	Bytes     int64  `json:"bytes"`
	Rows      int64  `json:"rows"`
	Small     int64  `json:"small"`   // data files below 32 MB
	Deletes   int64  `json:"deletes"` // delete files
}
