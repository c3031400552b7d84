package archtest

import (
	"fmt"
	"go/ast"
)

// Bounds of size, in lines.
const (
	fileLinesMax     = 800
	functionLinesMax = 70
	// longFunctionsPercentMax is how many of all functions may be longer than functionLinesMax.
	longFunctionsPercentMax = 3
)

// checkFileSize finds files that should be two.
func checkFileSize(m *module) (found []violation) {
	for _, f := range m.files() {
		if f.lines > fileLinesMax && !ast.IsGenerated(f.ast) {
			found = append(found, violation{rule: "file size", at: f.path,
				text: fmt.Sprintf("%d lines, at most %d are allowed", f.lines, fileLinesMax)})
		}
	}
	return found
}

// checkFunctionSize finds the long functions, if there are too many of them.
func checkFunctionSize(m *module) (found []violation) {
	functions := 0
	for _, f := range m.files() {
		for _, declaration := range f.ast.Decls {
			d, ok := declaration.(*ast.FuncDecl)
			if !ok || d.Body == nil {
				continue
			}
			functions++
			lines := m.fset.Position(d.End()).Line - m.line(d) + 1
			if lines > functionLinesMax {
				found = append(found, m.at("function size", f, d, "%s has %d lines", d.Name.Name, lines))
			}
		}
	}
	if len(found)*100 <= functions*longFunctionsPercentMax {
		return nil
	}
	return found
}
