package archtest

import (
	"go/ast"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"
)

// glossaryMax is the maximum number of words that a reader has to learn.
const glossaryMax = 40

// glossaryRow is a row of the glossary: a word, its meaning, and the packages that may use it in
// exported names. If the row lists no packages, all packages may use the word.
var glossaryRow = regexp.MustCompile(`(?m)^\| ([^|]+) \| ([^|]+) \| ([^|]*)\|$`)

// glossaryExceptions returns exported names that use a word of the glossary in another meaning,
// each with the reason.
func glossaryExceptions() map[string]string {
	return map[string]string{
		"audit.Claim":            "a process owns a log file, as a table owns a location",
		"catalog/gate.ClaimWork": "the name of the operation of the API",
	}
}

// retiredWords returns former words for what the glossary now calls by another word.
func retiredWords() []string {
	return []string{"care", "tend", "tended", "tending", "upkeep", "steer"}
}

// TestGlossary checks that the glossary is short, and that its words have one meaning in exported
// names. No exported name may contain a retired word.
func TestGlossary(t *testing.T) {
	t.Parallel()
	m := loadModule(t)
	_, text, _ := strings.Cut(documents(t, m)["ARCHITECTURE.md"], "\n## Glossary\n")
	text, _, _ = strings.Cut(text, "\n## ")
	rows := glossaryRow.FindAllStringSubmatch(text, -1)
	if len(rows) < 10 || len(rows) > glossaryMax {
		t.Errorf("the glossary has %d words, and may have %d", len(rows)-2, glossaryMax)
	}
	names := exportedNames(m)
	for _, row := range rows {
		word, packages := row[1], codeSpan.FindAllStringSubmatch(row[3], -1)
		if len(packages) == 0 {
			continue
		}
		var allowed []string
		for _, each := range packages {
			allowed = append(allowed, each[1])
		}
		used := false
		for name, dir := range names {
			if !hasWord(name, word) {
				continue
			}
			used = true
			if _, excepted := glossaryExceptions()[name]; !excepted && !slices.Contains(allowed, dir) {
				t.Errorf("%s uses %q: the glossary has that word for %q only", name, word, allowed)
			}
		}
		if !used {
			t.Errorf("no exported name uses %q, for which the glossary names packages", word)
		}
	}
	for name := range names {
		for _, word := range retiredWords() {
			if hasWord(name, word) {
				t.Errorf("%s uses %q: see the glossary", name, word)
			}
		}
	}
	for name := range glossaryExceptions() {
		if _, found := names[name]; !found {
			t.Errorf("the exception %s is no exported name", name)
		}
	}
}

// exportedNames returns the folders of the exported declarations of production code, by folder and
// name.
func exportedNames(m *module) map[string]string {
	names := make(map[string]string)
	for _, f := range m.files() {
		if f.test || f.suite {
			continue
		}
		add := func(id *ast.Ident) {
			if id.IsExported() {
				names[f.pkg.dir+"."+id.Name] = f.pkg.dir
			}
		}
		for _, decl := range f.ast.Decls {
			switch decl := decl.(type) {
			case *ast.FuncDecl:
				if decl.Recv == nil {
					add(decl.Name)
				}
			case *ast.GenDecl:
				for _, spec := range decl.Specs {
					switch spec := spec.(type) {
					case *ast.TypeSpec:
						add(spec.Name)
					case *ast.ValueSpec:
						for _, id := range spec.Names {
							add(id)
						}
					}
				}
			}
		}
	}
	return names
}

// hasWord reports whether a name in camel case contains a word, in the singular or plural.
func hasWord(name, word string) bool {
	name = name[strings.LastIndexByte(name, '.')+1:]
	begin := 0
	for i, r := range name + "X" {
		if i > begin && unicode.IsUpper(r) {
			if part := strings.ToLower(name[begin:i]); part == word || part == word+"s" {
				return true
			}
			begin = i
		}
	}
	return false
}
