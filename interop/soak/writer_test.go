package soak

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"

	"moorage/testkit/servers"
)

// writer works on tables that no other client uses, so it knows their exact state. It is not safe
// for concurrent use.
type writer struct {
	*epoch
	number int
	random *rand.Rand
	tables []*owned
	made   int // number of names and commits so far
}

// owned is a writer's knowledge of one of its tables.
type owned struct {
	name    string
	uuid    string
	there   map[string]bool // acknowledged commits: the table must have a property of that name
	missing map[string]bool // refused commits
}

func newWriter(e *epoch, number int) *writer {
	return &writer{epoch: e, number: number, random: e.load.random(writers + e.number*writersCount + number)}
}

// next returns an unused name.
func (w *writer) next(prefix string) string {
	w.made++
	return fmt.Sprintf("%s%d_%d", prefix, w.number, w.made)
}

// work makes one change or load.
func (w *writer) work(ctx context.Context) {
	if len(w.tables) < ownedCount {
		w.create(ctx)
		return
	}
	at := w.random.IntN(len(w.tables))
	table := w.tables[at]
	switch n := w.random.IntN(100); {
	case n < 60:
		w.commit(ctx, table)
	case n < 80:
		w.look(ctx, table)
	case n < 88:
		w.rename(ctx, table)
	default:
		w.drop(ctx, at)
	}
}

// change repeats a change with a key until it is answered, and reports whether it happened. The
// change must succeed.
func (w *writer) change(ctx context.Context, method, path string, body servers.Object) (servers.Answer, bool) {
	a := w.keyed(ctx, w.random, method, path, body)
	if a.Outcome == servers.Acknowledged {
		w.tally.acknowledged.Add(1)
		return a, true
	}
	if decided(a) {
		w.tally.fail("%s %s was refused: %d %s", method, path, a.Status, a.Text)
	}
	return a, false
}

func (w *writer) create(ctx context.Context) {
	name := w.next("t")
	a, ok := w.change(ctx, http.MethodPost, servers.TablesPath(w.namespace), servers.Object{
		"name": name, "schema": servers.Object{"type": "struct", "schema-id": 0, "fields": []servers.Object{
			{"id": 1, "name": "id", "required": false, "type": "long"},
		}},
	})
	if ok {
		w.tables = append(w.tables, &owned{name: name, uuid: a.Table.Metadata.UUID, there: map[string]bool{}, missing: map[string]bool{}})
	}
}

// commit sets a unique property, half of the time with a key.
func (w *writer) commit(ctx context.Context, table *owned) {
	id := w.next("c")
	body := servers.Object{"requirements": []any{}, "updates": []servers.Object{
		{"action": "set-properties", "updates": map[string]string{id: "1"}},
	}}
	path := servers.TablePath(w.namespace, table.name)
	var a servers.Answer
	if w.random.IntN(2) == 0 {
		a = w.keyed(ctx, w.random, http.MethodPost, path, body)
	} else {
		a = w.world.nodes[w.random.IntN(nodesCount)].client.Send(ctx, http.MethodPost, path, body)
	}
	switch {
	case a.Outcome == servers.Acknowledged:
		table.there[id] = true
		w.tally.acknowledged.Add(1)
	case a.Outcome == servers.Unknown:
		w.tally.unknown.Add(1)
	case a.Status == http.StatusServiceUnavailable || a.Status == http.StatusConflict || a.Status == http.StatusTooManyRequests:
		table.missing[id] = true
		w.tally.refused.Add(1)
	default:
		w.tally.fail("a commit to %s was answered %d %s", path, a.Status, a.Text)
	}
}

// look loads a table and judges it.
func (w *writer) look(ctx context.Context, table *owned) {
	a := w.world.nodes[w.random.IntN(nodesCount)].client.Load(ctx, w.namespace, table.name)
	switch {
	case a.Outcome == servers.Acknowledged:
		w.judge(table, a.Table.Metadata)
	case a.Status != 0 && a.Status != http.StatusServiceUnavailable:
		w.tally.fail("a load of %s was answered %d %s", table.name, a.Status, a.Text)
	}
}

// judge records problems with a table.
func (w *writer) judge(table *owned, now servers.Document) {
	if now.UUID != table.uuid {
		w.tally.fail("%s.%s is the table %s, not %s", w.namespace, table.name, now.UUID, table.uuid)
		return
	}
	for id := range table.there {
		if now.Properties[id] == "" {
			w.tally.fail("%s.%s has lost the acknowledged commit %s", w.namespace, table.name, id)
		}
	}
	for id := range table.missing {
		if now.Properties[id] != "" {
			w.tally.fail("%s.%s has the refused commit %s", w.namespace, table.name, id)
		}
	}
}

func (w *writer) rename(ctx context.Context, table *owned) {
	name := w.next("r")
	ident := func(name string) servers.Object {
		return servers.Object{"namespace": []string{w.namespace}, "name": name}
	}
	if _, ok := w.change(ctx, http.MethodPost, "tables/rename", servers.Object{"source": ident(table.name), "destination": ident(name)}); ok {
		table.name = name
	}
}

// drop drops a table with its files.
func (w *writer) drop(ctx context.Context, at int) {
	if _, ok := w.change(ctx, http.MethodDelete, servers.TablePath(w.namespace, w.tables[at].name)+"?purgeRequested=true", nil); ok {
		w.tables = append(w.tables[:at], w.tables[at+1:]...)
	}
}

// verify judges all tables at the end.
func (w *writer) verify(ctx context.Context) {
	for _, table := range w.tables {
		err := await(ctx, answerTimeout, func(ctx context.Context) error {
			a := w.world.nodes[w.random.IntN(nodesCount)].client.Load(ctx, w.namespace, table.name)
			if a.Outcome != servers.Acknowledged {
				return fmt.Errorf("load %s.%s: %d %s", w.namespace, table.name, a.Status, a.Text)
			}
			w.judge(table, a.Table.Metadata)
			return nil
		})
		if err != nil {
			w.tally.fail("%v", err)
		}
	}
}
