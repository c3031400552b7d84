package catalog_test

import (
	"cmp"
	"context"
	"fmt"
	"sync"

	"moorage"
	"moorage/catalog"
	"moorage/metadata"
	"moorage/testkit/catalogkit"
	"moorage/testkit/histories"
)

// historyGroups is the number of groups of names in every history.
const historyGroups = 12

// historySize is the size of a history.
type historySize struct {
	writers, commits int // the number of writers, and of commits per writer; other calls come in between
	readers, reads   int
	steady           bool // the tables exist from the start, and are neither dropped nor renamed
	groups           int  // number of groups of names; historyGroups if 0
}

func groupIdent(group, name int) moorage.Identifier {
	return moorage.Identifier{Warehouse: catalogkit.Warehouse, Namespace: groupNamespace(group), Name: histories.TableName(name)}
}

// groupNamespace returns the namespace of a group of names.
func groupNamespace(group int) moorage.Namespace {
	return moorage.Namespace{"group" + string(rune('a'+group))}
}

// runHistory runs clients on system and returns their history. The final state of every name comes
// last.
func runHistory(ctx context.Context, system *historySystem, size historySize, seed uint64) histories.History {
	recorder := &histories.Recorder{}
	groups := cmp.Or(size.groups, historyGroups)
	newClient := func(number int) *histories.Client {
		return system.newClient(ctx, number, seed, histories.Habits{Moves: !size.steady}, recorder)
	}
	disturb := func() {
		if system.disturb == nil {
			return
		}
		if err := system.disturb(ctx); err != nil {
			recorder.Fail(err)
		}
	}
	if size.steady {
		system.createAll(ctx, groups, size.writers+size.readers+1, recorder)
	}
	var group sync.WaitGroup
	for number := range size.writers + size.readers {
		client := newClient(number)
		if number >= size.writers {
			group.Go(func() {
				for range size.reads {
					client.Read(client.IntN(groups))
				}
			})
			continue
		}
		leave := system.join(number)
		group.Go(func() {
			defer leave()
			for made := 0; made < size.commits; {
				if client.Write(client.IntN(groups)) {
					made++
				}
				if client.IntN(50) == 0 {
					disturb()
				}
			}
		})
	}
	group.Wait()
	disturb()
	last := newClient(size.writers + size.readers)
	for group := range groups {
		last.Settle(group)
	}
	return recorder.History()
}

// createAll creates the tables of all names through the node without faults. In the history, number
// is its client.
func (s *historySystem) createAll(ctx context.Context, groups, number int, recorder *histories.Recorder) {
	client := histories.NewClient(number, 0, histories.Habits{}, recorder,
		func(call histories.Call) histories.Answer { return ask(ctx, s.clean, call) })
	for group := range groups {
		for name := range histories.Names {
			client.Do(client.Call(histories.Create, group, name))
		}
	}
}

// newClient returns a client of one of the nodes.
func (s *historySystem) newClient(ctx context.Context, number int, seed uint64, habits histories.Habits, recorder *histories.Recorder) *histories.Client {
	var node catalog.Verbs = s.nodes[number%len(s.nodes)]
	if len(s.gates) > 0 {
		node = gatedNode{node, s.gates[number%len(s.gates)]}
	}
	return histories.NewClient(number, seed, habits, recorder,
		func(call histories.Call) histories.Answer { return ask(ctx, node, call) })
}

// join tells the turnstile of a node, if there is one, that a client will begin commits. leave
// tells it that the client has ended.
func (s *historySystem) join(number int) (leave func()) {
	if len(s.gates) == 0 {
		return func() {}
	}
	return s.gates[number%len(s.gates)].join()
}

// ask makes a call on a node.
func ask(ctx context.Context, node catalog.Verbs, call histories.Call) histories.Answer {
	var table *catalog.Table
	var answer histories.Answer
	ident := groupIdent(call.Group, call.Name)
	switch call.Action {
	case histories.Load:
		table, answer.Err = node.LoadTable(ctx, ident)
	case histories.Exists:
		answer.Err = node.TableExists(ctx, ident)
	case histories.List:
		var names []string
		names, _, answer.Err = node.ListTables(ctx, catalogkit.Warehouse, ident.Namespace, moorage.Page{})
		for _, name := range names {
			answer.Listed[name[1]-'0'] = true
		}
	case histories.Refresh:
		table, answer.Err = node.Commit(ctx, ident, catalog.CommitRequest{})
	case histories.Set, histories.SetPinned, histories.Append:
		var request catalog.CommitRequest
		if request, answer.Err = historyRequest(call); answer.Err == nil {
			table, answer.Err = node.Commit(ctx, ident, request)
		}
	case histories.Create:
		table, answer.Err = node.CreateTable(ctx, ident, catalog.CreateTableRequest{
			Schema:     []byte(catalogkit.Schema),
			Properties: map[string]string{histories.PropClient(call.Client): call.ID, "write.metadata.previous-versions-max": "5"},
		})
	case histories.Drop:
		answer.Err = node.DropTable(ctx, ident, catalog.DropOptions{})
	case histories.Unregister:
		table, answer.Err = node.UnregisterTable(ctx, ident)
	case histories.Rename:
		answer.Err = node.RenameTable(ctx, ident, groupIdent(call.Group, call.To))
	case histories.CreateNS:
		_, answer.Err = node.CreateNamespace(ctx, catalogkit.Warehouse, ident.Namespace, nil)
	case histories.DropNS:
		answer.Err = node.DropNamespace(ctx, catalogkit.Warehouse, ident.Namespace)
	}
	if answer.Err == nil && table != nil {
		return histories.Found(table.MetadataLocation, table.Document)
	}
	return answer
}

// historyRequest returns the body of a commit.
func historyRequest(call histories.Call) (catalog.CommitRequest, error) {
	requirements, updates := call.Commit(newClock().Now().UnixMilli(), "file:///wh")
	r, err := catalogkit.Checked(metadata.DecodeRequirements, requirements)
	if err != nil {
		return catalog.CommitRequest{}, fmt.Errorf("decode the requirements: %w", err)
	}
	u, err := catalogkit.Checked(metadata.DecodeUpdates, updates)
	return catalog.CommitRequest{Requirements: r, Updates: u}, err
}
