package metadata_test

import (
	"bytes"
	"reflect"
	"slices"
	"strings"
	"testing"

	"moorage/metadata"
)

const deepSchema = `{"type":"struct","schema-id":4,"identifier-field-ids":[1],"fields":[{"id":1,"name":"id","required":true,"type":"LONG"},` +
	`{"id":3,"name":"l","required":false,"type":{"type":"list","element-id":31,"element-required":true,"element":{"type":"struct","fields":[` +
	`{"id":32,"name":"z","required":false,"type":"double","initial-default":0.0}]}}},` +
	`{"id":4,"name":"m","required":false,"type":{"type":"map","key-id":41,"key":"string","value-id":42,"value":"int","value-required":false}}]}`

func addSeeds(f *testing.F, seeds ...string) {
	f.Helper()
	for _, seed := range seeds {
		f.Add([]byte(seed))
	}
}

// A parsed document stays unchanged until an update changes it.
func FuzzParseView(f *testing.F) {
	addSeeds(f, viewDocument, metadata.ViewSkeleton)
	f.Fuzz(func(t *testing.T, raw []byte) {
		d, err := metadata.ParseView(raw)
		if err != nil {
			return
		}
		updates, err := checked(metadata.DecodeViewUpdates, `[{"action":"set-location","location":"s3://elsewhere"},{"action":"set-properties","updates":{"version.history.num-entries":"1000000"}}]`)
		if err != nil {
			t.Fatal(err)
		}
		changed, err := d.Apply(updates, viewEnv())
		if err != nil {
			t.Fatalf("Apply to %s: %v", raw, err)
		}
		was, is := contentOf(t, d), contentOf(t, changed)
		if was.Location, was.Properties = is.Location, is.Properties; is.Location != "s3://elsewhere" || !reflect.DeepEqual(is, was) {
			t.Errorf("%s became %s", raw, changed.Raw())
		}
		checkViewIndex(t, changed)
	})
}

// checkViewIndex fails the test unless d has the values that ParseView would find in it.
func checkViewIndex(t testing.TB, d *metadata.ViewDocument) {
	t.Helper()
	if err := metadata.CheckViewIndex(d); err != nil {
		t.Error(err)
	}
}

// The result of applying any updates to a view can be parsed again.
func FuzzApplyView(f *testing.F) {
	addSeeds(f, `[]`, `[`+addVersion(3, 0, "spark:x")+`,`+setVersion(-1)+`]`, `[`+setVersion(1)+`]`,
		`[{"action":"set-properties","updates":{"version.history.num-entries":"1","replace.drop-dialect.allowed":"true"}},`+
			addVersion(1, 1, "trino:y")+`,`+setVersion(3)+`]`,
		`[{"action":"add-schema","schema":`+deepSchema+`},`+addVersion(3, -1, "spark:x")+`,{"action":"remove-properties","removals":["k"]}]`,
		`[{"action":"assign-uuid","uuid":"`+viewUUID+`"},{"action":"upgrade-format-version","format-version":1},{"action":"set-location","location":"x"}]`)
	d := mustView(f, viewDocument)
	f.Fuzz(func(t *testing.T, raw []byte) {
		updates, err := metadata.StrictViewUpdates(raw)
		if err != nil {
			return
		}
		changed, err := d.Apply(updates, viewEnv())
		if err != nil {
			return
		}
		if !bytes.Equal(d.Raw(), []byte(viewDocument)) {
			t.Fatal("the base has changed")
		}
		checkViewIndex(t, changed)
		if content := contentOf(t, changed); !slices.Contains(idsOf(t, content.Versions, "version-id"), content.CurrentID) {
			t.Errorf("%s has no current version", changed.Raw())
		}
	})
}

func FuzzDecodeViewRequirements(f *testing.F) {
	addSeeds(f, `[]`, `[{"type":"assert-view-uuid","uuid":"x"},{"type":"assert-create"}]`)
	d := mustView(f, viewDocument)
	f.Fuzz(func(t *testing.T, raw []byte) {
		requirements, err := metadata.StrictViewRequirements(raw)
		if err != nil {
			return
		}
		unmet := slices.ContainsFunc(requirements, func(r metadata.ViewRequirement) bool {
			kind, uuid := r.Parts()
			return kind != "assert-view-uuid" || !strings.EqualFold(uuid, d.UUID())
		})
		if err := metadata.CheckView(d, requirements); (err != nil) != unmet {
			t.Errorf("CheckView(%s) = %v", raw, err)
		}
	})
}
