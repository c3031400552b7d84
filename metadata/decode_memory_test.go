package metadata_test

import (
	"runtime"
	"strings"
	"testing"

	"moorage/metadata"
	"moorage/metadata/schema"
)

// Unused members cost little memory, however small their parts are. A tree of these parts would be
// a hundred times as large as the text.
//
// Not parallel, because it measures the allocations of the whole process.
func TestUnknownMembersCostLittle(t *testing.T) {
	const factorMax = 4
	for _, part := range []string{"{}", "[]", "0", `{"a":0}`} {
		unknown := `"x":[` + strings.Repeat(part+",", 1<<20/len(part)) + part + `]`
		with := func(text, before string) []byte {
			return []byte(strings.Replace(text, before, unknown+","+before, 1))
		}
		text := with(`{"type":"struct","fields":[{"id":1,"name":"c","required":false,"type":"int"}]}`, `"name"`)
		document, version := with(viewDocument, `"x-owner"`), with("["+addVersion(3, 0, "spark:x")+"]", `"dialect"`)
		updates := with(`[{"action":"set-location","location":"x"}]`, `"location"`)
		for what, parse := range map[string]func() error{
			"schema":        func() error { _, err := schema.Parse(text); return err },
			"view":          func() error { _, err := metadata.ParseView(document); return err },
			"view version":  func() error { _, err := checked(metadata.DecodeViewUpdates, version); return err },
			"updates":       func() error { _, err := checked(metadata.DecodeUpdates, updates); return err },
			"many updates":  func() error { _, _ = checked(metadata.DecodeUpdates, unknown[4:]); return nil },
			"many demands":  func() error { _, _ = checked(metadata.DecodeRequirements, unknown[4:]); return nil },
			"view's demand": func() error { _, _ = checked(metadata.DecodeViewRequirements, unknown[4:]); return nil },
		} {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			if err := parse(); err != nil {
				t.Fatalf("%s with %s: %v", what, part, err)
			}
			runtime.ReadMemStats(&after)
			if factor := float64(after.TotalAlloc-before.TotalAlloc) / float64(len(unknown)); factor > factorMax {
				t.Errorf("%s with many %s takes %.0f times its bytes", what, part, factor)
			}
		}
	}
}
