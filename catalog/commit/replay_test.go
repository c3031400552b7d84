package commit_test

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"

	"moorage"
	"moorage/catalog"
	"moorage/testkit/catalogkit"
)

// A client lost the answer to an append and repeats it. As long as the table contains the append,
// the answer is success, and the append has happened only once.
func TestReplayWithoutKey(t *testing.T) {
	t.Parallel()
	f := catalogkit.New(t)
	table := f.Create("t")
	first := catalogkit.AppendSnapshot(t, table, 1, 0, 1)
	if _, err := f.Commit(f.Ctx, ident("t"), first); err != nil {
		t.Fatal(err)
	}
	at, err := f.Commit(f.Ctx, ident("t"), catalogkit.AppendSnapshot(t, table, 2, 1, 2))
	if err != nil {
		t.Fatal(err)
	}
	replayed, err := f.Commit(f.Ctx, ident("t"), first)
	if err != nil {
		t.Fatalf("the replay of what happened: %v", err)
	}
	if replayed.MetadataLocation != at.MetadataLocation {
		t.Errorf("the replay made another version: %s after %s", replayed.MetadataLocation, at.MetadataLocation)
	}

	other := catalogkit.AppendSnapshot(t, table, 3, 0, 1)
	_, err = f.Commit(f.Ctx, ident("t"), other)
	catalogkit.WantKind(t, err, moorage.KindCommitFailed)

	if _, err := f.Commit(f.Ctx, ident("t"), catalogkit.CommitRequest(t, `[]`, `[{"action":"remove-snapshot-ref","ref-name":"main"}]`)); err != nil {
		t.Fatal(err)
	}
	_, err = f.Commit(f.Ctx, ident("t"), catalogkit.AppendSnapshot(t, table, 2, 1, 2))
	catalogkit.WantKind(t, err, moorage.KindCommitFailed)
	f.WantClean()
}

// The same holds for an append with further changes, such as a replacement, as long as the table
// contains all of them.
func TestReplayOfReplaceWithoutKey(t *testing.T) {
	t.Parallel()
	f := catalogkit.New(t)
	table := f.Create("t")
	if _, err := f.Commit(f.Ctx, ident("t"), catalogkit.AppendSnapshot(t, table, 1, 0, 1)); err != nil {
		t.Fatal(err)
	}
	replace := catalogkit.CommitRequest(t, fmt.Sprintf(`[{"type":"assert-table-uuid","uuid":%q},{"type":"assert-last-assigned-field-id","last-assigned-field-id":%d}]`, table.Document.UUID(), lastColumnID(t, table)),
		`[{"action":"remove-snapshot-ref","ref-name":"main"},{"action":"add-schema","schema":{"type":"struct","schema-id":0,"fields":[{"id":90,"name":"new","required":false,"type":"long"}]}},
		{"action":"set-current-schema","schema-id":-1},{"action":"set-properties","updates":{"a":"b"}}]`)
	fresh := catalogkit.AppendSnapshot(t, table, 2, 0, 2)
	replace.Updates = append(replace.Updates, fresh.Updates...)
	at, err := f.Commit(f.Ctx, ident("t"), replace)
	if err != nil {
		t.Fatal(err)
	}
	replayed, err := f.Commit(f.Ctx, ident("t"), replace)
	if err != nil || replayed.MetadataLocation != at.MetadataLocation {
		t.Fatalf("the replay of what happened: %v, %v", replayed, err)
	}
	if _, err := f.Commit(f.Ctx, ident("t"), catalogkit.SetProperty(t, "a", "c")); err != nil {
		t.Fatal(err)
	}
	_, err = f.Commit(f.Ctx, ident("t"), replace)
	catalogkit.WantKind(t, err, moorage.KindCommitFailed)
	f.WantClean()
}

// lastColumnID returns the highest field ID assigned in a table.
func lastColumnID(t *testing.T, table *catalog.Table) int {
	t.Helper()
	var document struct {
		LastColumnID int `json:"last-column-id"`
	}
	if err := json.Unmarshal(table.Document.Raw(), &document); err != nil {
		t.Fatal(err)
	}
	return document.LastColumnID
}

