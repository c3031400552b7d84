package catalogkit

import (
	"context"
	"fmt"
	"testing"
	"time"

	"moorage"
	"moorage/catalog"
	"moorage/catalog/directory"
	"moorage/registry"
	"moorage/testkit"
)

// PointerOf returns the pointer of a table in the namespace "ns".
func (f *Fixture) PointerOf(table string) registry.Pointer {
	f.T.Helper()
	found, err := f.Directory.Find(f.Ctx, directory.Table(), testkit.Ident(table))
	if err != nil {
		f.T.Fatal(err)
	}
	return found.Pointer
}

// CreateAt makes a table at an explicit location.
func (f *Fixture) CreateAt(name, location string) *catalog.Table {
	f.T.Helper()
	request := catalog.CreateTableRequest{Schema: []byte(Schema), Location: location}
	table, err := f.CreateTable(f.Ctx, testkit.Ident(name), request)
	if err != nil {
		f.T.Fatalf("create %s at %s: %v", name, location, err)
	}
	return table
}

// MoveTo returns a commit that moves a table.
func MoveTo(t testing.TB, location string) catalog.CommitRequest {
	t.Helper()
	return CommitRequest(t, `[]`, fmt.Sprintf(`[{"action":"set-location","location":%q}]`, location))
}

// RegisterOn registers a file that was written a moment ago. The first attempt is refused, because
// the commit that wrote the file may be about to delete it.
func (f *Fixture) RegisterOn(node *Instance, name, file string, overwrite bool) error {
	request := catalog.RegisterRequest{MetadataLocation: file, Overwrite: overwrite}
	_, err := node.RegisterTable(f.Ctx, testkit.Ident(name), request)
	WantKind(f.T, err, moorage.KindUnavailable)
	f.Clock.Advance(2 * time.Minute)
	_, err = node.RegisterTable(f.Ctx, testkit.Ident(name), request)
	return err
}

// CommitCreateRequest returns a commit that makes a table at location.
func CommitCreateRequest(t testing.TB, location string) catalog.CommitRequest {
	t.Helper()
	return CreateWithUUID(t, location, 1)
}

// CreateWithUUID returns a commit that makes a table. The table-uuid depends on n.
func CreateWithUUID(t testing.TB, location string, n int) catalog.CommitRequest {
	t.Helper()
	return CommitRequest(t, `[{"type":"assert-create"}]`, `[
		{"action":"assign-uuid","uuid":"`+fmt.Sprintf("f47ac10b-58cc-4372-a567-%012x", n)+`"},
		{"action":"upgrade-format-version","format-version":2},
		{"action":"add-schema","schema":`+Schema+`},{"action":"set-current-schema","schema-id":-1},
		{"action":"add-spec","spec":{"spec-id":0,"fields":[]}},{"action":"set-default-spec","spec-id":-1},
		{"action":"add-sort-order","sort-order":{"order-id":0,"fields":[]}},
		{"action":"set-default-sort-order","sort-order-id":-1},
		{"action":"set-location","location":"`+location+`"}]`)
}

// StagedAt returns the commit of a table that was staged at location.
func StagedAt(t testing.TB, location string) catalog.CommitRequest {
	return CommitRequest(t, `[{"type":"assert-create"}]`, fmt.Sprintf(`[{"action":"set-location","location":%q},
		{"action":"add-schema","schema":%s,"last-column-id":2},{"action":"set-current-schema","schema-id":-1},
		{"action":"add-spec","spec":{"spec-id":0,"fields":[]}},{"action":"set-default-spec","spec-id":-1},
		{"action":"add-sort-order","sort-order":{"order-id":0,"fields":[]}},
		{"action":"set-default-sort-order","sort-order-id":-1}]`, location, Schema))
}

// CommitTable returns a client that commits request to a table.
func CommitTable(name moorage.Identifier, request catalog.CommitRequest) RaceClient {
	return func(ctx context.Context, c catalog.Verbs) error {
		_, err := c.Commit(ctx, name, request)
		return err
	}
}
