package archtest

import (
	"fmt"
	"go/ast"
	"go/types"
)

// Bounds of size, in lines.
const (
	fileLinesMax     = 800
	functionLinesMax = 70
	// longFunctionsPercentMax is how many of all functions may be longer than functionLinesMax.
	longFunctionsPercentMax = 3
	// methodsMax is how many methods a type may have, exported or not. With more it is several
	// types. The methods of a type of its package that it embeds count too, except in tests.
	methodsMax = 40
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

// checkMethods finds types that should be several.
func checkMethods(m *module) (found []violation) {
	for _, f := range m.files() {
		for _, declaration := range f.ast.Decls {
			group, ok := declaration.(*ast.GenDecl)
			if !ok {
				continue
			}
			for _, spec := range group.Specs {
				s, ok := spec.(*ast.TypeSpec)
				if !ok {
					continue
				}
				if n := methodCount(f.info.Defs[s.Name], f.test); n > methodsMax {
					found = append(found, m.at("methods", f, s, "%s has %d methods, at most %d are allowed", s.Name.Name, n, methodsMax))
				}
			}
		}
	}
	return found
}

func methodCount(name types.Object, declared bool) (n int) {
	t := name.Type()
	if !types.IsInterface(t) {
		t = types.NewPointer(t)
	}
	for method := range types.NewMethodSet(t).Methods() {
		if method.Obj().Pkg() == name.Pkg() && (!declared || len(method.Index()) == 1) {
			n++
		}
	}
	return n
}
