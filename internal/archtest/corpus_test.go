package archtest

import (
	"path"
	"path/filepath"
	"strings"
	"testing"
)

// corpusMin is the minimum number of inputs in the repository for each fuzz target.
const corpusMin = 5

// TestFuzzTargetsHaveCorpora counts the inputs below testdata/fuzz, and finds inputs of fuzz
// targets that no longer exist.
func TestFuzzTargetsHaveCorpora(t *testing.T) {
	t.Parallel()
	m := loadModule(t)
	wanted := make(map[string]bool)
	for name := range testFunctions(m) {
		folder, target, _ := strings.Cut(name, ".")
		if !strings.HasPrefix(target, "Fuzz") {
			continue
		}
		corpus := path.Join(folder, "testdata/fuzz", target)
		wanted[corpus] = true
		inputs, err := filepath.Glob(filepath.Join(m.root, corpus, "*"))
		if err != nil || len(inputs) < corpusMin {
			t.Errorf("%s has %d inputs, want %d: %v", corpus, len(inputs), corpusMin, err)
		}
	}
	if len(wanted) == 0 {
		t.Error("there are no fuzz targets")
	}
	for _, p := range m.packages {
		corpora, err := filepath.Glob(filepath.Join(m.root, p.dir, "testdata/fuzz/*"))
		if err != nil {
			t.Fatal(err)
		}
		for _, found := range corpora {
			if corpus := path.Join(p.dir, "testdata/fuzz", filepath.Base(found)); !wanted[corpus] {
				t.Errorf("%s belongs to no fuzz target", corpus)
			}
		}
	}
}
