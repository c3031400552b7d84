package archtest

import (
	"maps"
	"path"
	"slices"
	"strings"
	"testing"
)

// cycleFilesMax is how many files of one package may need each other in a circle. More cannot be
// read one after the other.
const cycleFilesMax = 8

// checkFileCycles finds packages whose files need each other in too large a circle. A file needs
// another if it uses a name that the other declares for the package. Methods and fields do not
// count.
func checkFileCycles(m *module) (found []violation) {
	for _, p := range m.packages {
		if cycle := p.largestCycle(); len(cycle) > cycleFilesMax {
			found = append(found, violation{rule: "file cycle", at: p.dir, text: strings.Join(cycle, ", ")})
		}
	}
	return found
}

// largestCycle returns the names of the files of the largest circle in p, sorted. Tests do not
// count.
func (p *pkg) largestCycle() (largest []string) {
	needs := p.fileNeeds()
	reaches := make(map[string]map[string]bool)
	for name := range needs {
		seen := make(map[string]bool)
		for todo := []string{name}; len(todo) > 0; {
			next := todo[0]
			todo = todo[1:]
			for other := range needs[next] {
				if !seen[other] {
					seen[other] = true
					todo = append(todo, other)
				}
			}
		}
		reaches[name] = seen
	}
	for name, seen := range reaches {
		var cycle []string
		for other := range seen {
			if reaches[other][name] {
				cycle = append(cycle, other)
			}
		}
		if len(cycle) > len(largest) {
			largest = cycle
		}
	}
	slices.Sort(largest)
	return largest
}

// fileNeeds returns for each file of p the others that it needs.
func (p *pkg) fileNeeds() map[string]map[string]bool {
	declared := make(map[any]string) // the object of a name, and the file that declares it
	for _, f := range p.files {
		if f.test {
			continue
		}
		for _, object := range f.info.Defs {
			if object != nil && object.Pkg() != nil && object.Parent() == object.Pkg().Scope() {
				if at := f.ast.FileStart; at <= object.Pos() && object.Pos() < f.ast.FileEnd {
					declared[object] = path.Base(f.path)
				}
			}
		}
	}
	needs := make(map[string]map[string]bool)
	for _, f := range p.files {
		if f.test {
			continue
		}
		name := path.Base(f.path)
		needs[name] = make(map[string]bool)
		for ident, object := range f.info.Uses {
			if f.ast.FileStart <= ident.Pos() && ident.Pos() < f.ast.FileEnd && declared[object] != "" && declared[object] != name {
				needs[name][declared[object]] = true
			}
		}
	}
	return needs
}

// TestFileCycles says how large the circles are, with -v.
func TestFileCycles(t *testing.T) {
	t.Parallel()
	sizes := make(map[string]string)
	for _, p := range loadModule(t).packages {
		if cycle := p.largestCycle(); len(cycle) > 0 {
			sizes[p.dir] = strings.Join(cycle, " ")
		}
	}
	for _, dir := range slices.Sorted(maps.Keys(sizes)) {
		t.Logf("%s: %d: %s", dir, strings.Count(sizes[dir], " ")+1, sizes[dir])
	}
	if sizes["metadata"] == "" {
		t.Error("the circle of documents is not seen")
	}
}
