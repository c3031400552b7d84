package migrations

import (
	"strings"
	"testing"
	"testing/fstest"
)

// released are the checksums of the steps that were released: none of them ever changes.
var released = []string{}

func TestSteps(t *testing.T) {
	t.Parallel()
	steps, err := Steps()
	if err != nil {
		t.Fatal(err)
	}
	if len(steps) < max(1, len(released)) {
		t.Fatalf("%d steps", len(steps))
	}
	for i, checksum := range released {
		if steps[i].Checksum != checksum {
			t.Errorf("%s was released and has changed since", steps[i].Name)
		}
	}
	for _, step := range steps {
		for _, want := range []string{"-- Why: ", "-- Previous binary: "} {
			if !strings.Contains(step.SQL, want) {
				t.Errorf("%s lacks a line that begins with %q", step.Name, want)
			}
		}
	}
}

func TestStepsHaveNoGaps(t *testing.T) {
	t.Parallel()
	for _, names := range [][]string{{"0002_a.sql"}, {"0001_a.sql", "0003_b.sql"}, {"1_a.sql"}, {"x.sql"}, {"0001_a.sql", "0001_b.sql"}} {
		files := fstest.MapFS{}
		for _, name := range names {
			files[name] = &fstest.MapFile{Data: []byte("SELECT 1")}
		}
		if steps, err := read(files); err == nil {
			t.Errorf("%v: read as %v", names, steps)
		}
	}
}
