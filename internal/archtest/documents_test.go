package archtest

import (
	"bufio"
	"fmt"
	"go/ast"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// documents returns the Markdown files of the repository by their path from its root. It leaves out
// folders whose names begin with a dot.
func documents(t *testing.T, m *module) map[string]string {
	t.Helper()
	found := make(map[string]string)
	err := filepath.WalkDir(m.root, func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && name != m.root && strings.HasPrefix(entry.Name(), "."):
			return filepath.SkipDir
		case entry.IsDir() || filepath.Ext(name) != ".md":
			return nil
		}
		content, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		relative, err := filepath.Rel(m.root, name)
		if err != nil {
			return err
		}
		found[filepath.ToSlash(relative)] = string(content)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// TestDocumentsExist checks that the documents exist that every reader expects.
func TestDocumentsExist(t *testing.T) {
	t.Parallel()
	m := loadModule(t)
	have := documents(t, m)
	for _, name := range []string{
		"README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md",
		"docs/divergences.md", "docs/design/mechanisms.md", "docs/design/promises.md",
		"docs/guide/concepts.md", "docs/guide/engines.md", "docs/guide/production.md", "docs/guide/upgrade.md",
		"docs/guide/install.md", "docs/guide/configure.md", "docs/guide/cluster.md",
		"docs/guide/tables.md", "docs/guide/backup.md", "docs/guide/monitor.md",
		"docs/guide/troubleshoot.md", "docs/guide/curl.md", "docs/guide/secure.md", "docs/guide/undo.md", "docs/guide/console.md", "docs/guide/containers.md",
		"docs/reference/behaviour.md", "docs/reference/limits.md", "docs/reference/errors.md",
		"docs/reference/metrics.md", "docs/reference/settings.md", "docs/reference/commands.md",
	} {
		if have[name] == "" {
			t.Errorf("%s is missing or empty", name)
		}
	}
}

var (
	markdownLink = regexp.MustCompile(`\]\(([^)]+)\)`)
	heading      = regexp.MustCompile(`(?m)^#+ (.+)$`)
	notInAnchor  = regexp.MustCompile(`[^\pL\pN _-]`)
	// quotedTest matches a test in a document: `folder.TestName`, and any subtests after a slash.
	quotedTest = regexp.MustCompile("`([a-z0-9/]*)\\.((?:Test|Fuzz|Benchmark|Example)[A-Za-z0-9_]*)(?:/([^`]+))?`")
	// bareTest matches a test that a document names without its folder.
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
	all := documents(t, m)
	for name, text := range all {
		for _, link := range markdownLink.FindAllStringSubmatch(text, -1) {
			if err := checkLink(m, all, name, link[1]); err != nil {
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

// checkLink returns why a link of the document called name leads nowhere. It returns nil if the
// link leads to a file and, if it has an anchor, to a heading of that file. It does not check links
// to other sites.
func checkLink(m *module, all map[string]string, name, link string) error {
	target, anchor, _ := strings.Cut(link, "#")
	if strings.Contains(target, "://") {
		return nil
	}
	document := name
	if target != "" {
		document = path.Join(path.Dir(name), target)
	}
	if _, err := os.Stat(filepath.Join(m.root, document)); err != nil {
		return err
	}
	if anchor != "" && !slices.Contains(anchors(all[document]), anchor) {
		return fmt.Errorf("%s has no heading #%s", document, anchor)
	}
	return nil
}

// anchors returns the anchors of a document's headings, as GitHub makes them.
func anchors(text string) (found []string) {
	for _, match := range heading.FindAllStringSubmatch(text, -1) {
		found = append(found, strings.ReplaceAll(notInAnchor.ReplaceAllString(strings.ToLower(match[1]), ""), " ", "-"))
	}
	return found
}

// codeName matches a function, method or type in ARCHITECTURE.md: folder.name.
var codeName = regexp.MustCompile("`([a-z/]+)\\.([A-Za-z]+)`")

// lifeFunctionsMax is the maximum number of functions that the section on the life of a commit may
// name.
const lifeFunctionsMax = 15

// commitFunctionsMax is the maximum number of functions through which a commit without conflicts
// may pass. A reader has to open each of them.
const commitFunctionsMax = 43

var (
	// loggedLine matches the beginning of a paragraph of troubleshoot.md that quotes log lines.
	loggedLine = regexp.MustCompile("(?m)^\\*\\*(`.*`)\\*\\*")
	codeSpan   = regexp.MustCompile("`[… ]*([^`]+?)[… ]*`")
)

// TestLogWordsExist checks that the log lines explained in troubleshoot.md occur in the code.
func TestLogWordsExist(t *testing.T) {
	t.Parallel()
	m := loadModule(t)
	texts := strings.Join(productionStrings(m), "\n")
	found := 0
	for _, line := range loggedLine.FindAllStringSubmatch(documents(t, m)["docs/guide/troubleshoot.md"], -1) {
		for _, words := range codeSpan.FindAllStringSubmatch(line[1], -1) {
			found++
			if !strings.Contains(texts, words[1]) {
				t.Errorf("troubleshoot.md explains %q, which nothing logs", words[1])
			}
		}
	}
	if found < 20 {
		t.Errorf("troubleshoot.md explains %d log lines", found)
	}
}

// TestLifeOfACommit checks that the section of that name refers only to functions that exist, and
// to few of them.
func TestLifeOfACommit(t *testing.T) {
	t.Parallel()
	wantFunctions(t, "The life of a commit", lifeFunctionsMax)
}

// TestFunctionsOfACommit makes the same check for the section on all functions of a commit.
func TestFunctionsOfACommit(t *testing.T) {
	t.Parallel()
	wantFunctions(t, "The functions of a commit", commitFunctionsMax)
}

// wantFunctions fails unless a section of ARCHITECTURE.md names 5 or more functions, but no more
// than limit, and all of them exist.
func wantFunctions(t *testing.T, heading string, limit int) {
	t.Helper()
	m := loadModule(t)
	_, section, _ := strings.Cut(documents(t, m)["ARCHITECTURE.md"], "\n## "+heading+"\n")
	section, _, _ = strings.Cut(section, "\n## ")
	named := make(map[string]bool)
	for _, match := range codeName.FindAllStringSubmatch(section, -1) {
		if match[2] == "go" { // the name of a file
			continue
		}
		name := match[1] + "." + match[2]
		switch function, ok := declared(m, match[1], match[2]); {
		case !ok:
			t.Errorf("%q names %s, which does not exist", heading, name)
		case function:
			named[name] = true
		}
	}
	if len(named) < 5 || len(named) > limit {
		t.Errorf("%q names %d functions, at most %d are allowed: %q", heading, len(named), limit, slices.Sorted(maps.Keys(named)))
	}
}

// declared reports whether the package in dir declares name outside its tests, and whether that is
// a function or a method.
func declared(m *module, dir, name string) (function, ok bool) {
	for _, f := range m.files() {
		if f.pkg.dir != dir || f.test {
			continue
		}
		for _, declaration := range f.ast.Decls {
			switch d := declaration.(type) {
			case *ast.FuncDecl:
				function = function || d.Name.Name == name
			case *ast.GenDecl:
				for _, spec := range d.Specs {
					typ, isType := spec.(*ast.TypeSpec)
					ok = ok || isType && typ.Name.Name == name
				}
			}
		}
	}
	return function, ok || function
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

// isSomewhere reports whether tests, a result of testFunctions, contains a test of that name in any
// folder.
func isSomewhere(tests map[string]bool, name string) bool {
	for test := range tests {
		if strings.HasSuffix(test, "."+name) {
			return true
		}
	}
	return false
}

// testStrings returns every string literal in a test or a suite. The names of subtests are among
// them.
func testStrings(m *module) map[string]bool {
	found := make(map[string]bool)
	for _, f := range m.files() {
		if f.test || f.suite {
			for _, text := range stringsOf(f) {
				found[text] = true
			}
		}
	}
	return found
}

// productionStrings returns every string literal in code that is not a test.
func productionStrings(m *module) (found []string) {
	for _, f := range m.files() {
		if !f.test && !f.suite {
			found = append(found, stringsOf(f)...)
		}
	}
	return found
}

// stringsOf returns the values of the string literals of f.
func stringsOf(f *file) (found []string) {
	ast.Inspect(f.ast, func(node ast.Node) bool {
		if literal, ok := node.(*ast.BasicLit); ok && literal.Kind == token.STRING {
			if text, err := strconv.Unquote(literal.Value); err == nil {
				found = append(found, text)
			}
		}
		return true
	})
	return found
}

// makeTargets returns the targets of the Makefile, or nil if there is no Makefile.
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

// TestMechanisms checks that each row of the table names a test that exists, and has an id of its
// own.
func TestMechanisms(t *testing.T) {
	t.Parallel()
	m := loadModule(t)
	rows, seen := 0, make(map[string]bool)
	for line := range strings.Lines(documents(t, m)["docs/design/mechanisms.md"]) {
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

var mechanismID = regexp.MustCompile(`^\|[^|]+\| ?([AFPLB][0-9]+) ?\|`)

// mechanismRow returns the id of a row of the table, which is in its second column.
func mechanismRow(line string) (string, bool) {
	match := mechanismID.FindStringSubmatch(line)
	if match == nil {
		return "", false
	}
	return match[1], true
}
