package archtest

import (
	"fmt"
	"go/ast"
	"go/build"
	"go/constant"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
)

// typed holds the result of type-checking a package, without its tests.
type typed struct {
	files   []*file // only files that are compiled on this machine
	info    *types.Info
	failure error
}

// exports returns the files with the compiled form of packages of other modules, by import path.
var exports = sync.OnceValues(func() (map[string]string, error) {
	imported, err := goList("-f", `{{join .Imports "\n"}}`, "./...")
	if err != nil {
		return nil, err
	}
	imported = slices.DeleteFunc(imported, func(name string) bool {
		_, ours := ownPackage(name)
		return ours
	})
	lines, err := goList(append([]string{"-export", "-deps", "-f", "{{.ImportPath}} {{.Export}}"}, imported...)...)
	found := make(map[string]string)
	for _, line := range lines {
		name, file, _ := strings.Cut(line, " ")
		found[name] = file
	}
	return found, err
})

// goList returns the distinct lines that go list prints.
func goList(arguments ...string) ([]string, error) {
	command := exec.Command("go", append([]string{"list"}, arguments...)...)
	command.Dir = filepath.Join("..", "..")
	output, err := command.Output()
	if err != nil {
		return nil, fmt.Errorf("%v: %w: %s", command, err, exitText(err))
	}
	lines := strings.Split(strings.TrimSpace(string(output)), "\n")
	slices.Sort(lines)
	return slices.Compact(lines), nil
}

// openExport opens the compiled form of a package.
func openExport(importPath string) (io.ReadCloser, error) {
	files, err := exports()
	if err != nil {
		return nil, err
	}
	if files[importPath] == "" {
		return nil, fmt.Errorf("%s is not compiled", importPath)
	}
	return os.Open(files[importPath])
}

// typeImporter imports our own packages from their source, without the bodies of functions. It
// imports other packages from their compiled form, which rarely changes.
type typeImporter struct {
	fset     *token.FileSet
	compiled types.Importer
	ours     map[string]*types.Package
}

func newTypeImporter(fset *token.FileSet) *typeImporter {
	return &typeImporter{fset, importer.ForCompiler(fset, "gc", openExport), make(map[string]*types.Package)}
}

// Import implements types.Importer.
func (i *typeImporter) Import(importPath string) (*types.Package, error) {
	dir, ours := ownPackage(importPath)
	if !ours {
		return i.compiled.Import(importPath)
	}
	if known := i.ours[importPath]; known != nil {
		return known, nil
	}
	folder, err := build.ImportDir(filepath.Join("..", "..", dir), 0)
	if err != nil {
		return nil, err
	}
	var files []*ast.File
	for _, name := range folder.GoFiles {
		parsed, err := parser.ParseFile(i.fset, filepath.Join(folder.Dir, name), nil, parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		files = append(files, parsed)
	}
	config := types.Config{Importer: i, IgnoreFuncBodies: true}
	i.ours[importPath], err = config.Check(importPath, i.fset, files, nil)
	return i.ours[importPath], err
}

// typesOf type-checks p. Unlike resolve, it reads imported packages.
func (m *module) typesOf(p *pkg) *typed {
	if p.typed != nil {
		return p.typed
	}
	if m.importer == nil {
		m.importer = newTypeImporter(m.fset)
	}
	p.typed = &typed{info: &types.Info{
		Types: make(map[ast.Expr]types.TypeAndValue),
		Defs:  make(map[*ast.Ident]types.Object), Uses: make(map[*ast.Ident]types.Object),
	}}
	var parsed []*ast.File
	for _, f := range p.files {
		if !f.test && f.compiled() {
			p.typed.files = append(p.typed.files, f)
			parsed = append(parsed, f.ast)
		}
	}
	config := types.Config{Importer: m.importer}
	_, p.typed.failure = config.Check(path.Join(modulePath, p.dir), m.fset, parsed, p.typed.info)
	return p.typed
}

// compiled reports whether f is compiled on this machine.
func (f *file) compiled() bool {
	context := build.Default
	context.OpenFile = func(string) (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(f.text)), nil }
	matches, err := context.MatchFile(f.pkg.dir, path.Base(f.path))
	return err == nil && matches
}

// served calls visit for each file of the server that is compiled on this machine, with its type
// information. It leaves out suites and tests.
func (m *module) served(visit func(f *file, info *types.Info)) {
	for _, p := range m.packages {
		t := m.typesOf(p)
		for _, f := range t.files {
			if !f.suite {
				visit(f, t.info)
			}
		}
	}
}

