package catalog

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"testing"
	"time"

	"moorage"
	"moorage/ledger"
	"moorage/registry"
)

// keyOf returns the key of a request that body stands for.
func keyOf(body string) Key {
	return Key{
		ID: "01926f3a-7b1c-7def-8123-456789abcdef", Warehouse: testWarehouse, Method: "POST", Path: "/v1/w/somewhere",
		Body: sha256.Sum256([]byte(body)),
	}
}

// answerText returns everything that a client can tell answers apart by.
func answerText(outcome Outcome, err error) string {
	switch {
	case err != nil:
		return fmt.Sprintf("%s: %s", moorage.KindOf(err), moorage.MessageOf(err))
	case outcome.Table != nil:
		return fmt.Sprintf("%s %s %s %v", outcome.Table.Identifier, outcome.Table.MetadataLocation, outcome.Table.Document.Raw(), outcome.Table.Config)
	case outcome.View != nil:
		return fmt.Sprintf("%s %s %s %v", outcome.View.Identifier, outcome.View.MetadataLocation, outcome.View.Document.Raw(), outcome.View.Config)
	case outcome.Changed != nil:
		return fmt.Sprintf("%q", *outcome.Changed)
	}
	return fmt.Sprintf("%q", outcome.Properties)
}

// count returns how many times operation has happened.
func (f *fixture) count(operation Operation) (n int) {
	f.t.Helper()
	err := f.ledger.Scan(f.ctx, registry.TableChange, "", "", func(record registry.Record) (bool, error) {
		change, err := ledger.Decode[registry.Change](record)
		if err == nil && record.State != registry.StateVoid && change.Operation == string(operation) {
			n++
		}
		return true, err
	})
	if err != nil {
		f.t.Fatal(err)
	}
	return n
}

// outcomes returns the outcomes that are stored.
func (f *fixture) outcomes() (stored []registry.Idempotency) {
	f.t.Helper()
	err := f.ledger.Scan(f.ctx, registry.TableIdempotency, "", "", func(record registry.Record) (bool, error) {
		value, err := ledger.Decode[registry.Idempotency](record)
		stored = append(stored, value)
		return true, err
	})
	if err != nil {
		f.t.Fatal(err)
	}
	return stored
}

// opNothing is the operation of mutations that succeed and change nothing.
const opNothing Operation = "nothing"

// keyedMutations returns those mutations that a client can send with a key, and some that change
// nothing.
func keyedMutations(t testing.TB, unregistered string) []mutation {
	var keyed []mutation
	for _, m := range mutations(t, unregistered) {
		switch m.operation {
		case OpCreateWarehouse, OpDropWarehouse, OpPurge, OpEndWindow:
		default:
			keyed = append(keyed, m)
		}
	}
	changes := func() []TableChange {
		return []TableChange{on("t", setProperty(t, "mine", "yes")), on("new", commitCreateRequest(t, "file:///wh/ns/new"))}
	}
	always := func(context.Context, *Catalog) bool { return true }
	return append(keyed, mutation{opNothing, func(ctx context.Context, c *Catalog) (Outcome, error) {
		table, err := c.Commit(ctx, ident("t"), commitRequest(t, `[]`, `[]`))
		return Outcome{Table: table}, err
	}, always}, mutation{opNothing, func(ctx context.Context, c *Catalog) (Outcome, error) {
		changed, err := c.UpdateNamespaceProperties(ctx, testWarehouse, moorage.Namespace{"ns"}, PropertiesChange{Removals: []string{"c"}})
		return Outcome{Changed: &changed}, err
	}, always}, mutation{OpTransaction, func(ctx context.Context, c *Catalog) (Outcome, error) {
		return Outcome{}, c.CommitTransaction(ctx, testWarehouse, changes())
	}, func(ctx context.Context, c *Catalog) bool { return c.TableExists(ctx, ident("new")) == nil }})
}

