package management

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"moorage/management/client"
)

// A preview lists the effects of a policy on each table, page by page. It refuses the same bodies
// as the request that sets a policy.
func TestPreview(t *testing.T) {
	t.Parallel()
	const path = "/management/v1/maintenance/policies/icebergSnapshotManagement/preview?warehouse=w"
	f := &fake{next: "behind"}
	server := newServer(t, configOf(f))
	w := send(server, "POST", path+"&pageSize=3", `{"status":"enabled"}`)
	var page client.MaintenancePreviewPage
	if err := json.Unmarshal(w.Body.Bytes(), &page); err != nil || len(page.Tables) != 3 || page.NextPageToken == nil {
		t.Fatalf("%d %s, %v", w.Code, w.Body, err)
	}
	table := client.Object{Warehouse: "w", Namespace: []string{"a"}, Table: "t"}
	for i, want := range []client.MaintenancePreview{
		{Snapshots: 3, Refs: 1, Files: 5, Bytes: 7, Failed: "the job would stop: why"}, {Nothing: "no"}, {Due: true},
	} {
		want.Object = table
		if got := page.Tables[i]; !reflect.DeepEqual(got, want) {
			t.Errorf("the preview is %+v, want %+v", got, want)
		}
	}
	f.calls = nil
	send(server, "POST", path+"&pageSize=2&pageToken="+*page.NextPageToken, `{"status":"enabled"}`)
	if got := strings.Join(f.calls, ","); !strings.Contains(got, "behind2") {
		t.Errorf("the second page: %q", got)
	}
	for body, want := range map[string]int{`{}`: 400, `{"status":"enabled","settings":[]}`: 400} {
		if w := send(server, "POST", path, body); w.Code != want {
			t.Errorf("%s: %d %s, want %d", body, w.Code, w.Body, want)
		}
	}
	wantFailure(t, send(server, "POST", strings.Replace(path, "Snapshot", "Sort", 1), `{"status":"enabled"}`), 404, "NotFoundException")
}
