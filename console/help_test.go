package console

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	g "maragu.dev/gomponents"

	"moorage/management/client"
)

// TestEveryFindingHasAdvice looks in the code for each kind of finding: of the server, of the
// health of a table, and of maintenance. The pages explain each of them, and name the place in the
// documents.
func TestEveryFindingHasAdvice(t *testing.T) {
	t.Parallel()
	var subjects []string
	notices := map[string]bool{"auditNotice": false, "withClock": false, "addNotice": false, "addNotices": false} // found
	for _, path := range append(sources(t, "../cmd/moorage"), "../management/doctor.go") {
		for _, f := range functions(t, path) {
			subjects = append(subjects, texts(f, "What")...)
			if _, isNotice := notices[f.Name.Name]; isNotice {
				notices[f.Name.Name] = true
				subjects = append(subjects, mapKeys(f)...)
			}
		}
	}
	subjects = append(subjects, "orphans of table default.harbour.ships", "snapshots of a table that is gone")
	if len(subjects) < 25 || slices.Contains(slices.Collect(maps.Values(notices)), false) {
		t.Fatalf("the code has only the findings %q, and the functions %v", subjects, notices)
	}
	for _, what := range subjects {
		checkAdvice(t, what, adviceOn(what))
		finding := client.Finding{Level: client.LevelWarn, What: what}
		for place, body := range map[string]string{
			"Overview":   htmlOf(t, homePage{isOperator: true, findings: []client.Finding{finding}}.node()),
			"Operations": htmlOf(t, operationsPage{findings: client.FindingsPage{Findings: []client.Finding{finding}}}.node()),
		} {
			if !strings.Contains(body, "What this means") {
				t.Errorf("%s does not explain %q", place, what)
			}
		}
	}

	aspects := 0
	for _, f := range functions(t, "../catalog/browse/health.go") {
		for _, what := range texts(f, "What") {
			aspects++
			checkAdvice(t, what, healthAdvice()[what])
			shown := htmlOf(t, healthPanel(ships, &client.Health{Findings: []client.HealthFinding{{Level: client.LevelBad, What: what}}}))
			if !strings.Contains(shown, "What this means") {
				t.Errorf("the health of a table does not explain %q", what)
			}
		}
	}
	if aspects < 9 {
		t.Errorf("the code has only %d aspects of health", aspects)
	}

	states := 0
	calm := map[string]bool{"Running": true, "Disabled": true, "Not_Yet_Run": true, "Successful": true}
	for _, f := range functions(t, "../management/status.go") {
		if f.Name.Name != "stateOf" {
			continue
		}
		ast.Inspect(f, func(n ast.Node) bool {
			if returned, ok := n.(*ast.ReturnStmt); ok {
				state := textOf(returned.Results[0])
				if states++; calm[state] {
					return true
				}
				checkAdvice(t, state, stateAdvice()[state])
				shown := htmlOf(t, maintenancePage{tableHead: head(ships), status: client.MaintenanceStatus{Kinds: []client.MaintenanceKind{{Kind: "orphans", State: state}}}}.node())
				if !strings.Contains(shown, "What this means") {
					t.Errorf("the page Maintenance does not explain %s", state)
				}
			}
			return true
		})
	}
	if states < 8 {
		t.Errorf("the code has only %d states of maintenance", states)
	}
}

// htmlOf returns a part of a page.
func htmlOf(t *testing.T, part g.Node) string {
	t.Helper()
	var made strings.Builder
	if err := part.Render(&made); err != nil {
		t.Fatal(err)
	}
	return made.String()
}

// checkAdvice fails if there is no advice, or if its place in the documents does not exist.
func checkAdvice(t *testing.T, what string, a advice) {
	t.Helper()
	if a.means == "" || a.do == "" || a.guide == "" {
		t.Errorf("there is no advice on %q", what)
		return
	}
	file, anchor, hasAnchor := strings.Cut(a.guide, "#")
	body, err := os.ReadFile(filepath.Join("../docs/guide", file))
	if err != nil {
		t.Error(err)
		return
	}
	if !hasAnchor {
		return
	}
	for _, heading := range regexp.MustCompile(`(?m)^#+ (.*)$`).FindAllStringSubmatch(string(body), -1) {
		bare := regexp.MustCompile(`[^a-z0-9 -]`).ReplaceAllString(strings.ToLower(heading[1]), "")
		if strings.ReplaceAll(bare, " ", "-") == anchor {
			return
		}
	}
	t.Errorf("%s has no heading #%s", file, anchor)
}

// sources returns the Go files of a folder that are no tests.
func sources(t *testing.T, folder string) (found []string) {
	t.Helper()
	all, err := filepath.Glob(filepath.Join(folder, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range all {
		if !strings.HasSuffix(path, "_test.go") {
			found = append(found, path)
		}
	}
	return found
}

// functions returns the functions of a Go file.
func functions(t *testing.T, path string) (found []*ast.FuncDecl) {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	for _, each := range file.Decls {
		if f, ok := each.(*ast.FuncDecl); ok {
			found = append(found, f)
		}
	}
	return found
}

// texts returns the texts with which a function sets a member of a struct. Of a text that is joined
// from parts it returns the first part.
func texts(f *ast.FuncDecl, member string) (found []string) {
	ast.Inspect(f, func(n ast.Node) bool {
		if pair, ok := n.(*ast.KeyValueExpr); ok {
			if key, ok := pair.Key.(*ast.Ident); ok && key.Name == member && textOf(pair.Value) != "" {
				found = append(found, textOf(pair.Value))
			}
		}
		return true
	})
	return found
}

// mapKeys returns the texts that are keys of maps in a function.
func mapKeys(f *ast.FuncDecl) (found []string) {
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.KeyValueExpr:
			found = append(found, textOf(n.Key))
		case *ast.IndexExpr:
			found = append(found, textOf(n.Index))
		}
		return true
	})
	return found
}

// textOf returns the first part of a text in the code; empty if it is no literal.
func textOf(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.BasicLit:
		text, _ := strconv.Unquote(e.Value)
		return text
	case *ast.BinaryExpr:
		return textOf(e.X)
	}
	return ""
}
