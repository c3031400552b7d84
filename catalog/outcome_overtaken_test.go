package catalog_test

import (
	"context"
	"fmt"
	"testing"

	"moorage"
	"moorage/catalog"
	"moorage/catalog/gate"
	"moorage/testkit/catalogkit"
)

// overtaken is an operation whose answer is lost, and later changes by other requests. After these,
// the state of the store no longer shows whether the operation happened.
type overtaken struct {
	operation gate.Verb
	run       func(ctx context.Context, c catalog.Verbs) error
	others    []catalogkit.RaceClient
	there     []string // the names that exist at the end
}

// The answer of a change is lost, and other requests change the same object afterwards. The
// operation still finds out that it happened.
func TestLostAnswersOfWhatWasOvertaken(t *testing.T) {
	t.Parallel()
	setOwner := func(value string) catalogkit.RaceClient {
		return func(ctx context.Context, c catalog.Verbs) error {
			_, err := c.UpdateNamespaceProperties(ctx, catalogkit.Warehouse, moorage.Namespace{"ns"}, catalog.PropertiesChange{Updates: map[string]string{"owner": value}})
			return err
		}
	}
	tests := []overtaken{
		{
			operation: gate.CreateTable, run: createTable(ident("new")),
			others: []catalogkit.RaceClient{dropTable(ident("new"), catalog.DropOptions{}), createTable(ident("new")), dropTable(ident("new"), catalog.DropOptions{})},
			there:  []string{"ns", "ns:t"},
		},
		{
			operation: gate.CommitCreate, run: catalogkit.CommitTable(ident("new"), catalogkit.CommitCreateRequest(t, "file:///wh/ns/new")),
			others: []catalogkit.RaceClient{renameTable(ident("new"), ident("u")), createTable(ident("new")), dropTable(ident("u"), catalog.DropOptions{})},
			there:  []string{"ns", "ns:new", "ns:t"},
		},
		{
			operation: gate.Rename, run: renameTable(ident("t"), ident("new")),
			others: []catalogkit.RaceClient{renameTable(ident("new"), ident("u")), createTable(ident("new")), createTable(ident("t"))},
			there:  []string{"ns", "ns:new", "ns:t", "ns:u"},
		},
		{
			operation: gate.DropTable, run: dropTable(ident("t"), catalog.DropOptions{Purge: true}),
			others: []catalogkit.RaceClient{createTable(ident("t")), renameTable(ident("t"), ident("u")), createTable(ident("t"))},
			there:  []string{"ns", "ns:t", "ns:u"},
		},
		{
			operation: gate.UpdateProperties, run: setOwner("me"),
			others: []catalogkit.RaceClient{setOwner("a"), setOwner("b"), setOwner("c")},
			there:  []string{"ns", "ns:t"},
		},
		{
			operation: gate.CreateNamespace, run: createNamespace("x"),
			others: []catalogkit.RaceClient{dropNamespace("x"), createNamespace("x"), dropNamespace("x")},
			there:  []string{"ns", "ns:t"},
		},
		{
			operation: gate.DropNamespace, run: dropNamespace("y"),
			others: []catalogkit.RaceClient{createNamespace("y"), dropNamespace("y"), createNamespace("y")},
			there:  []string{"ns", "ns:t", "y"},
		},
		{
			operation: gate.CreateView, run: createView(ident("new")),
			others: []catalogkit.RaceClient{dropView(ident("new")), createTable(ident("new"))},
			there:  []string{"ns", "ns:new", "ns:t"},
		},
		{
			operation: gate.Replace, run: catalogkit.ReplaceView(ident("v"), catalogkit.NewQuery(t, `[]`, "select 2")),
			others: []catalogkit.RaceClient{catalogkit.ReplaceView(ident("v"), catalogkit.NewQuery(t, `[]`, "select 3")), renameView(ident("v"), ident("u")), createTable(ident("v"))},
			there:  []string{"ns", "ns:t", "ns:v", "ns:view u"},
		},
		{
			operation: gate.DropView, run: dropView(ident("v")),
			others: []catalogkit.RaceClient{createTable(ident("v")), renameTable(ident("v"), ident("u")), createView(ident("v"))},
			there:  []string{"ns", "ns:t", "ns:u", "ns:view v"},
		},
	}
	for _, tt := range tests {
		t.Run(string(tt.operation), func(t *testing.T) {
			t.Parallel()
			f, losing := newLosingFixture(t)
			f.Create("t")
			switch tt.operation {
			case gate.DropNamespace:
				must(t, createNamespace("y")(f.Ctx, f.Instance))
			case gate.Replace, gate.DropView:
				f.MakeView("v")
			}
			node := f.Unlocked(losing.Store) // the first operation still holds the locks that both take
			losing.lose(tt.operation, false, func() {
				for i, other := range tt.others {
					if err := other(f.Ctx, node); err != nil {
						t.Errorf("other change %d: %v", i, err)
					}
				}
			})
			if err := tt.run(f.Ctx, f.Instance); err != nil {
				t.Errorf("it happened, but was answered %v", err)
			}
			if losing.operation != "" {
				t.Fatalf("no Apply of %s was seen", tt.operation)
			}
			if got := inventory(f, []*catalogkit.Instance{f.Instance, node}); fmt.Sprint(got) != fmt.Sprint(tt.there) {
				t.Errorf("there is %v, want %v", got, tt.there)
			}
			f.WantClean()
		})
	}
}
