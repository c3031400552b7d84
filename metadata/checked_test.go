package metadata_test

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"moorage"
	"moorage/internal/jsontext"
	"moorage/metadata"
)

// deepJSON returns updates. One of them has a member that nests the given number of levels deeper
// than the array.
func deepJSON(levels int) string {
	return `[{"action":"set-location","location":"x","y":` + strings.Repeat(`[{"a":`, levels/2) + `0` + strings.Repeat(`}]`, levels/2) + `}]`
}

// FuzzCheckedJSON: decoding checked text has the same result as strict reading, including errors.
func FuzzCheckedJSON(f *testing.F) {
	for _, row := range updateRows {
		f.Add([]byte("[" + row.updates + "]"))
	}
	for _, row := range requirementRows {
		f.Add([]byte("[" + row.requirement + "]"))
	}
	addSeeds(f, ` [ { "action" : "Set-Location" , "location" : "\ud83d\ude00\\\"" , "é" : [ -1.5e3 , true , null , { } , [ ] ] } ] `,
		`[`+addVersion(3, 0, "spark:x")+`,`+setVersion(-1)+`]`, `[{"type":"assert-view-uuid","uuid":"x"},{"type":"assert-create"}]`,
		deepJSON(jsontext.DepthMax-2), deepJSON(jsontext.DepthMax), `[5]`, `["x"]`, `{}`, `null`, `[{}]x`, `[{"action":"x`, `[{"action":"set-location","location":"\`, `[{"action":"a","action":"b"}]`)
	d, view := mustParse(f, vectors(f, "valid")["v3-rich"]), mustView(f, viewDocument)
	f.Fuzz(func(t *testing.T, raw []byte) {
		j, err := jsontext.Check(raw)
		if err != nil {
			return
		}
		updates, updatesErr := metadata.DecodeUpdates(j)
		requirements, requirementsErr := metadata.DecodeRequirements(j)
		viewUpdates, viewUpdatesErr := metadata.DecodeViewUpdates(j)
		viewRequirements, viewRequirementsErr := metadata.DecodeViewRequirements(j)
		wantUpdates, err := metadata.StrictUpdates(raw)
		checkSame(t, raw, updates, wantUpdates, updatesErr, err)
		wantRequirements, err := metadata.StrictRequirements(raw)
		checkSame(t, raw, checkAll(requirements, d), checkAll(wantRequirements, d), requirementsErr, err)
		wantViewUpdates, err := metadata.StrictViewUpdates(raw)
		checkSame(t, raw, applyAllView(view, viewUpdates), applyAllView(view, wantViewUpdates), viewUpdatesErr, err)
		wantViewRequirements, err := metadata.StrictViewRequirements(raw)
		checkSame(t, raw, viewRequirements, wantViewRequirements, viewRequirementsErr, err)
	})
}

func checkSame(t *testing.T, raw []byte, got, want any, gotErr, wantErr error) {
	t.Helper()
	if moorage.KindOf(gotErr) != moorage.KindOf(wantErr) || fmt.Sprint(gotErr) != fmt.Sprint(wantErr) || !reflect.DeepEqual(got, want) {
		t.Errorf("%s makes %+v, %v, want %+v, %v", raw, got, gotErr, want, wantErr)
	}
}

// checkAll returns the results of checking requirements against a table and against no table. It is
// needed because functions cannot be compared.
func checkAll(requirements []metadata.Requirement, d *metadata.Document) (said []string) {
	for _, r := range requirements {
		one := []metadata.Requirement{r}
		said = append(said, fmt.Sprint(r.Type(), metadata.Check(d, one), metadata.Check(nil, one)))
	}
	return said
}

// applyAllView returns the result of applying updates to a view.
func applyAllView(d *metadata.ViewDocument, updates []metadata.ViewUpdate) string {
	changed, err := d.Apply(updates, viewEnv())
	if err != nil {
		return err.Error()
	}
	return string(changed.Raw())
}
