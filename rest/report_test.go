package rest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The shortest reports that the specification allows.
const (
	ScanReportJSON = `{"report-type":"scan-report","table-name":"ns.t","snapshot-id":1,"filter":true,"schema-id":0,` +
		`"projected-field-ids":[],"projected-field-names":[],"metrics":{}}`
	CommitReportJSON = `{"report-type":"commit-report","table-name":"ns.t","snapshot-id":1,"sequence-number":1,"operation":"append","metrics":{}}`
)

// Reports that were written by Java clients with iceberg-core 1.11.0, which Spark, Flink and Trino
// also use.
func TestReportsOfClients(t *testing.T) {
	t.Parallel()
	h := NewServer(TestConfig{Catalog: &fakeCatalog{}})
	files, err := filepath.Glob("testdata/reports/*.json")
	if err != nil || len(files) != 3 {
		t.Fatalf("reports: %v, %v", files, err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if w := send(h, "POST", "/v1/namespaces/ns/tables/t/metrics", string(text)); w.Code != 204 {
			t.Errorf("%s: %d %s", file, w.Code, w.Body)
		}
	}
}

// Members may be optional, may be null, or may have several forms.
func TestReportsThatMayBe(t *testing.T) {
	t.Parallel()
	h := NewServer(TestConfig{Catalog: &fakeCatalog{}})
	for _, body := range []string{
		ScanReportJSON, CommitReportJSON,
		strings.Replace(ScanReportJSON, "true", "false", 1),
		strings.Replace(ScanReportJSON, "true", `{"type":"true"}`, 1),
		strings.Replace(ScanReportJSON, "true", `{"type":"in","term":"id","values":[1,2]}`, 1),
		strings.Replace(ScanReportJSON, `"snapshot-id":1`, `"snapshot-id":-9223372036854775808`, 1),
		strings.Replace(CommitReportJSON, `"metrics":{}`, `"metrics":{"a":{"unit":"x","value":-1},"b":{"time-unit":"x","count":1,"total-duration":2,"more":null}}`, 1),
		strings.Replace(CommitReportJSON, `"metrics":{}`, `"metrics":{},"metadata":{"k":"v"},"unknown":[1]`, 1),
		strings.Replace(CommitReportJSON, `"metrics":{}`, `"metrics":{},"metadata":null`, 1),
	} {
		if w := send(h, "POST", "/v1/namespaces/ns/tables/t/metrics", body); w.Code != 204 {
			t.Errorf("%s: %d %s", body, w.Code, w.Body)
		}
	}
}
