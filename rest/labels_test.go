package rest

import (
	"encoding/json"
	"net/http/httptest"
	"testing"

	"github.com/apache/iceberg-go"

	"moorage/catalog"
	"moorage/registry"
	"moorage/testkit/answers"
)

const labelsText = `{"object-labels":{"team":"billing"},"fields":[{"field-id":2,"labels":{"classification":"pii"}}]}`

// labelledAnswer is the answer to a load in the form that iceberg-go reads.
type labelledAnswer struct {
	Labels *iceberg.Labels `json:"labels"`
}

func labelsOf(t *testing.T, w *httptest.ResponseRecorder) *iceberg.Labels {
	t.Helper()
	var answer labelledAnswer
	if err := json.Unmarshal(w.Body.Bytes(), &answer); err != nil || w.Code != 200 {
		t.Fatalf("%d %s: %v", w.Code, w.Body, err)
	}
	return answer.Labels
}

// Loads of tables and views return labels in the form of the specification, which clients read. For
// an object without labels, the member is missing.
func TestLoadAnswersLabels(t *testing.T) {
	t.Parallel()
	fake := &fakeCatalog{table: sampleTable(t, 1), view: sampleView(t, 1)}
	h := answers.Watched(t, NewServer(TestConfig{Catalog: fake}))
	const viewPath = "/v1/w/namespaces/a/views/v"
	for _, path := range []string{tablePath, tablePath + "?snapshots=refs", viewPath} {
		if labels := labelsOf(t, send(h, "GET", path, "")); labels != nil {
			t.Errorf("%s answers %+v without labels", path, labels)
		}
	}
	labels := catalog.LabelText{Version: registry.ID{15: 1}, Text: []byte(labelsText)}
	fake.table.Labels, fake.view.Labels = labels, labels
	for _, path := range []string{tablePath, tablePath + "?snapshots=refs", viewPath} {
		w := send(h, "GET", path, "")
		got := labelsOf(t, w)
		if got == nil || got.Object()["team"] != "billing" || got.Field(2)["classification"] != "pii" {
			t.Errorf("%s answers the labels %+v", path, got)
		}
	}
}

// The ETag of a table changes with its labels. A commit answers with the ETag of a load of the new
// version, and without labels.
func TestLabelsChangeTheTag(t *testing.T) {
	t.Parallel()
	fake := &fakeCatalog{table: sampleTable(t, 1)}
	h := NewServer(TestConfig{Catalog: fake})
	seen := make(map[string]bool)
	for version := range 3 {
		fake.table.Labels = catalog.LabelText{}
		if version > 0 {
			fake.table.Labels = catalog.LabelText{Version: registry.ID{15: byte(version)}, Text: []byte(labelsText)}
		}
		tag := send(h, "GET", tablePath, "").Header()["ETag"][0]
		if seen[tag] {
			t.Errorf("the tag %s names two versions", tag)
		}
		seen[tag] = true
		if w := send(h, "GET", tablePath, "", "If-None-Match", tag); w.Code != 304 {
			t.Errorf("the same version is answered with %d", w.Code)
		}
		fake.table.Labels.Text = nil // a commit knows only the version
		w := send(h, "POST", tablePath, `{"requirements":[],"updates":[]}`)
		if got := w.Header()["ETag"]; len(got) != 1 || got[0] != tag {
			t.Errorf("a commit answers the tag %q, a load %s", got, tag)
		}
		if labelsOf(t, w) != nil {
			t.Errorf("a commit answers labels: %s", w.Body)
		}
	}
}