// The same holds for a commit that creates a table. The table is recognised by its uuid.
func TestReplayOfCreateWithoutKey(t *testing.T) {
	t.Parallel()
	f := catalogkit.New(t)
	staged, err := f.CreateTable(f.Ctx, ident("t"), catalog.CreateTableRequest{Schema: []byte(catalogkit.Schema), Stage: true})
	if err != nil {
		t.Fatal(err)
	}
	create := createOf(t, staged, 1)
	made, err := f.Commit(f.Ctx, ident("t"), create)
	if err != nil {
		t.Fatal(err)
	}
	replayed, err := f.Commit(f.Ctx, ident("t"), create)
	if err != nil || replayed.MetadataLocation != made.MetadataLocation {
		t.Fatalf("the replay of what happened: %v, %v", replayed, err)
	}
	at, err := f.Commit(f.Ctx, ident("t"), catalogkit.AppendSnapshot(t, made, 2, 1, 2))
	if err != nil {
		t.Fatal(err)
	}
	if replayed, err = f.Commit(f.Ctx, ident("t"), create); err != nil || replayed.MetadataLocation != at.MetadataLocation {
		t.Errorf("the replay after another commit: %v, %v", replayed, err)
	}

	other, err := f.CreateTable(f.Ctx, ident("other"), catalog.CreateTableRequest{Schema: []byte(catalogkit.Schema), Stage: true})
	if err != nil {
		t.Fatal(err)
	}
	_, err = f.Commit(f.Ctx, ident("t"), createOf(t, other, 1))
	catalogkit.WantKind(t, err, moorage.KindCommitFailed)
	if err := f.DropTable(f.Ctx, ident("t"), catalog.DropOptions{}); err != nil {
		t.Fatal(err)
	}
	_, err = f.Commit(f.Ctx, ident("t"), create)
	catalogkit.WantKind(t, err, moorage.KindAlreadyExists) // its uuid belongs to a dropped table
	f.WantClean()
}

// createOf returns the commit that creates a staged table with one snapshot.
func createOf(t *testing.T, staged *catalog.Table, snapshot int64) catalog.CommitRequest {
	t.Helper()
	request := catalogkit.AppendSnapshot(t, staged, snapshot, 0, 1)
	create := catalogkit.CommitRequest(t, `[{"type":"assert-create"}]`, fmt.Sprintf(`[{"action":"assign-uuid","uuid":%q},{"action":"upgrade-format-version","format-version":2},
		{"action":"add-schema","schema":%s},{"action":"set-current-schema","schema-id":-1},
		{"action":"add-spec","spec":{"spec-id":0,"fields":[]}},{"action":"set-default-spec","spec-id":-1},
		{"action":"add-sort-order","sort-order":{"order-id":0,"fields":[]}},{"action":"set-default-sort-order","sort-order-id":-1},
		{"action":"set-location","location":%q}]`, staged.Document.UUID(), catalogkit.Schema, staged.Document.Location()))
	create.Updates = append(create.Updates, request.Updates...)
	return create
}

// The same holds for a client that repeats its append with another key, or after the outcome of its
// key was deleted. It holds for a commit, a create and a transaction. The answer is stored under
// the new key.
func TestReplayUnderAnotherKey(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"append", "create", "transaction"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := catalogkit.New(t)
			table, beside := f.Create("t"), f.Create("u")
			staged, err := f.CreateTable(f.Ctx, ident("new"), catalog.CreateTableRequest{Schema: []byte(catalogkit.Schema), Stage: true})
			must(t, err)
			create := createOf(t, staged, 1)
			send := func(id string) (string, error) {
				key := catalogkit.KeyOf("a")
				key.ID = id
				return answered(f.Once(f.Ctx, key, func(ctx context.Context, c catalog.Verbs) (catalogkit.Reply, error) {
					switch name {
					case "create":
						made, err := c.Commit(ctx, ident("new"), create)
						return catalogkit.Reply{Table: made}, err
					case "transaction":
						return catalogkit.Reply{}, c.CommitTransaction(ctx, catalogkit.Warehouse, []catalog.TableChange{
							catalogkit.On("t", catalogkit.AppendSnapshot(t, table, 1, 0, 1)), catalogkit.On("u", catalogkit.AppendSnapshot(t, beside, 2, 0, 1)),
						})
					}
					made, err := c.Commit(ctx, ident("t"), catalogkit.AppendSnapshot(t, table, 1, 0, 1))
					return catalogkit.Reply{Table: made}, err
				}))
			}
			_, err = send("first")
			must(t, err)
			pointer := map[bool]string{true: "new", false: "t"}[name == "create"]
			at := f.PointerOf(pointer).MetadataLocation
			second, err := send("second")
			must(t, err)
			if now := f.PointerOf(pointer).MetadataLocation; now != at {
				t.Errorf("the replay made another version: %s after %s", now, at)
			}
			f.MetadataFiles(pointer, 1)
			if again, err := send("second"); err != nil || again != second {
				t.Errorf("answered\n%s\nand then\n%s, %v", second, again, err)
			}
			f.Clock.Advance(3 * f.KeyLife())
			must(t, f.SweepAll(f.Ctx))
			if _, err := send("first"); err != nil {
				t.Errorf("after the key was forgotten: %v", err)
			}
			f.WantClean()
		})
	}
}

// answered returns the text of an answer, and its error.
func answered(outcome catalogkit.Reply, err error) (string, error) {
	return catalogkit.AnswerText(outcome, err), err
}
