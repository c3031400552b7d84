package jobs_test

import (
	"encoding/json"
	"flag"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"moorage/testkit/scale"
)

var mutantSeed = flag.Uint64("mutant-seed", 0, "draws the checks that are switched off; 0: a new seed")

// mutantsDrawn is the number of mutants in a run. It is small because the package is compiled and
// its tests are linked for each mutant.
const mutantsDrawn = 1

// edit replaces text that a source file of this package contains exactly once.
type edit struct{ file, old, new string }

// never returns an edit that makes a condition always false.
func never(file, condition string) edit { return edit{file, condition, "false && " + condition} }

// mutants returns the edits that switch off each check, by the name of its scenario.
func mutants() map[string][]edit {
	return map[string][]edit{
		"list has changed":        {never("files.go", "sha256.Sum256(body) != file.SHA256")},
		"list has another length": {never("files.go", "int64(len(all)) != file.Count")},
		"not before its time":     {never("step.go", "now.Before(at.value.NotBefore)")},
		"record of the job":       {never("check.go", "records[0].ETag != at.record.ETag")},
		"paused": {
			never("check.go", "at.value.Paused"), never("step.go", "at.value.Paused"),
			edit{"check.go", "return paused || err != nil", "return false && (paused || err != nil)"},
		},
		"same table":               {never("check.go", "table.TableUUID != at.value.UUID")},
		"held":                     {edit{"check.go", `held(found.document); why != "" {`, `held(found.document); false && why != "" {`}},
		"expired snapshot is back": {never("check.go", "found.document.HasSnapshot(e.ID)")},
		"new snapshots": {edit{
			"check.go", "eachNamed(now.document, now.version.Location, g.set.Add)", "g.look = now\n\treturn nil",
		}},
		"named by the document": {
			never("check.go", "g.set.Has(file.Path)"), never("orphans.go", "m.set.Has(file.Location)"),
		},
		"claims and metadata files": {
			never("check.go", "!isOwn(g.look.claims, file.Path)"),
			never("orphans.go", "!isOwn(m.look.claims, file.Location)"),
		},
		"dropped table in the folder": {edit{
			"orphans.go", "	if claim.Pointer != table.ID {", "	return claim, nil\n	if claim.Pointer != table.ID {",
		}},
		"orphan as listed": {
			never("orphans.go", "found.Bytes != file.Bytes"), never("orphans.go", "!sameSecond("),
		},
		"older than the policy": {never("orphans.go", "file.Modified.Before(m.settings.Since)")},
		"young orphan":          {never("orphans.go", "age < m.settings.OlderThan")},
		"owner of the folder": {edit{
			"owner.go", "	id, err := j.ledger.StoreID(ctx)\n	if err != nil {\n		return err",
			"	id, err := j.ledger.StoreID(ctx)\n	if true {\n		return err",
		}},
		"share of orphans": {never("orphans.go", "m.files > orphansFew")},
		"look-alike": {
			never("check.go", "g.set.LooksLike(file.Path)"), never("orphans.go", "m.set.LooksLike(file.Location)"),
		},
		"young file of a job": {never("sweep.go", "young[job] {")},
		"file from before the claim": {
			never("check.go", "g.in.Orphans != nil && g.homes.keep("), never("orphans.go", "m.homes.keep("),
		},
		"metadata file of another table": {edit{
			"orphans.go", `	if !strings.Contains(name, ".metadata.json") ||`,
			`	if true || !strings.Contains(name, ".metadata.json") ||`,
		}},
	}
}

// TestEveryCheckIsNeeded builds this package with one check switched off. The scenario of that
// check must then lose a file. The test draws checks at random; with -every, it takes all of them.
func TestEveryCheckIsNeeded(t *testing.T) {
	t.Parallel()
	all := mutants()
	var names []string
	for _, s := range scenarios() {
		names = append(names, s.check)
		for file := range sourcesWith(t, all[s.check]) {
			t.Logf("%s is switched off in %s", s.check, file)
		}
	}
	slices.Sort(names)
	if known := slices.Sorted(maps.Keys(all)); !slices.Equal(names, known) {
		t.Fatalf("the scenarios are %q, the mutants %q", names, known)
	}
	if !scale.Every() {
		seed := *mutantSeed
		if seed == 0 {
			seed = uint64(time.Now().UnixNano())
		}
		t.Logf("-mutant-seed %d", seed)
		random := rand.New(rand.NewPCG(seed, 0))
		random.Shuffle(len(names), func(i, k int) { names[i], names[k] = names[k], names[i] })
		names = names[:mutantsDrawn]
	}
	for _, check := range names {
		t.Run(check, func(t *testing.T) { // one at a time, because each one builds
			binary := buildMutant(t, all[check])
			for store := range storesOfChecks() {
				run := "^TestEachCheckKeepsItsFile$/^" + store + "$/^" + regexp.QuoteMeta(strings.ReplaceAll(check, " ", "_")) + "$"
				arguments := []string{"-test.run", run, "-test.timeout", "5m"}
				if scale.Every() {
					arguments = append(arguments, "-every")
				}
				said, err := exec.CommandContext(t.Context(), binary, arguments...).CombinedOutput()
				if err == nil || !strings.Contains(string(said), lost) {
					t.Errorf("over %s, without the check: %v\n%s", store, err, said)
				}
			}
		})
	}
}

// sourcesWith returns the source files that the edits change, with the edits applied.
func sourcesWith(t *testing.T, edits []edit) map[string]string {
	t.Helper()
	sources := make(map[string]string)
	for _, e := range edits {
		source, ok := sources[e.file]
		if !ok {
			read, err := os.ReadFile(e.file)
			must(t, err)
			source = string(read)
		}
		if found := strings.Count(source, e.old); found != 1 {
			t.Fatalf("%s contains %q %d times", e.file, e.old, found)
		}
		sources[e.file] = strings.Replace(source, e.old, e.new, 1)
	}
	return sources
}

// buildMutant builds the tests of this package with the edits applied.
func buildMutant(t *testing.T, edits []edit) (binary string) {
	t.Helper()
	folder := t.TempDir()
	here, err := os.Getwd()
	must(t, err)
	overlay := struct{ Replace map[string]string }{make(map[string]string)}
	for file, source := range sourcesWith(t, edits) {
		mutated := filepath.Join(folder, file)
		must(t, os.WriteFile(mutated, []byte(source), 0o600))
		overlay.Replace[filepath.Join(here, file)] = mutated
	}
	encoded, err := json.Marshal(overlay)
	must(t, err)
	list := filepath.Join(folder, "overlay.json")
	must(t, os.WriteFile(list, encoded, 0o600))
	binary = filepath.Join(folder, "mutant.test")
	build := exec.CommandContext(t.Context(), "go", "test", "-c", "-vet=off", "-ldflags", "-s -w", "-overlay", list, "-o", binary, ".")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	said, err := build.CombinedOutput()
	if err != nil {
		t.Fatalf("build without the check: %v\n%s", err, said)
	}
	return binary
}
