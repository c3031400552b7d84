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
	plain := connection{uri: "$MOORAGE_URI", warehouse: "lake", as: catalogName, scheme: storage.SchemeS3}
	keyed, trino := plain, plain
	keyed.who, trino.uri = shownKey, "${ENV:MOORAGE_URI}"
	var want []string
	for _, option := range keyed.spark() {
		option = strings.TrimSuffix(strings.TrimSpace(option), " \\")
		want = append(want, strings.TrimPrefix(option, "spark-sql "))
	}
	want = append(want, trino.trino()[:5]...)
	want = append(want, strings.TrimSuffix(plain.flink()[0], ");"))
	for _, jar := range strings.Split(flinkNeeds(storage.SchemeS3), ", ") {
		want = append(want, strings.Split(jar, ":")[1]) // its name
	}
	attach, _, _ := strings.Cut(plain.duckDB()[1], "AUTHORIZATION_TYPE")
	for _, line := range append(want, strings.TrimSpace(attach)) {
		if line = strings.ReplaceAll(line, string(shownKey), "$MOORAGE_TOKEN"); !strings.Contains(page, line) {
			t.Errorf("engines.md has no %s", line)
		}
	}
}
