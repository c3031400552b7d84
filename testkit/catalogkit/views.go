package catalogkit

import (
	"context"
	"fmt"
	"testing"

	"moorage"
	"moorage/catalog"
	"moorage/metadata"
	"moorage/testkit"
)

// ViewVersion returns a view-version with one query.
func ViewVersion(id int, sql string) string {
	return fmt.Sprintf(`{"version-id":%d,"schema-id":0,"timestamp-ms":1700000000000,"summary":{"engine-name":"test"},`+
		`"default-namespace":["ns"],"representations":[{"type":"sql","sql":%q,"dialect":"spark"}]}`, id, sql)
}

// ViewRequest returns a request for a view at location.
func ViewRequest(location string) catalog.CreateViewRequest {
	return catalog.CreateViewRequest{
		Schema: []byte(Schema), Version: []byte(ViewVersion(1, "select 1")), Location: location,
	}
}

// MakeView makes a view.
func (f *Fixture) MakeView(name string) *catalog.View {
	f.T.Helper()
	view, err := f.CreateView(f.Ctx, testkit.Ident(name), ViewRequest(""))
	if err != nil {
		f.T.Fatalf("create view %s: %v", name, err)
	}
	return view
}

// ReplaceRequest decodes a change of a view from JSON arrays.
func ReplaceRequest(t testing.TB, requirements, updates string) catalog.ReplaceViewRequest {
	t.Helper()
	r, err := Checked(metadata.DecodeViewRequirements, requirements)
	if err != nil {
		t.Fatalf("decode %s: %v", requirements, err)
	}
	u, err := Checked(metadata.DecodeViewUpdates, updates)
	if err != nil {
		t.Fatalf("decode %s: %v", updates, err)
	}
	return catalog.ReplaceViewRequest{Requirements: r, Updates: u}
}

// NewQuery returns a change that makes sql the query of a view, as engines send it.
func NewQuery(t testing.TB, requirements, sql string) catalog.ReplaceViewRequest {
	t.Helper()
	return ReplaceRequest(t, requirements, fmt.Sprintf(`[{"action":"add-view-version","view-version":%s},
		{"action":"set-current-view-version","view-version-id":-1}]`, ViewVersion(2, sql)))
}

// SetViewProperty returns a change that sets one property of a view.
func SetViewProperty(t testing.TB, key, value string) catalog.ReplaceViewRequest {
	t.Helper()
	return ReplaceRequest(t, `[]`, fmt.Sprintf(`[{"action":"set-properties","updates":{%q:%q}}]`, key, value))
}

// ReplaceView returns a client that changes a view.
func ReplaceView(name moorage.Identifier, request catalog.ReplaceViewRequest) RaceClient {
	return func(ctx context.Context, c catalog.Verbs) error {
		_, err := c.ReplaceView(ctx, name, request)
		return err
	}
}
