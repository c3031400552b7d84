package archtest

import (
	"fmt"
	"go/ast"
	"go/doc"
	"slices"
)

// entries returns the types with which users of a package begin, by folder.
func entries() map[string][]string {
	return map[string][]string{
		"catalog":        {"Catalog"},
		"catalog/commit": {"Pipeline"},
		"ledger":         {"Ledger"},
		"metadata":       {"Document", "ViewDocument"},
		"registry":       {"Store"},
	}
}

// checkExamples requires an example for each of these types, with output that go test compares.
func checkExamples(m *module) (found []violation) {
	for dir, names := range entries() {
		at := slices.IndexFunc(m.packages, func(p *pkg) bool { return p.dir == dir })
		switch {
		case at >= 0:
			for _, name := range names {
				if !m.packages[at].hasExample(name) {
					found = append(found, violation{rule: "example", at: dir,
						text: fmt.Sprintf("func Example%s is missing, or says no output", name)})
				}
			}
		case m.root != "": // m is the repository, not source from a test
			found = append(found, violation{rule: "example", at: dir, text: "there is no such package"})
		}
	}
	return found
}

func (p *pkg) hasExample(name string) bool {
	var tests []*ast.File
	for _, f := range p.files {
		if f.test {
			tests = append(tests, f.ast)
		}
	}
	return slices.ContainsFunc(doc.Examples(tests...), func(e *doc.Example) bool {
		return e.Name == name && e.Output != ""
	})
}
