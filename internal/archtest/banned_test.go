package archtest

import (
	"go/ast"
	"go/token"
	"go/types"
	"slices"
	"strings"
)

// ban is a function, or a group of functions, whose use is forbidden.
type ban struct {
	importPath string
	names      []string // empty: every function except the ones in except
	except     []string
	callOnly   bool     // a mention without a call is allowed
	tests      bool     // the ban also holds for tests
	dirs       []string // packages that may use it
	// fakeTime allows the function in packages that use testing/synctest, where waiting takes no
	// time.
	fakeTime bool
	reason   string
}

func bans() []ban {
	const cmd = "cmd/moorage"
	return []ban{
		{importPath: "time", names: []string{"Now", "Since", "Until"}, callOnly: true, dirs: []string{cmd},
			reason: "time comes from a field Now, whose default a constructor sets"},
		{importPath: "time", names: []string{"Sleep"}, tests: true, fakeTime: true,
			reason: "wait for a signal, or use testing/synctest"},
		{importPath: "time", names: []string{"Tick"}, tests: true, reason: "nobody can stop it"},
		{importPath: "os", names: []string{"Getenv", "LookupEnv", "Environ", "ExpandEnv"}, dirs: []string{cmd},
			reason: "the environment is read in cmd only"},
		{importPath: "os", names: []string{"Exit"}, dirs: []string{cmd}, reason: "only main ends the process"},
		{importPath: "fmt", names: []string{"Print", "Printf", "Println"},
			reason: "libraries do not write to stdout, and commands write to what run was given"},
		{importPath: "log", reason: "logs go through log/slog and a field"},
		{importPath: "log/slog", names: []string{"Debug", "Info", "Warn", "Error", "Log", "Default", "SetDefault", "DebugContext", "InfoContext", "WarnContext", "ErrorContext"},
			tests: true, reason: "the logger is a field"},
		{importPath: "math/rand", tests: true, reason: "use math/rand/v2 with a seed"},
		{importPath: "math/rand/v2", except: []string{"New", "NewPCG", "NewChaCha8", "NewZipf", "Rand", "Source", "PCG", "ChaCha8", "Zipf"},
			tests: true, reason: "chance is seeded, and the seed is printed when a test fails"},
		{importPath: "net/http", names: []string{"Get", "Head", "Post", "PostForm", "HandleFunc", "Handle", "DefaultServeMux", "ListenAndServe"},
			reason: "say which client, context or mux"},
		{importPath: "reflect", names: []string{"DeepEqual"},
			reason: "compare with ==, slices.Equal or maps.Equal"},
		{importPath: "moorage/access", names: []string{"Admin", "Alter", "Audit", "Create", "Describe", "Drop", "Locate", "Maintain", "Manage", "Operate", "Purge", "Read", "Write"},
			dirs: []string{"access", "catalog/gate"}, reason: "the table of verbs has what each asks for: gate.Verb.Needs"},
	}
}

// checkBanned finds uses of banned functions.
func checkBanned(m *module) (found []violation) {
	for _, f := range m.files() {
		called := make(map[ast.Expr]bool)
		ast.Inspect(f.ast, func(node ast.Node) bool {
			switch n := node.(type) {
			case *ast.CallExpr:
				called[n.Fun] = true
			case *ast.SelectorExpr:
				importPath, name, ok := f.selected(n)
				if !ok {
					return true
				}
				for _, b := range bans() {
					if b.covers(f, importPath, name, called[n]) {
						found = append(found, m.at("banned", f, n, "%s.%s: %s", importPath, name, b.reason))
					}
				}
			}
			return true
		})
	}
	return found
}

func (b ban) covers(f *file, importPath, name string, called bool) bool {
	switch {
	case b.importPath != importPath,
		(f.test || f.suite) && !b.tests,
		b.callOnly && !called,
		b.fakeTime && f.pkg.imports("testing/synctest"),
		slices.Contains(b.dirs, f.pkg.dir):
		return false
	case len(b.names) > 0:
		return slices.Contains(b.names, name)
	}
	return !slices.Contains(b.except, name)
}

