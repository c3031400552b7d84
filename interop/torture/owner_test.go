package torture

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"moorage/testkit/servers"
)

// owner is a namespace for a single writer, which therefore knows its exact content.
type owner struct {
	namespace string
	tables    map[string]ownTable
	after     map[string]ownTable // if the request whose answer stayed out has happened; nil if there is none
}

// ownTable is a table in an owner's namespace.
type ownTable struct {
	uuid    string // empty if the response with it never arrived
	commits int
}

const propCommits = "commits"

// workOnOwn creates, changes, drops or renames one of the writer's own tables.
func (w *writer) workOnOwn(ctx context.Context) servers.Answer {
	names := []string{"a", "b", "c"}
	w.random.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
	name, other := names[0], names[1]
	own, after := w.own, maps.Clone(w.own.tables)
	table, exists := own.tables[name]
	_, otherExists := own.tables[other]
	var a servers.Answer
	switch n := w.random.IntN(4); {
	case !exists:
		a = w.client.Create(ctx, own.namespace, name, map[string]string{propCommits: "0"})
		after[name] = ownTable{uuid: a.Table.Metadata.UUID}
	case n == 0:
		a = w.client.Drop(ctx, own.namespace, name, w.random.IntN(2) == 0)
		delete(after, name)
	case n == 1 && !otherExists:
		a = w.client.Rename(ctx, own.namespace, name, other)
		delete(after, name)
		after[other] = table
	default:
		table.commits++
		a = w.client.Set(ctx, own.namespace, name, map[string]string{propCommits: strconv.Itoa(table.commits)})
		after[name] = table
	}
	switch a.Outcome {
	case servers.Acknowledged:
		own.tables = after
	case servers.Unknown:
		own.after = after
	case servers.Refused:
		w.problems = append(w.problems, fmt.Sprintf("a request that nobody disturbs was refused in %s: %d %s", own.namespace, a.Status, a.Text))
	}
	return a
}

// verify compares the namespace with the writer's knowledge, and then updates that from the
// namespace.
func (o *owner) verify(ctx context.Context, c *servers.Client) error {
	names, err := c.List(ctx, o.namespace)
	if err != nil {
		return err
	}
	found := map[string]ownTable{}
	for _, name := range names {
		a := c.Load(ctx, o.namespace, name)
		if a.Outcome != servers.Acknowledged {
			return fmt.Errorf("load %s.%s: %d %s", o.namespace, name, a.Status, a.Text)
		}
		commits, err := strconv.Atoi(a.Table.Metadata.Properties[propCommits])
		if err != nil {
			return fmt.Errorf("load %s.%s: %w", o.namespace, name, err)
		}
		found[name] = ownTable{a.Table.Metadata.UUID, commits}
	}
	if !sameTables(found, o.tables) && (o.after == nil || !sameTables(found, o.after)) {
		return fmt.Errorf("%s holds %v, want %v, or %v if the last request happened", o.namespace, found, o.tables, o.after)
	}
	o.tables, o.after = found, nil
	return nil
}

// sameTables reports whether found equals want.
func sameTables(found, want map[string]ownTable) bool {
	if !slices.Equal(slices.Sorted(maps.Keys(found)), slices.Sorted(maps.Keys(want))) {
		return false
	}
	for name, table := range want {
		if got := found[name]; got.commits != table.commits || table.uuid != "" && got.uuid != table.uuid {
			return false
		}
	}
	return true
}
