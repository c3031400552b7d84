package soak

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"moorage"
	"moorage/registry"
	"moorage/testkit/servers"
)

const (
	// waitingChanges is the number of changes that are put into the log without a position.
	waitingChanges = 50_000
	// placedWithin bounds their wait for a position, on a busy machine.
	placedWithin = time.Minute
	// futureChanges is the number of changes by a node whose clock is ahead.
	futureChanges = 1500
	// year is the clock's lead.
	year = 365 * 24 * time.Hour
	// markWithin bounds the time for which a namespace refuses creates after such a node started to
	// drop it: a mark is stale after 30 s.
	markWithin = 75 * time.Second
	// answersWithin bounds a read while commits or a storage hang. The project promises less; this
	// allows for a shared machine.
	answersWithin = 5 * time.Second
	// standbyAway is the length of the standby's pause, and awayCommits the number of commits that
	// are sent meanwhile.
	standbyAway = 6 * time.Second
	awayCommits = 300
	// goesOnWithin bounds the time until each node commits again after the standby is back.
	goesOnWithin = 20 * time.Second
	// processesMax bounds the number of database processes per node.
	processesMax = 50
	// warningsFor is the time for which the database issues warnings.
	warningsFor = 3 * time.Second
)

// putChanges writes count changes into the log as commits do. Each gets the time at.
func (w *world) putChanges(ctx context.Context, count int, at time.Time) error {
	keys := make([]registry.ID, count)
	rows := make([][]any, count)
	for i := range rows {
		for j := range keys[i] {
			keys[i][j] = byte(w.random.Uint32())
		}
		change := registry.Change{
			ID: keys[i], Operation: "commit", Principal: "anonymous", Time: at.UTC(),
			Ident: moorage.Identifier{Warehouse: "default", Namespace: moorage.Namespace{"soak"}, Name: "t"},
		}
		value, err := change.Encode()
		if err != nil {
			return err
		}
		etag := newUUID(w.random)
		rows[i] = []any{[]byte(registry.ChangeKey(keys[i]).ID), etag, int16(registry.StateNone), value, true, time.Now()}
	}
	columns := []string{"key", "etag", "state", "value", "awaits", "at"}
	_, err := w.sql.CopyFrom(ctx, pgx.Identifier{"moorage_change"}, columns, pgx.CopyFromRows(rows))
	return err
}

// allPlaced returns an error while changes older than some seconds have no position.
func (w *world) allPlaced(ctx context.Context) error {
	var waiting int
	err := w.sql.QueryRow(ctx, "SELECT count(*) FROM moorage_change WHERE awaits AND position IS NULL AND at < now() - interval '3 seconds'").Scan(&waiting)
	if err == nil && waiting > 0 {
		err = fmt.Errorf("%d changes have no place", waiting)
	}
	return err
}

// changesThatWait (1): any number of waiting changes soon get a position, even without a reader.
func changesThatWait(ctx context.Context, w *world) (func(context.Context) error, error) {
	if err := w.putChanges(ctx, waitingChanges, time.Now()); err != nil {
		return nil, err
	}
	return nil, await(ctx, placedWithin, w.allPlaced)
}

// standbyPaused (2): while commits hang, nodes answer reads and are ready, and the number of
// database processes is bounded.
func standbyPaused(ctx context.Context, w *world) (func(context.Context) error, error) {
	t, err := w.makeTable(ctx, "standby")
	if err != nil {
		return nil, err
	}
	w.wal.Stall()
	impatient := make([]*servers.Client, nodesCount)
	for i, n := range w.nodes {
		impatient[i] = servers.NewClient(n.uri, standbyAway)
		defer impatient[i].CloseIdle()
	}
	var commits sync.WaitGroup
	var names []string
	for n := range awayCommits { // of namespaces: those to one table would wait for one another in the node
		name := w.name("away")
		names = append(names, name)
		commits.Go(func() { impatient[n%nodesCount].CreateNamespace(ctx, name) })
	}
	_ = pause(ctx, standbyAway/3) // until the commits hang
	err = errors.Join(w.allAnswer(ctx, t), w.fewProcesses(ctx))
	commits.Wait()
	err = errors.Join(err, w.fewProcesses(ctx))
	w.wal.Restore()
	err = errors.Join(err, await(ctx, goesOnWithin, func(ctx context.Context) error {
		for i, n := range w.nodes {
			if a := n.client.Set(ctx, t.namespace, t.name, map[string]string{"again": "x"}); a.Outcome != servers.Acknowledged {
				return fmt.Errorf("node %d: a commit when the standby is back: %d %s", i, a.Status, a.Text)
			}
		}
		return nil
	}))
	return func(ctx context.Context) error {
		errs := []error{w.dropTable(ctx, t)}
		for _, name := range names {
			errs = append(errs, w.clear(ctx, name))
		}
		return errors.Join(errs...)
	}, err
}

// allAnswer returns an error unless each node answers loads, lists and /readyz.
func (w *world) allAnswer(ctx context.Context, t table) error {
	return inTime(func() error { return w.allAnswerOnce(ctx, t) })
}

