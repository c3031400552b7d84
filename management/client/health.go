package client

// Health is the state of a table.
type Health struct {
	MetadataLocation string          `json:"metadata-location"`
	Snapshot         int64           `json:"snapshot,omitempty"` // of the branch main
	Level            string          `json:"level"`              // the worst level of the findings
	Findings         []HealthFinding `json:"findings"`
	Shape            *Shape          `json:"shape,omitempty"` // if the manifests were read
}

// HealthFinding is a finding about one aspect of a table.
type HealthFinding struct {
	Level string `json:"level"` // ok, warn or bad
	What  string `json:"what"`  // such as "small files"
	Fact  string `json:"fact"`
	Limit string `json:"limit,omitempty"` // beyond it the level is not ok
	// Command is the remedy: a command of moorage, or an SQL statement that begins with CALL or
	// ALTER. It is empty if the level is ok.
	Command string `json:"command,omitempty"`
}

// Shape describes the sizes and partitions of the live files of the current snapshot.
type Shape struct {
	// Stopped explains why not all manifests were read. The numbers then cover only the manifests
	// that were read. It is empty if all were read.
	Stopped    string      `json:"stopped,omitempty"`
	Manifests  int64       `json:"manifests"` // that were read
	Files      int64       `json:"files"`     // data files
	Bytes      int64       `json:"bytes"`
	Rows       int64       `json:"rows"`
	Deletes    int64       `json:"deletes"`     // delete files
	DeleteRows int64       `json:"delete-rows"` // rows in delete files
	Small      int64       `json:"small"`       // data files below 32 MB
	Sizes      []SizeClass `json:"sizes"`       // of data files, ascending
	// ByRows counts the data files by their number of rows. ByFiles counts the partitions by their
	// number of data files. Both are in ascending order.
	ByRows     []CountClass     `json:"by-rows,omitempty"`
	ByFiles    []CountClass     `json:"by-files,omitempty"`
	Partitions int              `json:"partitions"` // that have data files
	Lone       int              `json:"lone"`       // partitions with one file, which is small
	Worst      []PartitionShape `json:"worst"`      // with the most small files; at most ten
}

// SizeClass counts the data files whose size is below Below, but not below that of the previous
// class.
type SizeClass struct {
	Below int64 `json:"below,omitempty"` // bytes; 0 in the last class, which has no bound
	Files int64 `json:"files"`
	Bytes int64 `json:"bytes"`
}

// CountClass counts the things whose number of rows or files is below Below, but not below that of
// the previous class.
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
