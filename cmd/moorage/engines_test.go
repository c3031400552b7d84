package main

import (
	"os"
	"strings"
	"testing"

	"moorage/storage"
)

// TestEnginesPage compares the lines in docs/guide/engines.md with the lines that serve prints. The
// tests in interop run those lines.
func TestEnginesPage(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../docs/guide/engines.md")
	if err != nil {
		t.Fatal(err)
	}
	// The page breaks lines at other places.
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

// A name cannot end the quotes around it, whatever its characters are.
func TestHostileNamesInLines(t *testing.T) {
	t.Parallel()
	c := connection{
		uri: "http://server", warehouse: `l'a"ke\ $(id)`, as: catalogName, scheme: storage.SchemeFile,
		table: []string{"sales", "o'r`d\"ers $(id)"},
	}
	plain := c
	plain.table = nil
	for _, check := range []struct {
		lines []string
		want  string
	}{
		{plain.curl(), `/v1/config?warehouse=l%27a%22ke%5C+%24%28id%29'`},
		{c.curl(), `/namespaces/sales/tables/o%27r%60d%22ers%20%24%28id%29'`},
		{c.pyIceberg(), `warehouse="l'a\"ke\\ $(id)")`},
		{c.pyIceberg(), `load_table("sales.o'r` + "`" + `d\"ers $(id)")`},
		{c.spark(), `.warehouse='l'\''a"ke\ $(id)' `},
		{c.spark(), "-e 'SELECT * FROM moorage.sales.`o'\\''r``d\"ers $(id)` LIMIT 10'"},
		{c.trino(), `iceberg.rest-catalog.warehouse=l'a"ke\\ $(id)`},
		{c.trino(), "moorage.sales.\"o'r`d\"\"ers $(id)\" LIMIT"},
		{c.flink(), `'warehouse' = 'l''a"ke\ $(id)',`},
		{c.duckDB(), `ATTACH 'l''a"ke\ $(id)' AS`},
	} {
		if text := strings.Join(check.lines, "\n"); !strings.Contains(text, check.want) {
			t.Errorf("no %s in\n%s", check.want, text)
		}
	}
}
