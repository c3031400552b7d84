package archtest

import (
	"go/ast"
	"go/token"
	"strconv"
	"strings"
)

// systemMakers returns the packages that may create a caller with all privileges, each with the
// purpose.
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

// checkSystem finds code outside systemMakers that creates a caller for a job of the server: with
// moorage.System, or from a name with the prefix of such callers. Data from a request must never
// become such a caller. So above all, packages that answer requests must not create one.
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

// isSystemName reports whether text may become the name of a job. Subjects of Kubernetes have a
// similar beginning, but there the alias of their issuer precedes it.
func isSystemName(text string) bool {
	return strings.HasPrefix(text, "system:") && !strings.HasPrefix(text, "system:serviceaccount:")
}