// allAnswerOnce is like allAnswer. Its error is errLate if some answer took too long.
func (w *world) allAnswerOnce(ctx context.Context, t table) error {
	ctx, cancel := context.WithTimeout(ctx, answersWithin)
	defer cancel()
	errs := make([]error, nodesCount)
	var group sync.WaitGroup
	for i, n := range w.nodes {
		group.Go(func() {
			a := n.client.Load(ctx, t.namespace, t.name)
			if a.Outcome != servers.Acknowledged {
				errs[i] = fmt.Errorf("node %d: a load: %d %s", i, a.Status, a.Text)
			}
			if _, err := n.client.List(ctx, t.namespace); err != nil {
				errs[i] = errors.Join(errs[i], fmt.Errorf("node %d: %w", i, err))
			}
			if err := n.client.Ready(ctx); err != nil {
				errs[i] = errors.Join(errs[i], fmt.Errorf("node %d is not ready: %w", i, err))
			}
		})
	}
	group.Wait()
	err := errors.Join(errs...)
	if err != nil && ctx.Err() != nil {
		err = fmt.Errorf("%w: %w", errLate, err)
	}
	return err
}

// answersInTime makes a request, and returns an error unless its answer is success, and arrives in
// time.
func answersInTime(what string, request func() servers.Answer) error {
	return inTime(func() error {
		began := time.Now()
		a := request()
		took := time.Since(began)
		if a.Outcome != servers.Acknowledged {
			return fmt.Errorf("%s: %d %.200s after %s", what, a.Status, a.Text, took)
		}
		if took > answersWithin {
			return fmt.Errorf("%w: %s took %s", errLate, what, took)
		}
		return nil
	})
}

// fewProcesses returns an error if the nodes use too many database processes.
func (w *world) fewProcesses(ctx context.Context) error {
	var count int
	const sql = "SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend' AND application_name <> $1"
	err := w.sql.QueryRow(ctx, sql, applicationName).Scan(&count)
	if err == nil && count > processesMax*nodesCount {
		err = fmt.Errorf("the database has %d processes for %d nodes", count, nodesCount)
	}
	return err
}

// warnings (3): database warnings on statements make no outcome unknown.
func warnings(ctx context.Context, w *world) (func(context.Context) error, error) {
	t, err := w.makeTable(ctx, "warned")
	if err != nil {
		return nil, err
	}
	const begin = `CREATE FUNCTION soak_warn() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
			RAISE WARNING 'database "postgres" must be vacuumed within 39994181 transactions'; RETURN NULL; END $$;
		CREATE TRIGGER soak_warn BEFORE INSERT OR UPDATE OR DELETE ON moorage_change FOR EACH STATEMENT EXECUTE FUNCTION soak_warn();
		CREATE TRIGGER soak_warn BEFORE INSERT OR UPDATE OR DELETE ON moorage_pointer FOR EACH STATEMENT EXECUTE FUNCTION soak_warn()`
	const end = `DROP TRIGGER soak_warn ON moorage_change; DROP TRIGGER soak_warn ON moorage_pointer; DROP FUNCTION soak_warn()`
	if _, err := w.sql.Exec(ctx, begin); err != nil {
		return nil, err
	}
	err = w.warned(ctx, t)
	_, ended := w.sql.Exec(ctx, end)
	return func(ctx context.Context) error { return w.dropTable(ctx, t) }, errors.Join(err, ended)
}

// warned commits for some time, and returns an error if a commit is not acknowledged.
func (w *world) warned(ctx context.Context, t table) error {
	began := time.Now()
	for n := 0; n < nodesCount || time.Since(began) < warningsFor; n++ {
		a := w.nodes[n%nodesCount].client.Set(ctx, t.namespace, t.name, map[string]string{"n": fmt.Sprint(n)})
		if a.Outcome != servers.Acknowledged {
			return fmt.Errorf("a commit while the database warned: %d %s", a.Status, a.Text)
		}
	}
	return nil
}

// clockAhead (9): the records of a node whose clock was ahead block nothing for longer than usual.
func clockAhead(ctx context.Context, w *world) (func(context.Context) error, error) {
	if err := w.putChanges(ctx, futureChanges, time.Now().Add(year)); err != nil {
		return nil, err
	}
	namespace := w.name("ahead")
	if a := w.nodes[0].client.CreateNamespace(ctx, namespace); a.Outcome != servers.Acknowledged {
		return nil, fmt.Errorf("create %s: %d %s", namespace, a.Status, a.Text)
	}
	const sql = `UPDATE moorage_namespace SET state = $1, etag = gen_random_uuid(),
			value = convert_to(jsonb_set(convert_from(value, 'UTF8')::jsonb, '{since}', to_jsonb($2::text))::text, 'UTF8')
		WHERE convert_from(key, 'UTF8') LIKE '%/' || $3`
	marked, err := w.sql.Exec(ctx, sql, int16(registry.StateDropping), time.Now().Add(year).UTC().Format(time.RFC3339), namespace)
	if err == nil && marked.RowsAffected() != 1 {
		err = fmt.Errorf("%d namespaces were marked", marked.RowsAffected())
	}
	return func(ctx context.Context) error {
		err := await(ctx, markWithin, func(ctx context.Context) error {
			a := w.nodes[1].client.Create(ctx, namespace, "t", nil)
			if a.Outcome != servers.Acknowledged {
				return fmt.Errorf("create a table in %s: %d %s", namespace, a.Status, a.Text)
			}
			return nil
		})
		return errors.Join(err, w.clear(ctx, namespace), await(ctx, placedWithin, w.allPlaced))
	}, err
}

