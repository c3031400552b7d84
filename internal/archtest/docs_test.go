package archtest

import (
	"go/ast"
	"go/token"
	"strings"
)

// checkPackageDocs requires a comment on every package, which says what the package is for.
func checkPackageDocs(m *module) (found []violation) {
	for _, p := range m.packages {
		var docs []string
		production := false
		for _, f := range p.files {
			if f.test {
				continue
			}
			production = true
			if f.ast.Doc != nil {
				docs = append(docs, f.ast.Doc.Text())
			}
		}
		if !production {
			continue
		}
		name := p.name()
		want := "Package " + name + " "
		if name == "main" {
			want = "Command "
		}
		switch {
		case len(docs) != 1:
			found = append(found, violation{rule: "package doc", at: p.dir, text: "exactly one file has the package comment"})
		case !strings.HasPrefix(docs[0], want):
			found = append(found, violation{rule: "package doc", at: p.dir, text: "the package comment starts with " + want})
		}
	}
	return found
}

// name returns the name in the package clause of the files that are not tests.
func (p *pkg) name() string {
	for _, f := range p.files {
		if !f.test {
			return f.ast.Name.Name
		}
	}
	return ""
}

// checkExportedDocs requires a comment on everything that is exported.
func checkExportedDocs(m *module) (found []violation) {
	for _, f := range m.files() {
		if f.test {
			continue
		}
		for _, declaration := range f.ast.Decls {
			for _, node := range undocumented(declaration) {
				found = append(found, m.at("exported doc", f, node, "%s has no comment", node.Name))
			}
		}
	}
	return found
}

// undocumented returns the exported names of a declaration that have no comment.
func undocumented(declaration ast.Decl) []*ast.Ident {
	switch d := declaration.(type) {
	case *ast.FuncDecl:
		if d.Name.IsExported() && d.Doc == nil && exportedReceiver(d) {
			return []*ast.Ident{d.Name}
		}
	case *ast.GenDecl:
		var names []*ast.Ident
		for _, spec := range d.Specs {
			names = append(names, undocumentedSpec(d, spec)...)
		}
		return names
	}
	return nil
}

func undocumentedSpec(group *ast.GenDecl, spec ast.Spec) (names []*ast.Ident) {
	switch s := spec.(type) {
	case *ast.TypeSpec:
		if s.Name.IsExported() && s.Doc == nil && group.Doc == nil {
			names = append(names, s.Name)
		}
	case *ast.ValueSpec:
		// One comment may introduce a group of constants or variables.
		if s.Doc != nil || s.Comment != nil || group.Doc != nil || group.Tok == token.IMPORT {
			return nil
		}
		for _, name := range s.Names {
			if name.IsExported() {
				names = append(names, name)
			}
		}
	}
	return names
}

// exportedReceiver reports whether f is visible outside its package: it is a function, or a method
// of an exported type.
func exportedReceiver(f *ast.FuncDecl) bool {
	if f.Recv == nil {
		return true
	}
	return ast.IsExported(receiverName(f))
}

// receiverName returns the name of the type of f's receiver.
func receiverName(f *ast.FuncDecl) string {
	receiver := f.Recv.List[0].Type
	if star, ok := receiver.(*ast.StarExpr); ok {
		receiver = star.X
	}
	switch generic := receiver.(type) {
	case *ast.IndexExpr:
		receiver = generic.X
	case *ast.IndexListExpr:
		receiver = generic.X
	}
	name, ok := receiver.(*ast.Ident)
	if !ok {
		return ""
	}
	return name.Name
}

// checkTODO requires an issue number after every TODO.
func checkTODO(m *module) (found []violation) {
	for _, f := range m.files() {
		if f.pkg.dir == "internal/archtest" {
			continue // the code of this rule itself
		}
		for _, group := range f.ast.Comments {
			for _, comment := range group.List {
				for _, marker := range []string{"TODO", "FIXME", "XXX"} {
					if strings.Contains(strings.ReplaceAll(comment.Text, "TODO(#", ""), marker) {
						found = append(found, m.at("todo", f, comment, "%s without the number of an issue", marker))
					}
				}
			}
		}
	}
	return found
}
