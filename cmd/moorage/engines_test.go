package main

import (
	"os"
	"strings"
	"testing"

	"moorage/storage"
)

// TestEnginesPage holds the lines of docs/guide/engines.md against those that serve prints, which
// the tests in interop run.
func TestEnginesPage(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../docs/guide/engines.md")
	if err != nil {
		t.Fatal(err)
	}
	// Lines are broken elsewhere on the page.
	page := strings.Join(strings.Fields(string(text)), " ")
	const uri, warehouse = "$MOORAGE_URI", "lake"
	spark := sparkOptions(uri, warehouse, storage.SchemeS3, shownKey)
	want := append([]string{strings.TrimPrefix(spark[0], "spark-sql ")}, spark[1:]...)
	want = append(want, trinoProperties("${ENV:MOORAGE_URI}", warehouse, storage.SchemeGCS, nil, shownNothing)[:5]...)
	want = append(want, strings.TrimSuffix(flinkStatement(uri, warehouse, storage.SchemeS3, shownNothing), ");"))
	for _, jar := range strings.Split(flinkNeeds(storage.SchemeS3), ", ") {
		want = append(want, strings.Split(jar, ":")[1]) // its name
	}
	attach, _, _ := strings.Cut(duckDBLines(uri, warehouse, storage.SchemeS3, shownNothing)[1], "AUTHORIZATION_TYPE")
	for _, line := range append(want, strings.TrimSpace(attach)) {
		if line = strings.ReplaceAll(line, string(shownKey), "$MOORAGE_TOKEN"); !strings.Contains(page, line) {
			t.Errorf("engines.md has no %s", line)
		}
	}
}