// checkTypes finds packages that do not compile. Rules that need types would find nothing in them.
func checkTypes(m *module) (found []violation) {
	for _, p := range m.packages {
		if err := m.typesOf(p).failure; err != nil {
			found = append(found, violation{rule: "types", at: p.dir, text: err.Error()})
		}
	}
	return found
}

// door is a method of a port that only a few places may call, because each call needs an argument
// for its safety. The rule recognizes the method by its name and its second parameter. So a caller
// cannot evade the rule by declaring an interface of its own.
type door struct {
	rule   string
	method string
	second string // type of the second parameter
	may    func(f *file) bool
	reason string
}

func doors() []door {
	return []door{
		{"one caller of Apply", "Apply", "moorage/registry.Batch",
			func(f *file) bool { return f.pkg.dir == "ledger" || strings.HasPrefix(f.pkg.dir+"/", "registry/") },
			"package ledger alone settles an Apply whose outcome is unknown, and writes its change record"},
		{"one caller of deletion", "Delete", "[]string",
			func(f *file) bool { return f.path == "catalog/documents/delete.go" },
			"each reason to delete files is a function of documents/delete.go, which says why no reader can need them"},
	}
}

// checkApply finds calls of registry.Store.Apply outside package ledger.
func checkApply(m *module) []violation { return checkDoor(m, doors()[0]) }

// checkDeletion finds calls of storage.Store.Delete outside documents/delete.go.
func checkDeletion(m *module) []violation { return checkDoor(m, doors()[1]) }

// checkDoor finds uses of the method in places that may not use it. A method that wraps it may call
// the wrapped method.
func checkDoor(m *module, d door) (found []violation) {
	m.served(func(f *file, info *types.Info) {
		if d.may(f) {
			return
		}
		for _, declaration := range f.ast.Decls {
			if function, ok := declaration.(*ast.FuncDecl); ok && d.is(info.Defs[function.Name]) {
				continue
			}
			ast.Inspect(declaration, func(node ast.Node) bool {
				if selector, ok := node.(*ast.SelectorExpr); ok && d.is(info.Uses[selector.Sel]) {
					found = append(found, m.at(d.rule, f, selector, "%s is called here: %s", d.method, d.reason))
				}
				return true
			})
		}
	})
	return found
}

// is reports whether object is the method of d: it has that name and that second parameter.
func (d door) is(object types.Object) bool {
	function, ok := object.(*types.Func)
	if !ok || function.Name() != d.method || function.Signature().Recv() == nil {
		return false
	}
	parameters := function.Signature().Params()
	return parameters.Len() == 2 && parameters.At(0).Type().String() == "context.Context" &&
		parameters.At(1).Type().String() == d.second
}

// checkOperations checks that the op in an error names the place that makes the error: the last
// element of the folder, a dot, and the function or method. A function that has op as a parameter
// passes that on. The rule ignores "".
func checkOperations(m *module) (found []violation) {
	m.served(func(f *file, info *types.Info) {
		for _, declaration := range f.ast.Decls {
			function, ok := declaration.(*ast.FuncDecl)
			if !ok {
				continue
			}
			want := path.Base(path.Join(modulePath, f.pkg.dir)) + "." + function.Name.Name
			ast.Inspect(function, func(node ast.Node) bool {
				op := operationOf(node, info)
				if op == nil {
					return true
				}
				if value := info.Types[op].Value; value != nil {
					if got := constant.StringVal(value); got != want && got != "" {
						found = append(found, m.at("operation", f, op, "%q stands in %q", got, want))
					}
				} else if name, ok := op.(*ast.Ident); !ok || name.Name != "op" {
					found = append(found, m.at("operation", f, op, "an op is a constant"))
				}
				return true
			})
		}
	})
	return found
}

// operationOf returns the op in node: the argument of a call for the string parameter op, or the
// field Op of an error. It returns nil for other nodes.
func operationOf(node ast.Node, info *types.Info) ast.Expr {
	switch n := node.(type) {
	case *ast.KeyValueExpr:
		key, ok := n.Key.(*ast.Ident)
		if field := info.Uses[key]; ok && field != nil && field.Name() == "Op" && field.Pkg().Path() == modulePath {
			return n.Value
		}
	case *ast.CallExpr:
		signature, ok := types.Unalias(info.Types[n.Fun].Type).(*types.Signature)
		if !ok {
			return nil
		}
		for i := range min(signature.Params().Len(), len(n.Args)) {
			parameter := signature.Params().At(i)
			if parameter.Name() == "op" && parameter.Type() == types.Typ[types.String] {
				return n.Args[i]
			}
		}
	}
	return nil
}
