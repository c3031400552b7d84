package migrations

import (
	"strings"
	"testing"
	"testing/fstest"
)

// released holds the checksums of released steps. A released step never changes, because a binary
// refuses a database made by different files.
var released = []string{
	"76bf9fa8becb5efa8bead496b64f8b9c933163a5cd629944beba7bfc167ec2de", // 0.1.0
}

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
		if !strings.HasPrefix(step.SQL, "-- Why: ") {
			t.Errorf("%s does not begin with what it is for", step.Name)
		}
		if step.Oldest < 1 || step.Oldest > step.Version {
			t.Errorf("%s needs a binary that knows step %d", step.Name, step.Oldest)
		}
	}
}

func TestStepsHaveNoGaps(t *testing.T) {
	t.Parallel()
	for _, names := range [][]string{{"0002_a.sql"}, {"0001_a.sql", "0003_b.sql"}, {"1_a.sql"}, {"x.sql"}, {"0001_a.sql", "0001_b.sql"}} {
		files := fstest.MapFS{}
		for _, name := range names {
			files[name] = &fstest.MapFile{Data: []byte("-- Oldest binary: step 1.\nSELECT 1")}
		}
		if steps, err := read(files); err == nil {
			t.Errorf("%v: read as %v", names, steps)
		}
	}
}

func TestOldestBinary(t *testing.T) {
	t.Parallel()
	const first, third = "-- Why: a.\n-- Oldest binary: step 1.\n", "0003_c.sql"
	for sql, want := range map[string]int{
		"-- Why: c.\n-- Oldest binary: step 1; d.\nSELECT 1":     1,
		"-- Why: c.\n-- Oldest binary: step 3.\nSELECT 1":        3,
		"-- Why: c.\nSELECT 1":                                   0,
		"-- Oldest binary: step 4.\n":                            0,
		"-- Oldest binary: step 0.\n":                            0,
		"-- Oldest binary: the one before.\n":                    0,
		"-- Oldest binary: step 2.\n-- Oldest binary: step 3.\n": 0,
	} {
		files := fstest.MapFS{"0001_a.sql": {Data: []byte(first)}, "0002_b.sql": {Data: []byte(first)}, third: {Data: []byte(sql)}}
		steps, err := read(files)
		switch {
		case want == 0 && (err == nil || !strings.Contains(err.Error(), third)):
			t.Errorf("%q: read as %v, error %v", sql, steps, err)
		case want > 0 && (err != nil || steps[2].Oldest != want):
			t.Errorf("%q: read as %v, error %v, want step %d", sql, steps, err, want)
		}
	}
	// A step builds on the previous one. So no binary can run on its tables that could not run on
	// the previous ones.
	files := fstest.MapFS{"0001_a.sql": {Data: []byte(first)}, "0002_b.sql": {Data: []byte(first)},
		third: {Data: []byte("-- Oldest binary: step 3.\n")}, "0004_d.sql": {Data: []byte("-- Oldest binary: step 2.\n")}}
	if steps, err := read(files); err == nil {
		t.Errorf("a step that needs less than the one before: read as %v", steps)
	}
}

func TestIndexHasItsFile(t *testing.T) {
	t.Parallel()
	const head, right = "-- Why: c.\n-- Oldest binary: step 1.\n\n", "CREATE INDEX CONCURRENTLY i ON t (x) WHERE y;\n"
	for sql, want := range map[string]string{
		right:                                    "i",
		"CREATE INDEX i ON t (x);\n":             "refused",
		"CREATE UNIQUE INDEX i ON t (x);\n":      "refused",
		"create index i ON t (x);\n":             "refused",
		right + right:                            "refused",
		"ALTER TABLE t ADD x integer;\n" + right: "refused",
		"ALTER TABLE t ADD x integer;\n":         "",
	} {
		files := fstest.MapFS{"0001_a.sql": {Data: []byte("-- Oldest binary: step 1.\nCREATE INDEX")},
			"0002_b.sql": {Data: []byte(head + sql)}}
		steps, err := read(files)
		switch {
		case want == "refused" && err == nil:
			t.Errorf("%q: read as %v", sql, steps)
		case want != "refused" && (err != nil || steps[1].Index != want || (steps[1].Table == "t") != (want != "")):
			t.Errorf("%q: read as %v, error %v, want index %q", sql, steps, err, want)
		}
	}
}
