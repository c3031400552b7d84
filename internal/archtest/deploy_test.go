package archtest

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

const (
	alertsFile    = "deploy/prometheus/alerts.yaml"
	dashboardFile = "deploy/grafana/moorage.json"
	monitorPage   = "docs/guide/monitor.md"
)

// metricName finds the metrics of the product in an expression of PromQL.
var metricName = regexp.MustCompile(`\bmoorage_[a-z_]+`)

// TestAlerts checks that each alert uses only metrics that the code exports, and that the guide
// explains the alert.
func TestAlerts(t *testing.T) {
	t.Parallel()
	m := loadModule(t)
	var file struct {
		Groups []struct {
			Rules []struct {
				Alert       string
				Expr        string
				Labels      map[string]string
				Annotations map[string]string
			}
		}
	}
	if err := yaml.Unmarshal(m.read(t, alertsFile), &file); err != nil {
		t.Fatal(err)
	}
	metrics, guide := metricsOf(m), string(m.read(t, monitorPage))
	var names []string
	for _, group := range file.Groups {
		for _, rule := range group.Rules {
			names = append(names, rule.Alert)
			checkExpression(t, rule.Alert, rule.Expr, metrics)
			if severity := rule.Labels["severity"]; severity != "page" && severity != "ticket" {
				t.Errorf("%s has the severity %q", rule.Alert, severity)
			}
			if rule.Annotations["summary"] == "" {
				t.Errorf("%s has no summary", rule.Alert)
			}
			if !strings.Contains(guide, "| `"+rule.Alert+"` |") {
				t.Errorf("%s does not explain %s", monitorPage, rule.Alert)
			}
		}
	}
	if len(names) == 0 {
		t.Errorf("%s has no alert", alertsFile)
	}
	for _, found := range regexp.MustCompile("(?m)^\\| `(Moorage[A-Za-z]+)` \\|").FindAllStringSubmatch(guide, -1) {
		if !slices.Contains(names, found[1]) {
			t.Errorf("%s explains %s, which is no alert", monitorPage, found[1])
		}
	}
}

// TestDashboard checks that each panel uses only metrics that the code exports.
func TestDashboard(t *testing.T) {
	t.Parallel()
	m := loadModule(t)
	var dashboard struct {
		Panels []struct {
			Type, Title string
			Targets     []struct{ Expr string }
		}
	}
	if err := json.Unmarshal(m.read(t, dashboardFile), &dashboard); err != nil {
		t.Fatal(err)
	}
	metrics, checked := metricsOf(m), 0
	for _, panel := range dashboard.Panels {
		if len(panel.Targets) == 0 && panel.Type != "row" {
			t.Errorf("the panel %q shows nothing", panel.Title)
		}
		for _, target := range panel.Targets {
			checkExpression(t, panel.Title, target.Expr, metrics)
			checked++
		}
	}
	if checked == 0 {
		t.Errorf("%s has no panel", dashboardFile)
	}
}

// checkExpression reports the metrics in expr that the code does not export. A histogram also has
// names with the suffixes of its series.
func checkExpression(t *testing.T, name, expr string, metrics map[string]metric) {
	t.Helper()
	used := metricName.FindAllString(expr, -1)
	if len(used) == 0 && !strings.Contains(expr, "up{") && !strings.Contains(expr, "process_") {
		t.Errorf("%s has no metric: %s", name, expr)
	}
	for _, found := range used {
		base := found
		for _, suffix := range []string{"_bucket", "_sum", "_count"} {
			if cut, ok := strings.CutSuffix(found, suffix); ok && metrics[cut].kind == "histogram" {
				base = cut
			}
		}
		if _, made := metrics[base]; !made {
			t.Errorf("%s: the code makes no metric %s", name, found)
		}
	}
}

// read returns the content of a file of the module.
func (m *module) read(t *testing.T, name string) []byte {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(m.root, filepath.FromSlash(name)))
	if err != nil {
		t.Fatal(err)
	}
	return content
}
