package archtest

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// modulePath is the prefix of the import paths of this module.
const modulePath = "moorage"

// module is the parsed source of the repository. Package os reads the files, so that go test
// notices changes in any of them.
type module struct {
	root     string
	fset     *token.FileSet
	packages []*pkg         // by folder
	importer types.Importer // of compiled packages; nil until typesOf needs it
}

// pkg is one folder of Go files.
type pkg struct {
	dir   string // relative to the root, slashes; "" for the root
	files []*file
	typed *typed // nil until typesOf is called
}

// file is one Go file.
type file struct {
	pkg   *pkg
	path  string // relative to the root, slashes
	test  bool   // its name ends in _test.go
	suite bool   // its package is a suite that tests of other packages run
	text  string
	lines int
	ast   *ast.File
	info  *types.Info // shared by the files that were checked together
}

// violation is one place where the source breaks a rule.
type violation struct {
	rule string
	at   string // path of a file, or of a folder
	line int    // 0: the whole file or folder
	text string
}

func (v violation) String() string {
	if v.line == 0 {
		return fmt.Sprintf("%s: %s (%s)", v.at, v.text, v.rule)
	}
	return fmt.Sprintf("%s:%d: %s (%s)", v.at, v.line, v.text, v.rule)
}

// loadModule parses everything that belongs to the module.
func loadModule(t *testing.T) *module {
	t.Helper()
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(root, "go.mod")); err != nil {
		t.Fatal(err)
	}
	m := &module{root: root, fset: token.NewFileSet()}
	err = filepath.WalkDir(root, func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if !entry.IsDir() {
			return nil
		}
		base := entry.Name()
		if name != root && (strings.HasPrefix(base, ".") || strings.HasPrefix(base, "_") || base == "testdata" || base == "bin" || base == "moorage-data") {
			return filepath.SkipDir
		}
		return m.loadFolder(name)
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(m.packages) < 5 {
		t.Fatalf("found only %d packages below %s", len(m.packages), root)
	}
	return m
}

func (m *module) loadFolder(dir string) error {
	names, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil || len(names) == 0 {
		return err
	}
	relative, err := filepath.Rel(m.root, dir)
	if err != nil {
		return err
	}
	p := &pkg{dir: strings.TrimPrefix(filepath.ToSlash(relative), ".")}
	for _, name := range names {
		source, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		if err := m.add(p, path.Join(p.dir, filepath.Base(name)), source); err != nil {
			return err
		}
	}
	m.resolve(p)
	m.packages = append(m.packages, p)
	return nil
}

func (m *module) add(p *pkg, name string, source []byte) error {
	parsed, err := parser.ParseFile(m.fset, name, source, parser.ParseComments)
	if err != nil {
		return err
	}
	p.files = append(p.files, &file{
		pkg: p, path: name, ast: parsed,
		test:  strings.HasSuffix(name, "_test.go"),
		suite: strings.HasPrefix(p.dir, "testkit"),
		text:  string(source),
		lines: strings.Count(string(source), "\n"),
	})
	return nil
}

// resolve finds the objects that the names in p's files refer to, as far as that is possible
// without reading other packages.
func (m *module) resolve(p *pkg) {
	groups := make(map[string][]*file) // by package clause; external tests have their own package
	for _, f := range p.files {
		groups[f.ast.Name.Name] = append(groups[f.ast.Name.Name], f)
	}
	for name, files := range groups {
		info := &types.Info{Defs: make(map[*ast.Ident]types.Object), Uses: make(map[*ast.Ident]types.Object)}
		parsed := make([]*ast.File, len(files))
		for i, f := range files {
			parsed[i], f.info = f.ast, info
		}
		config := types.Config{Importer: hollowImporter{}, Error: func(error) {}, FakeImportC: true}
		// Errors always occur, because imported packages are hollow.
		_, _ = config.Check(name, m.fset, parsed, info)
	}
}

// hollowImporter gives packages that have a name and nothing in them.
type hollowImporter struct{}

var versionElement = regexp.MustCompile(`^v[0-9]+$`)

// Import returns a hollow package.
func (hollowImporter) Import(importPath string) (*types.Package, error) {
	name := path.Base(importPath)
	if versionElement.MatchString(name) {
		name = path.Base(path.Dir(importPath))
	}
	p := types.NewPackage(importPath, name)
	p.MarkComplete()
	return p, nil
}

func (m *module) line(node ast.Node) int { return m.fset.Position(node.Pos()).Line }

func (m *module) at(rule string, f *file, node ast.Node, format string, args ...any) violation {
	return violation{rule: rule, at: f.path, line: m.line(node), text: fmt.Sprintf(format, args...)}
}

// files yields every file of the module.
func (m *module) files() []*file {
	var all []*file
	for _, p := range m.packages {
		all = append(all, p.files...)
	}
	return all
}

// importPath returns the path that an import declaration names.
func importPath(spec *ast.ImportSpec) string { return strings.Trim(spec.Path.Value, "`\"") }

// imports reports whether a file of p imports a package.
func (p *pkg) imports(name string) bool {
	return slices.ContainsFunc(p.files, func(f *file) bool {
		return slices.ContainsFunc(f.ast.Imports, func(spec *ast.ImportSpec) bool { return importPath(spec) == name })
	})
}

// selected returns the import path and the name of a selector expression such as package.Name. ok
// is false if e is another expression.
func (f *file) selected(e ast.Expr) (importPath, name string, ok bool) {
	selector, ok := e.(*ast.SelectorExpr)
	if !ok {
		return "", "", false
	}
	ident, ok := selector.X.(*ast.Ident)
	if !ok {
		return "", "", false
	}
	imported, ok := f.info.Uses[ident].(*types.PkgName)
	if !ok {
		return "", "", false
	}
	return imported.Imported().Path(), selector.Sel.Name, true
}

// parse makes a module of one package for the tests of the rules; sources are by file name.
func parse(t *testing.T, dir string, sources map[string]string) *module {
	t.Helper()
	m := &module{fset: token.NewFileSet()}
	p := &pkg{dir: dir}
	names := make([]string, 0, len(sources))
	for name := range sources {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		if err := m.add(p, path.Join(dir, name), []byte(sources[name])); err != nil {
			t.Fatal(err)
		}
	}
	m.resolve(p)
	m.packages = []*pkg{p}
	return m
}