// A mutation that is sent three times, the second time to another node, happens once. All its
// answers are alike.
func TestOnceEveryMutation(t *testing.T) {
	t.Parallel()
	for n, m := range keyedMutations(t, "") {
		t.Run(string(m.operation), func(t *testing.T) {
			t.Parallel()
			f, unregistered := newCrashFixture(t, m.operation, func(*Config) {})
			m := keyedMutations(t, unregistered)[n]
			before := f.count(m.operation)
			send := func(c *Catalog) string {
				return answerText(c.once(f.ctx, keyOf("a"), func(ctx context.Context, c *Catalog) (Outcome, error) { return m.run(ctx, c) }))
			}
			outcome, err := f.once(f.ctx, keyOf("a"), func(ctx context.Context, c *Catalog) (Outcome, error) { return m.run(ctx, c) })
			if err != nil {
				t.Fatal(err)
			}
			first := answerText(outcome, err)
			for _, c := range []*Catalog{f.other(f.store), f.Catalog} {
				if again := send(c); again != first {
					t.Errorf("answered\n%s\nand then\n%s", first, again)
				}
			}
			want := 1
			if m.operation == opNothing {
				want = 0
			}
			if happened := f.count(m.operation) - before; happened != want {
				t.Errorf("%s happened %d times", m.operation, happened)
			}
			if !m.happened(f.ctx, f.Catalog) {
				t.Error("it was answered, but did not happen")
			}
			f.wantClean()
		})
	}
}

// What was refused stays refused, also when the reason is gone.
func TestOnceRefused(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.create("t")
	create := func(c *Catalog) string {
		return answerText(c.once(f.ctx, keyOf("create"), func(ctx context.Context, c *Catalog) (Outcome, error) {
			table, err := c.CreateTable(ctx, ident("t"), CreateTableRequest{Schema: []byte(testSchema)})
			return Outcome{Table: table}, err
		}))
	}
	refused := create(f.Catalog)
	if want := "already exists: Table already exists: ns.t"; refused != want {
		t.Fatalf("refused with %q, want %q", refused, want)
	}
	if err := f.DropTable(f.ctx, ident("t"), DropOptions{}); err != nil {
		t.Fatal(err)
	}
	for _, c := range []*Catalog{f.Catalog, f.other(f.store)} {
		if again := create(c); again != refused {
			t.Errorf("refused with %q, then answered %q", refused, again)
		}
	}
	wantKind(t, f.TableExists(f.ctx, ident("t")), moorage.KindNoSuchTable)
	f.wantClean()
}

// A key belongs to one request of one principal in one warehouse.
func TestOnceBinding(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.create("t")
	commits := 0
	send := func(ctx context.Context, key Key) error {
		_, err := f.once(ctx, key, func(ctx context.Context, c *Catalog) (Outcome, error) {
			commits++
			table, err := c.Commit(ctx, ident("t"), setProperty(t, "n", fmt.Sprint(commits)))
			return Outcome{Table: table}, err
		})
		return err
	}
	key := keyOf("a")
	if err := send(f.ctx, key); err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(*Key){
		"body":   func(key *Key) { key.Body[0]++ },
		"path":   func(key *Key) { key.Path += "?purgeRequested=true" },
		"method": func(key *Key) { key.Method = "DELETE" },
	} {
		other := key
		change(&other)
		if err := send(f.ctx, other); moorage.KindOf(err) != moorage.KindUnprocessable {
			t.Errorf("another %s: %v", name, err)
		}
	}
	if got := f.count(OpCommit); got != 1 {
		t.Errorf("%d commits, want 1", got)
	}
	other := key
	other.Warehouse = "elsewhere"
	if err := send(f.ctx, other); err != nil {
		t.Errorf("another warehouse: %v", err)
	}
	other = key
	other.ID = "01926f3a-7b1c-7def-8123-456789abcdee"
	if err := send(f.ctx, other); err != nil {
		t.Errorf("another key: %v", err)
	}
	if err := send(moorage.WithPrincipal(f.ctx, "ann"), key); err != nil {
		t.Errorf("another principal: %v", err)
	}
	if got := f.count(OpCommit); got != 4 {
		t.Errorf("%d commits, want 4", got)
	}
}