// laterMembers (10): a node that rewrites a record keeps the members that it does not know.
func laterMembers(ctx context.Context, w *world) (func(context.Context) error, error) {
	t, err := w.makeTable(ctx, "later")
	if err != nil {
		return nil, err
	}
	const add = `value = convert_to(jsonb_set(convert_from(value, 'UTF8')::jsonb, '{x-later}', '{"kept": [1]}')::text, 'UTF8'), etag = gen_random_uuid()`
	pointer := fmt.Sprintf(`moorage_pointer SET %s WHERE convert_from(value, 'UTF8')::jsonb->>'table-uuid' = '%s'`, add, t.uuid)
	namespace := fmt.Sprintf(`moorage_namespace SET %s WHERE convert_from(key, 'UTF8') LIKE '%%/%s'`, add, t.namespace)
	for _, sql := range []string{pointer, namespace} {
		if done, err := w.sql.Exec(ctx, "UPDATE "+sql); err != nil || done.RowsAffected() != 1 {
			return nil, fmt.Errorf("add a member: %d rows, %w", done.RowsAffected(), err)
		}
	}
	client := w.nodes[w.random.IntN(nodesCount)].client
	for _, a := range []servers.Answer{
		client.Set(ctx, t.namespace, t.name, map[string]string{"a": "b"}),
		client.Rename(ctx, t.namespace, t.name, "renamed"),
		client.Send(ctx, http.MethodPost, "namespaces/"+t.namespace+"/properties", servers.Object{"updates": map[string]string{"a": "b"}}),
	} {
		if a.Outcome != servers.Acknowledged {
			return nil, fmt.Errorf("change a record of a later version: %d %s", a.Status, a.Text)
		}
	}
	t.name = "renamed"
	const kept = `SELECT
		(SELECT count(*) FROM moorage_pointer WHERE convert_from(value, 'UTF8')::jsonb @> '{"x-later": {"kept": [1]}, "name": "renamed"}'
			AND convert_from(value, 'UTF8')::jsonb->>'table-uuid' = $1),
		(SELECT count(*) FROM moorage_namespace WHERE convert_from(value, 'UTF8')::jsonb @> '{"x-later": {"kept": [1]}, "properties": {"a": "b"}}'
			AND convert_from(key, 'UTF8') LIKE '%/' || $2)`
	var pointers, namespaces int
	err = w.sql.QueryRow(ctx, kept, t.uuid, t.namespace).Scan(&pointers, &namespaces)
	if err == nil && (pointers != 1 || namespaces != 1) {
		err = fmt.Errorf("members of a later version were lost: %d pointers and %d namespaces have them", pointers, namespaces)
	}
	return func(ctx context.Context) error { return w.dropTable(ctx, t) }, err
}

// table is a table for one fault, in its own namespace.
type table struct{ namespace, name, uuid, location string }

// makeTable creates a table in a new namespace.
func (w *world) makeTable(ctx context.Context, prefix string) (table, error) {
	return w.makeTableIn(ctx, "", prefix, fewVersions())
}

// makeTableIn is makeTable in a warehouse, with properties. The warehouse "" is the default one.
func (w *world) makeTableIn(ctx context.Context, warehouse, prefix string, properties map[string]string) (table, error) {
	t := table{namespace: w.name(prefix), name: "t"}
	client := w.nodes[0].client
	path := warehouse
	if warehouse != "" {
		path += "/"
	}
	a := client.Send(ctx, http.MethodPost, path+"namespaces", servers.Object{"namespace": []string{t.namespace}})
	if a.Outcome == servers.Acknowledged {
		a = client.Send(ctx, http.MethodPost, path+servers.TablesPath(t.namespace), servers.Object{
			"name": t.name, "properties": properties,
			"schema": servers.Object{"type": "struct", "schema-id": 0, "fields": []servers.Object{{"id": 1, "name": "id", "required": false, "type": "long"}}},
		})
	}
	if a.Outcome != servers.Acknowledged {
		return t, fmt.Errorf("make a table in %s: %d %.200s", t.namespace, a.Status, a.Text)
	}
	t.uuid, t.location = a.Table.Metadata.UUID, a.Table.Location
	return t, nil
}

// dropTable drops a table of the default warehouse with its files, and its namespace.
func (w *world) dropTable(ctx context.Context, t table) error { return w.clear(ctx, t.namespace) }
