package client

// MaintenancePreview has the effects that a policy would have on a table now.
type MaintenancePreview struct {
	Object Object `json:"object"`
	// Nothing is the reason why nothing would happen. Failed is the reason why the effects are
	// unknown, or why the job would stop.
	Nothing string `json:"nothing,omitempty"`
	Failed  string `json:"failed,omitempty"`
	// Snapshots and Refs are how many snapshots and refs would expire.
	Snapshots int `json:"snapshots"`
	Refs      int `json:"refs"`
	// Files is how many files would be deleted, or could be compacted. Bytes is the size of
	// orphans.
	Files int64 `json:"files"`
	Bytes int64 `json:"bytes"`
	// Due reports that the table has enough files for compaction.
	Due bool `json:"due"`
}

// MaintenancePreviewPage is a page of tables. A page can be empty although it is not the last.
type MaintenancePreviewPage struct {
	Tables []MaintenancePreview `json:"tables"`
	NextPage
}