// checkInit finds functions that run when a package is loaded.
func checkInit(m *module) (found []violation) {
	for _, f := range m.files() {
		for _, declaration := range f.ast.Decls {
			if d, ok := declaration.(*ast.FuncDecl); ok && d.Recv == nil && d.Name.Name == "init" {
				found = append(found, m.at("init", f, d, "init functions hide dependencies; cmd passes constructors"))
			}
		}
	}
	return found
}

// checkVariables finds package variables that change: by an assignment, ++, &, delete or clear, or
// because their type exists to hold changing state.
func checkVariables(m *module) (found []violation) {
	for _, p := range m.packages {
		for _, f := range p.files {
			if !f.test {
				found = append(found, m.mutableTypes(f)...)
				found = append(found, m.writes(f)...)
			}
		}
	}
	return found
}

// mutableTypes finds variables whose type shows that they change.
func (m *module) mutableTypes(f *file) (found []violation) {
	for _, declaration := range f.ast.Decls {
		d, ok := declaration.(*ast.GenDecl)
		if !ok || d.Tok != token.VAR {
			continue
		}
		for _, spec := range d.Specs {
			s := spec.(*ast.ValueSpec)
			ast.Inspect(s, func(node ast.Node) bool {
				if _, inside := node.(*ast.FuncLit); inside {
					return false
				}
				e, ok := node.(ast.Expr)
				if !ok {
					return true
				}
				if importPath, name, ok := f.selected(e); ok && isState(importPath, name) {
					found = append(found, m.at("mutable variable", f, s, "%s.%s in a variable of the package", importPath, name))
				}
				return true
			})
			if len(s.Values) == 0 && !blank(s) && !embedded(d.Doc) && !embedded(s.Doc) {
				found = append(found, m.at("mutable variable", f, s, "%s has no value, so it can only be there to be changed", s.Names[0].Name))
			}
		}
	}
	return found
}

// isState reports whether a type or function of the standard library exists to hold changing state.
// A Pool holds memory but no state; a OnceValue is a constant that is computed late.
func isState(importPath, name string) bool {
	switch importPath {
	case "sync":
		return name != "Pool" && name != "OnceValue" && name != "OnceValues"
	case "sync/atomic":
		return true
	}
	return false
}

// embedded reports whether the variable gets its value from a go:embed directive.
func embedded(doc *ast.CommentGroup) bool {
	return doc != nil && slices.ContainsFunc(doc.List, func(c *ast.Comment) bool { return strings.HasPrefix(c.Text, "//go:embed ") })
}

func blank(s *ast.ValueSpec) bool {
	return !slices.ContainsFunc(s.Names, func(name *ast.Ident) bool { return name.Name != "_" })
}

// writes finds the places in f that write to a package variable.
func (m *module) writes(f *file) (found []violation) {
	report := func(e ast.Expr) {
		if name := f.packageVariable(e); name != "" {
			found = append(found, m.at("mutable variable", f, e, "%s is a variable of the package and is written to", name))
		}
	}
	ast.Inspect(f.ast, func(node ast.Node) bool {
		switch n := node.(type) {
		case *ast.AssignStmt:
			for _, left := range n.Lhs {
				report(left)
			}
		case *ast.IncDecStmt:
			report(n.X)
		case *ast.RangeStmt:
			report(n.Key)
			report(n.Value)
		case *ast.UnaryExpr:
			if n.Op == token.AND {
				report(n.X)
			}
		case *ast.CallExpr:
			name, ok := n.Fun.(*ast.Ident)
			if ok && (name.Name == "delete" || name.Name == "clear") && len(n.Args) > 0 {
				report(n.Args[0])
			}
		}
		return true
	})
	return found
}

// packageVariable returns the name of the package variable that e denotes, or denotes a part of.
func (f *file) packageVariable(e ast.Expr) string {
	for {
		switch inner := e.(type) {
		case *ast.IndexExpr:
			e = inner.X
		case *ast.SelectorExpr:
			e = inner.X
		case *ast.ParenExpr:
			e = inner.X
		case *ast.StarExpr:
			e = inner.X
		case *ast.Ident:
			v, ok := f.info.Uses[inner].(*types.Var)
			if ok && v.Parent() != nil && v.Pkg() != nil && v.Parent() == v.Pkg().Scope() {
				return inner.Name
			}
			return ""
		default:
			return ""
		}
	}
}

