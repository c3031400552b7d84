package archtest

import (
	"go/ast"
	"go/token"
	"strconv"
	"strings"
)

// systemMakers returns the packages that may make a caller who may do everything, and what for.
func systemMakers() map[string]string {
	return map[string]string{
		"":                  "declares it",
		"catalog/grants":    "explains what another caller may do, whose objects it finds itself",
		"catalog/claims":    "ends undrop windows by itself: the change record says so",
		"catalog/directory": "steps of its own change records: the change record says so",
		"catalog/gate":      "knows such callers when they ask",
		"maintenance/purge": "deletes files of dropped tables: the change record says so",
		"cmd/moorage":       "starts the jobs, opens stores for operators, and looks keys up for authentication",
	}
}

// checkSystem finds callers of jobs of the server that others than its own packages make: with
// moorage.System, or by a name that begins as theirs do. Nothing that a request says may become
// one, so above all no face may know how.
func checkSystem(m *module) (found []violation) {
	for _, f := range m.files() {
		if _, may := systemMakers()[f.pkg.dir]; may || f.test || f.suite {
			continue
		}
		ast.Inspect(f.ast, func(node ast.Node) bool {
			switch n := node.(type) {
			case *ast.SelectorExpr:
				if importPath, name, ok := f.selected(n); ok && importPath == "moorage" && name == "System" {
					found = append(found, m.at("system caller", f, n, "moorage.System is used here, whose callers may do everything"))
				}
			case *ast.BasicLit:
				if text, err := strconv.Unquote(n.Value); n.Kind == token.STRING && err == nil && isSystemName(text) {
					found = append(found, m.at("system caller", f, n, "%q begins as the names of jobs of the server", text))
				}
			}
			return true
		})
	}
	return found
}

// isSystemName reports whether text may become the name of a job. Kubernetes has subjects that
// begin alike; they are behind the alias of their issuer.
func isSystemName(text string) bool {
	return strings.HasPrefix(text, "system:") && !strings.HasPrefix(text, "system:serviceaccount:")
}