// Staging has no effect and leaves nothing behind, nor does what the server could not do.
func TestOnceLeavesNothing(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	stage := func(ctx context.Context, c *Catalog) (Outcome, error) {
		table, err := c.CreateTable(ctx, ident("t"), CreateTableRequest{Schema: []byte(testSchema), Stage: true})
		return Outcome{Table: table}, err
	}
	if _, err := f.once(f.ctx, keyOf("a"), stage); err != nil {
		t.Fatal(err)
	}
	for _, kind := range moorage.Kinds() {
		if kind.Final() {
			continue
		}
		_, err := f.once(f.ctx, keyOf("a"), func(context.Context, *Catalog) (Outcome, error) {
			return Outcome{}, moorage.Errorf(kind, "no")
		})
		wantKind(t, err, kind)
	}
	if stored := f.outcomes(); len(stored) != 0 {
		t.Errorf("stored: %+v", stored)
	}
	outcome, err := f.once(f.ctx, keyOf("a"), func(context.Context, *Catalog) (Outcome, error) { return Outcome{}, nil })
	if err != nil || answerText(outcome, err) != answerText(Outcome{}, nil) {
		t.Errorf("the key was not free: %v", err)
	}
	for _, kind := range moorage.Kinds() {
		again, err := f.once(f.ctx, keyOf("a"), func(context.Context, *Catalog) (Outcome, error) {
			return Outcome{}, moorage.Errorf(kind, "no")
		})
		if got, want := answerText(again, err), answerText(outcome, nil); got != want {
			t.Errorf("%s after success is answered %q, want %q", kind, got, want)
		}
	}
}

// Every refusal that is the last word is stored, with its kind and message.
func TestOnceStoresEveryRefusal(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	for i, kind := range moorage.Kinds() {
		if !kind.Final() {
			continue
		}
		key := keyOf("a")
		key.ID = fmt.Sprint(i)
		refused, err := f.once(f.ctx, key, func(context.Context, *Catalog) (Outcome, error) {
			return Outcome{}, moorage.Errorf(kind, "no to %s", kind)
		})
		again, errAgain := f.other(f.store).once(f.ctx, key, func(context.Context, *Catalog) (Outcome, error) { return Outcome{}, nil })
		if got, want := answerText(again, errAgain), answerText(refused, err); got != want || errAgain == nil {
			t.Errorf("%s: answered %q, then %q", kind, want, got)
		}
	}
}

// Outcomes are deleted when their keys have expired, with some grace, and not before.
func TestOnceForgets(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.create("t")
	commit := func(id string) {
		key := keyOf("a")
		key.ID = id
		_, err := f.once(f.ctx, key, func(ctx context.Context, c *Catalog) (Outcome, error) {
			table, err := c.Commit(ctx, ident("t"), setProperty(t, id, "b"))
			return Outcome{Table: table}, err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	wantStored := func(want int) {
		t.Helper()
		if err := f.sweepAll(f.ctx); err != nil {
			t.Fatal(err)
		}
		if got := len(f.outcomes()); got != want {
			t.Errorf("%d outcomes, want %d", got, want)
		}
	}
	commit("1")
	f.clock.Advance(30 * time.Minute)
	commit("2")
	wantStored(2)
	f.clock.Advance(keyGrace)
	wantStored(2)
	pause := (f.keyLifetime + keyGrace) / 2 // between the first that expires and the pass that deletes it
	f.clock.Advance(pause)
	wantStored(1)
	f.clock.Advance(30*time.Minute - pause)
	wantStored(1)
	f.clock.Advance(pause)
	wantStored(0)
}

// A batch fails on a key that has an outcome before it fails on anything else that it requires.
func TestOnceWinsOverOtherConditions(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	key := keyOf("a")
	work := f.newKeyed(f.ctx, key)
	_, err := f.conclude(f.ctx, work, Outcome{}, nil)
	must(t, err)
	change, err := f.ledger.NewChange(f.ctx, "test", ident("t"))
	must(t, err)
	_, err = f.ledger.Apply(f.ctx, ledger.Mutation{
		Change: change, Key: &work.Key,
		Conditions: []registry.Condition{registry.ETagIs(registry.PointerKey(registry.ID{1}), registry.ETag{1})},
	})
	if !errors.Is(err, ledger.ErrAnswered) {
		t.Errorf("answered %v, want %v", err, ledger.ErrAnswered)
	}
}
