package catalog_test

import (
	"context"
	"fmt"
	"testing"

	"moorage"
	"moorage/catalog"
	"moorage/catalog/gate"
)

// overtaken is an operation whose answer is lost, and what others do before it looks. Afterwards
// the state of the store no longer shows whether it happened.
type overtaken struct {
	operation gate.Verb
	run       func(ctx context.Context, c catalog.Verbs) error
	others    []raceClient
	there     []string // at the end
}

// The answer of a change is lost, and others change the same on top of it. The operation still
// finds that it happened.
func TestLostAnswersOfWhatWasOvertaken(t *testing.T) {
	t.Parallel()
	setOwner := func(value string) raceClient {
		return func(ctx context.Context, c catalog.Verbs) error {
			_, err := c.UpdateNamespaceProperties(ctx, testWarehouse, moorage.Namespace{"ns"}, catalog.PropertiesChange{Updates: map[string]string{"owner": value}})
			return err
		}
	}
	tests := []overtaken{
		{
			operation: gate.CreateTable, run: createTable(ident("new")),
			others: []raceClient{dropTable(ident("new"), catalog.DropOptions{}), createTable(ident("new")), dropTable(ident("new"), catalog.DropOptions{})},
			there:  []string{"ns", "ns:t"},
		},
		{
			operation: gate.CommitCreate, run: commitTable(ident("new"), commitCreateRequest(t, "file:///wh/ns/new")),
			others: []raceClient{renameTable(ident("new"), ident("u")), createTable(ident("new")), dropTable(ident("u"), catalog.DropOptions{})},
			there:  []string{"ns", "ns:new", "ns:t"},
		},
		{
			operation: gate.Rename, run: renameTable(ident("t"), ident("new")),
			others: []raceClient{renameTable(ident("new"), ident("u")), createTable(ident("new")), createTable(ident("t"))},
			there:  []string{"ns", "ns:new", "ns:t", "ns:u"},
		},
		{
			operation: gate.DropTable, run: dropTable(ident("t"), catalog.DropOptions{Purge: true}),
			others: []raceClient{createTable(ident("t")), renameTable(ident("t"), ident("u")), createTable(ident("t"))},
			there:  []string{"ns", "ns:t", "ns:u"},
		},
		{
			operation: gate.UpdateProperties, run: setOwner("me"),
			others: []raceClient{setOwner("a"), setOwner("b"), setOwner("c")},
			there:  []string{"ns", "ns:t"},
		},
		{
			operation: gate.CreateNamespace, run: createNamespace("x"),
			others: []raceClient{dropNamespace("x"), createNamespace("x"), dropNamespace("x")},
			there:  []string{"ns", "ns:t"},
		},
		{
			operation: gate.DropNamespace, run: dropNamespace("y"),
			others: []raceClient{createNamespace("y"), dropNamespace("y"), createNamespace("y")},
			there:  []string{"ns", "ns:t", "y"},
		},
		{
			operation: gate.CreateView, run: createView(ident("new")),
			others: []raceClient{dropView(ident("new")), createTable(ident("new"))},
			there:  []string{"ns", "ns:new", "ns:t"},
		},
		{
			operation: gate.Replace, run: replaceView(ident("v"), newQuery(t, `[]`, "select 2")),
			others: []raceClient{replaceView(ident("v"), newQuery(t, `[]`, "select 3")), renameView(ident("v"), ident("u")), createTable(ident("v"))},
			there:  []string{"ns", "ns:t", "ns:v", "ns:view u"},
		},
		{
			operation: gate.DropView, run: dropView(ident("v")),
			others: []raceClient{createTable(ident("v")), renameTable(ident("v"), ident("u")), createView(ident("v"))},
			there:  []string{"ns", "ns:t", "ns:u", "ns:view v"},
		},
	}
	for _, tt := range tests {
		t.Run(string(tt.operation), func(t *testing.T) {
			t.Parallel()
			f, losing := newLosingFixture(t)
			f.create("t")
			switch tt.operation {
			case gate.DropNamespace:
				must(t, createNamespace("y")(f.ctx, f.instance))
			case gate.Replace, gate.DropView:
				f.createView("v")
			}
			node := f.unlocked(losing.Store) // who waits for the lost answer still has those that both would take
			losing.lose(tt.operation, false, func() {
				for i, other := range tt.others {
					if err := other(f.ctx, node); err != nil {
						t.Errorf("other change %d: %v", i, err)
					}
				}
			})
			if err := tt.run(f.ctx, f.instance); err != nil {
				t.Errorf("it happened, but was answered %v", err)
			}
			if losing.operation != "" {
				t.Fatalf("no Apply of %s was seen", tt.operation)
			}
			if got := f.inventory([]*instance{f.instance, node}); fmt.Sprint(got) != fmt.Sprint(tt.there) {
				t.Errorf("there is %v, want %v", got, tt.there)
			}
			f.wantClean()
		})
	}
}
