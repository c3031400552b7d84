package archtest

import (
	"go/ast"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var (
	unracedPattern = regexp.MustCompile(`(?m)^readonly unraced='([^']+)'$`)
	// unracedFolders matches the folders in which step "plain" of test.sh searches for tests that
	// run a sample.
	unracedFolders = regexp.MustCompile(`testkit/\(scale\|tablefiles\)"' ([a-z /]+) \| xargs`)
)

// TestSampledTestsRunWhole checks every test that runs only a sample with the race detector. Step
// "plain" of test.sh must run the same test without the race detector.
func TestSampledTestsRunWhole(t *testing.T) {
	t.Parallel()
	script, err := os.ReadFile(filepath.Join("..", "..", "test.sh"))
	if err != nil {
		t.Fatal(err)
	}
	found := unracedPattern.FindSubmatch(script)
	if found == nil {
		t.Fatal("test.sh has no line readonly unraced='…'")
	}
	unraced := regexp.MustCompile(string(found[1]))
	searched := unracedFolders.FindSubmatch(script)
	if searched == nil {
		t.Fatal("step plain of test.sh searches no folders")
	}
	folders := strings.Fields(string(searched[1]))
	m := loadModule(t)
	sampled := 0
	for _, f := range m.files() {
		if !f.test {
			continue
		}
		for _, declaration := range f.ast.Decls {
			function, ok := declaration.(*ast.FuncDecl)
			if !ok || !callsSample(function) {
				continue
			}
			sampled++
			if name := function.Name.Name; !strings.HasPrefix(name, "Test") || !unraced.MatchString(name) {
				t.Errorf("%s: %s draws a sample, and unraced in test.sh does not match it", f.path, name)
			}
			if top, _, _ := strings.Cut(filepath.ToSlash(f.path), "/"); !slices.Contains(folders, top) {
				t.Errorf("%s draws a sample, and step plain of test.sh does not search in %s", f.path, top)
			}
		}
	}
	if sampled == 0 {
		t.Error("no test draws a sample")
	}
}

// callsSample reports whether a function calls scale.Sample or scale.Steps.
func callsSample(function *ast.FuncDecl) (calls bool) {
	ast.Inspect(function, func(n ast.Node) bool {
		selector, ok := n.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		pkg, ok := selector.X.(*ast.Ident)
		calls = calls || ok && pkg.Name == "scale" && (selector.Sel.Name == "Sample" || selector.Sel.Name == "Steps")
		return true
	})
	return calls
}