// checkErrorText finds code that inspects the text of an error to learn its cause.
func checkErrorText(m *module) (found []violation) {
	for _, f := range m.files() {
		if f.test {
			continue
		}
		ast.Inspect(f.ast, func(node ast.Node) bool {
			call, ok := node.(*ast.CallExpr)
			if !ok {
				return true
			}
			importPath, name, ok := f.selected(call.Fun)
			looks := ok && importPath == "strings" && (name == "Contains" || name == "EqualFold" || strings.HasPrefix(name, "Has"))
			if looks && slices.ContainsFunc(call.Args, isErrorText) {
				found = append(found, m.at("error text", f, call, "errors are told apart with errors.Is, errors.As or KindOf"))
			}
			return true
		})
	}
	return found
}

// isErrorText reports whether e is a call of a method Error without arguments.
func isErrorText(e ast.Expr) bool {
	call, ok := e.(*ast.CallExpr)
	if !ok || len(call.Args) > 0 {
		return false
	}
	selector, ok := call.Fun.(*ast.SelectorExpr)
	return ok && selector.Sel.Name == "Error"
}

// checkContextFields finds structs that store a context. A context belongs to one call.
func checkContextFields(m *module) (found []violation) {
	for _, f := range m.files() {
		if f.test || f.suite {
			continue
		}
		ast.Inspect(f.ast, func(node ast.Node) bool {
			structure, ok := node.(*ast.StructType)
			if !ok {
				return true
			}
			for _, field := range structure.Fields.List {
				if importPath, name, ok := f.selected(field.Type); ok && importPath == "context" && name == "Context" {
					found = append(found, m.at("context field", f, field, "a context is the first parameter of whatever blocks"))
				}
			}
			return true
		})
	}
	return found
}

// checkContextValues finds values in contexts. Only the root package may add some: the caller and
// the id of a request, which are needed everywhere. All else that a function needs is a parameter,
// which a reader sees and the compiler checks.
func checkContextValues(m *module) (found []violation) {
	for _, f := range m.files() {
		if f.test || f.suite || f.path == "context.go" {
			continue
		}
		ast.Inspect(f.ast, func(node ast.Node) bool {
			if e, ok := node.(ast.Expr); ok {
				if importPath, name, _ := f.selected(e); importPath == "context" && name == "WithValue" {
					found = append(found, m.at("context value", f, e, "a context carries what context.go of the root has, and no more"))
				}
			}
			return true
		})
	}
	return found
}

// checkSkips finds tests that skip themselves. Tests that cannot run everywhere live in interop, or
// run only if a flag selects them.
func checkSkips(m *module) (found []violation) {
	for _, f := range m.files() {
		if !f.test && !f.suite {
			continue
		}
		ast.Inspect(f.ast, func(node ast.Node) bool {
			selector, ok := node.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			receiver, ok := selector.X.(*ast.Ident)
			if ok && (receiver.Name == "t" || receiver.Name == "b" || receiver.Name == "f" || receiver.Name == "tb") &&
				slices.Contains([]string{"Skip", "Skipf", "SkipNow"}, selector.Sel.Name) {
				found = append(found, m.at("skip", f, selector, "a test that is skipped shows nothing"))
			}
			return true
		})
	}
	return found
}

// checkPathParameters finds code that takes names from paths without web.PathParam, which decodes
// them.
func checkPathParameters(m *module) (found []violation) {
	for _, f := range m.files() {
		if f.test || f.path == "internal/web/params.go" {
			continue
		}
		ast.Inspect(f.ast, func(node ast.Node) bool {
			selector, ok := node.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			importPath, name, _ := f.selected(selector)
			if selector.Sel.Name == "PathValue" || strings.HasPrefix(importPath, "github.com/go-chi/chi/") && name == "URLParam" {
				found = append(found, m.at("path parameter", f, selector, "names in paths are read with web.PathParam"))
			}
			return true
		})
	}
	return found
}
