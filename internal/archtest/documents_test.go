package archtest

import (
	"bufio"
	"go/ast"
	"go/token"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// documents returns the Markdown files of the repository by their path from its root.
func documents(t *testing.T, m *module) map[string]string {
	t.Helper()
	found := make(map[string]string)
	for _, pattern := range []string{"*.md", "docs/*.md", "interop/*.md", "testdata/*.md"} {
		names, err := filepath.Glob(filepath.Join(m.root, pattern))
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range names {
			content, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			relative, err := filepath.Rel(m.root, name)
			if err != nil {
				t.Fatal(err)
			}
			found[filepath.ToSlash(relative)] = string(content)
		}
	}
	return found
}

// TestDocumentsExist names the documents that a reader may count on.
func TestDocumentsExist(t *testing.T) {
	t.Parallel()
	m := loadModule(t)
	have := documents(t, m)
	for _, name := range []string{
		"README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md",
		"docs/divergences.md", "docs/choices.md", "docs/mechanisms.md",
	} {
		if have[name] == "" {
			t.Errorf("%s is missing or empty", name)
		}
	}
}

var (
	markdownLink = regexp.MustCompile(`\]\(([^)#][^)]*)\)`)
	// quotedTest is a test as documents name it: `folder.TestName`, with subtests behind a slash.
	quotedTest = regexp.MustCompile("`([a-z0-9/]*)\\.((?:Test|Fuzz|Benchmark|Example)[A-Za-z0-9_]*)(?:/([^`]+))?`")
	// bareTest is a test that a document names without its folder.
	bareTest   = regexp.MustCompile("`((?:Test|Fuzz|Benchmark|Example)[A-Z][A-Za-z0-9_]*)`")
	makeTarget = regexp.MustCompile("`make ([a-z-]+)")
	goRun      = regexp.MustCompile(`go run (\./[a-z/]+)`)
	script     = regexp.MustCompile(`(?m)^(?:\$ )?(\./[a-z./-]+)`)
)

// TestDocumentsNameWhatExists follows the links of all documents, and looks for the tests,
// packages, scripts and make targets that they name.
func TestDocumentsNameWhatExists(t *testing.T) {
	t.Parallel()
	m := loadModule(t)
	tests, subtests := testFunctions(m), testStrings(m)
	targets := makeTargets(t, m)
	for name, text := range documents(t, m) {
		for _, link := range markdownLink.FindAllStringSubmatch(text, -1) {
			target, _, _ := strings.Cut(link[1], "#")
			if strings.Contains(target, "://") {
				continue
			}
			if _, err := os.Stat(filepath.Join(m.root, path.Dir(name), target)); err != nil {
				t.Errorf("%s links to %s: %v", name, link[1], err)
			}
		}
		for _, quoted := range quotedTest.FindAllStringSubmatch(text, -1) {
			if !tests[quoted[1]+"."+quoted[2]] || quoted[3] != "" && !subtests[quoted[3]] {
				t.Errorf("%s names %s, which does not exist", name, quoted[0])
			}
		}
		for _, quoted := range bareTest.FindAllStringSubmatch(text, -1) {
			if !isSomewhere(tests, quoted[1]) {
				t.Errorf("%s names %s, which does not exist", name, quoted[0])
			}
		}
		for _, target := range makeTarget.FindAllStringSubmatch(text, -1) {
			if !slices.Contains(targets, target[1]) {
				t.Errorf("%s says make %s; the Makefile has %q", name, target[1], targets)
			}
		}
		for _, pattern := range []*regexp.Regexp{goRun, script} {
			for _, match := range pattern.FindAllStringSubmatch(text, -1) {
				if _, err := os.Stat(filepath.Join(m.root, match[1])); err != nil {
					t.Errorf("%s says %s: %v", name, match[0], err)
				}
			}
		}
	}
}

// testFunctions returns folder.TestName of every test, benchmark, example and fuzz target.
func testFunctions(m *module) map[string]bool {
	found := make(map[string]bool)
	for _, f := range m.files() {
		for _, declaration := range f.ast.Decls {
			if d, ok := declaration.(*ast.FuncDecl); ok && d.Recv == nil && (f.test || f.suite) {
				found[f.pkg.dir+"."+d.Name.Name] = true
			}
		}
	}
	return found
}

// isSomewhere reports whether tests, as testFunctions returns them, have one of that name in any
// folder.
func isSomewhere(tests map[string]bool, name string) bool {
	for test := range tests {
		if strings.HasSuffix(test, "."+name) {
			return true
		}
	}
	return false
}

// testStrings returns every string that stands in a test or a suite: the names of subtests are
// among them.
func testStrings(m *module) map[string]bool {
	found := make(map[string]bool)
	for _, f := range m.files() {
		if !f.test && !f.suite {
			continue
		}
		ast.Inspect(f.ast, func(node ast.Node) bool {
			if literal, ok := node.(*ast.BasicLit); ok && literal.Kind == token.STRING {
				if text, err := strconv.Unquote(literal.Value); err == nil {
					found[text] = true
				}
			}
			return true
		})
	}
	return found
}

// makeTargets returns the targets of the Makefile, nil if there is none.
func makeTargets(t *testing.T, m *module) (targets []string) {
	t.Helper()
	opened, err := os.Open(filepath.Join(m.root, "Makefile"))
	if err != nil {
		t.Log(err)
		return nil
	}
	defer opened.Close()
	lines := bufio.NewScanner(opened)
	for lines.Scan() {
		before, _, ok := strings.Cut(lines.Text(), ":")
		if ok && !strings.HasPrefix(before, "\t") && !strings.HasPrefix(before, "#") {
			targets = append(targets, strings.Fields(before)...)
		}
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	return targets
}

// TestMechanisms wants a test that exists, and an id used once, in each row of the table.
func TestMechanisms(t *testing.T) {
	t.Parallel()
	m := loadModule(t)
	rows, seen := 0, make(map[string]bool)
	for line := range strings.Lines(documents(t, m)["docs/mechanisms.md"]) {
		id, ok := mechanismRow(line)
		if !ok {
			continue
		}
		rows++
		if seen[id] {
			t.Errorf("%s has two rows", id)
		}
		seen[id] = true
		if !quotedTest.MatchString(line) {
			t.Errorf("%s names no test: %s", id, line)
		}
	}
	if rows < 10 {
		t.Errorf("the table has %d rows", rows)
	}
}

var mechanismID = regexp.MustCompile(`^\| ?([AFPLB][0-9]+) ?\|`)

// mechanismRow returns the id that a row of the table begins with.
func mechanismRow(line string) (string, bool) {
	match := mechanismID.FindStringSubmatch(line)
	if match == nil {
		return "", false
	}
	return match[1], true
}
