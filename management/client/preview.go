package client

// MaintenancePreview describes the effects that a policy would have on a table now.
type MaintenancePreview struct {
	Object Object `json:"object"`
	// Nothing explains why nothing would happen. Failed explains why the effects are unknown, or
	// why the job would stop.
	Nothing string `json:"nothing,omitempty"`
	Failed  string `json:"failed,omitempty"`
	// Snapshots and Refs are the numbers of snapshots and refs that would expire.
	Snapshots int `json:"snapshots"`
	Refs      int `json:"refs"`
	// Files is the number of files that would be deleted, or that could be compacted. Bytes is the
	// size of the orphans.
	Files int64 `json:"files"`
	Bytes int64 `json:"bytes"`
	// Due is true if the table has enough files for compaction.
	Due bool `json:"due"`
}

// MaintenancePreviewPage is a page of tables. A page can be empty although it is not the last.
type MaintenancePreviewPage struct {
	Tables []MaintenancePreview `json:"tables"`
	NextPage
}
