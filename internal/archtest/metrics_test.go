package archtest

import (
	"flag"
	"fmt"
	"go/ast"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// metricsPage is the page that TestMetricsReference compares with the code.
const metricsPage = "docs/reference/metrics.md"

var update = flag.Bool("update", false, "rewrite generated pages")

// metric is a metric that the code exports.
type metric struct {
	kind, help string
	labels     []string
}

// TestMetricsReference compares the page of metrics with the metrics in the code. With -update, it
// rewrites the page.
func TestMetricsReference(t *testing.T) {
	t.Parallel()
	m := loadModule(t)
	page := metricsReference(metricsOf(m))
	name := filepath.Join(m.root, metricsPage)
	if *update {
		if err := os.WriteFile(name, []byte(page), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != page {
		t.Errorf("%s is not as the code is (rewrite it with -update); want\n%s", metricsPage, page)
	}
}

func metricsReference(all map[string]metric) string {
	var page strings.Builder
	page.WriteString("# Metrics\n\n<!-- Generated: go test ./internal/archtest -run TestMetricsReference -update -->\n\n" +
		"`GET /metrics` answers in Prometheus's text format. It has the metrics of Prometheus's Go client for the process and\n" +
		"the Go runtime too. [Monitor](../guide/monitor.md) says which ones to watch.\n\n" +
		"| metric | kind | labels | meaning |\n|---|---|---|---|\n")
	for _, name := range slices.Sorted(maps.Keys(all)) {
		m, labels := all[name], "–"
		if len(m.labels) > 0 {
			labels = "`" + strings.Join(m.labels, "`, `") + "`"
		}
		fmt.Fprintf(&page, "| `%s` | %s | %s | %s |\n", name, m.kind, labels, m.help)
	}
	return page.String()
}

// metricsOf returns the metrics of the code by their names, which begin with moorage_.
func metricsOf(m *module) map[string]metric {
	found := make(map[string]metric)
	for _, f := range m.files() {
		if f.test || f.suite {
			continue
		}
		ast.Inspect(f.ast, func(node ast.Node) bool {
			call, ok := node.(*ast.CallExpr)
			if !ok {
				return true
			}
			if name, made := metricOf(call); strings.HasPrefix(name, "moorage_") {
				found[name] = made
			}
			return true
		})
	}
	return found
}

// metricOf returns the metric that a call makes, and its name. The name is an argument, or the
// field Name of an argument. It is "" for other calls.
func metricOf(call *ast.CallExpr) (name string, made metric) {
	made.kind = kindOfMetric(call.Fun)
	if made.kind == "" {
		return "", metric{}
	}
	var texts []string
	for _, argument := range call.Args {
		if options, ok := argument.(*ast.CompositeLit); ok {
			for _, element := range options.Elts {
				switch e := element.(type) {
				case *ast.KeyValueExpr:
					if key, ok := e.Key.(*ast.Ident); ok && (key.Name == "Name" || key.Name == "Help") {
						texts = append(texts, literalText(e.Value))
					}
				default:
					made.labels = append(made.labels, literalText(element))
				}
			}
			continue
		}
		if text := literalText(argument); text != "" {
			texts = append(texts, text)
		}
	}
	if len(texts) < 2 {
		return "", metric{}
	}
	made.help = texts[1]
	made.labels = append(made.labels, texts[2:]...)
	return texts[0], made
}

// kindOfMetric returns the Prometheus type of the metrics that a constructor makes. It returns ""
// for other functions.
func kindOfMetric(function ast.Expr) string {
	name := ""
	switch f := function.(type) {
	case *ast.Ident:
		name = f.Name
	case *ast.SelectorExpr:
		name = f.Sel.Name
	}
	for _, kind := range []string{"counter", "gauge", "histogram"} {
		if title := strings.ToUpper(kind[:1]) + kind[1:]; strings.HasPrefix(name, "New"+title) || name == kind || name == kind+"Of" || name == kind+"Desc" {
			return kind
		}
	}
	return ""
}

// literalText returns the text of a string literal, or of string literals joined by +. It returns
// "" for other expressions.
func literalText(expression ast.Expr) string {
	switch e := expression.(type) {
	case *ast.BasicLit:
		if text, err := strconv.Unquote(e.Value); err == nil && e.Kind == token.STRING {
			return text
		}
	case *ast.BinaryExpr:
		return literalText(e.X) + literalText(e.Y)
	}
	return ""
}
