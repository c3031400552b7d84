package client

import (
	"context"
	"net/http"
	"net/url"
)

// MaintenancePreview is what a policy would do to a table now.
type MaintenancePreview struct {
	Object Object `json:"object"`
	// Nothing says why nothing would happen, and Failed why nobody knows or why the job would stop.
	Nothing string `json:"nothing,omitempty"`
	Failed  string `json:"failed,omitempty"`
	// Snapshots and Refs would expire.
	Snapshots int `json:"snapshots"`
	Refs      int `json:"refs"`
	// Files would be deleted, or are there to be compacted. Bytes is the size of orphans.
	Files int64 `json:"files"`
	Bytes int64 `json:"bytes"`
	// Due says that the table has enough files to be compacted.
	Due bool `json:"due"`
}

// MaintenancePreviewPage is a page of tables. It can be empty and not the last.
type MaintenancePreviewPage struct {
	Tables        []MaintenancePreview `json:"tables"`
	NextPageToken *string              `json:"next-page-token"`
}

// PreviewMaintenancePolicy returns a page of what would happen now to the tables of an object if it
// said this of a type of job. A page can be empty and not the last. It changes nothing.
func (m Maintenance) PreviewMaintenancePolicy(ctx context.Context, object Object, of string, said MaintenancePolicy,
	page Page) ([]MaintenancePreview, string, error) {
	var answer MaintenancePreviewPage
	path := maintenancePath + "/policies/" + url.PathEscape(of) + "/preview" + query(page) + "&" +
		object.query().Encode()
	err := m.client.ask(ctx, http.MethodPost, path, said, &answer)
	return answer.Tables, valueOf(answer.NextPageToken), err
}
