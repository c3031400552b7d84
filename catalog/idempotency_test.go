package catalog_test

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"testing"
	"time"

	"moorage"
	"moorage/catalog"
	"moorage/catalog/gate"
	"moorage/ledger"
	"moorage/registry"
)

// keyOf returns the key of a request that body stands for.
func keyOf(body string) catalog.Key {
	return catalog.Key{
		ID: "01926f3a-7b1c-7def-8123-456789abcdef", Warehouse: testWarehouse, Method: "POST", Path: "/v1/w/somewhere",
		Body: sha256.Sum256([]byte(body)),
	}
}

// answerText returns everything that a client can tell answers apart by.
func answerText(outcome reply, err error) string {
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
func (f *fixture) count(operation gate.Verb) (n int) {
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
const opNothing gate.Verb = "nothing"

// keyedMutations returns those mutations that a client can send with a key, and some that change
// nothing.
func keyedMutations(t testing.TB, unregistered string) []mutation {
	var keyed []mutation
	for _, m := range mutations(t, unregistered) {
		switch m.operation {
		case gate.CreateWarehouse, gate.DropWarehouse, gate.Purge, gate.EndWindow:
		default:
			keyed = append(keyed, m)
		}
	}
	changes := func() []catalog.TableChange {
		return []catalog.TableChange{on("t", setProperty(t, "mine", "yes")), on("new", commitCreateRequest(t, "file:///wh/ns/new"))}
	}
	always := func(context.Context, *instance) bool { return true }
	return append(keyed, mutation{opNothing, func(ctx context.Context, c catalog.Verbs) (reply, error) {
		table, err := c.Commit(ctx, ident("t"), commitRequest(t, `[]`, `[]`))
		return reply{Table: table}, err
	}, always}, mutation{opNothing, func(ctx context.Context, c catalog.Verbs) (reply, error) {
		changed, err := c.UpdateNamespaceProperties(ctx, testWarehouse, moorage.Namespace{"ns"}, catalog.PropertiesChange{Removals: []string{"c"}})
		return reply{Changed: &changed}, err
	}, always}, mutation{gate.Transaction, func(ctx context.Context, c catalog.Verbs) (reply, error) {
		return reply{}, c.CommitTransaction(ctx, testWarehouse, changes())
	}, func(ctx context.Context, c *instance) bool { return c.TableExists(ctx, ident("new")) == nil }})
}

// A mutation that is sent three times, the second time to another node, happens once. All its
// answers are alike.
func TestOnceEveryMutation(t *testing.T) {
	t.Parallel()
	for n, m := range keyedMutations(t, "") {
		t.Run(string(m.operation), func(t *testing.T) {
			t.Parallel()
			f, unregistered := newCrashFixture(t, m.operation, func(*catalog.Config) {})
			m := keyedMutations(t, unregistered)[n]
			before := f.count(m.operation)
			send := func(c *instance) string {
				return answerText(c.once(f.ctx, keyOf("a"), func(ctx context.Context, c catalog.Verbs) (reply, error) { return m.run(ctx, c) }))
			}
			outcome, err := f.once(f.ctx, keyOf("a"), func(ctx context.Context, c catalog.Verbs) (reply, error) { return m.run(ctx, c) })
			if err != nil {
				t.Fatal(err)
			}
			first := answerText(outcome, err)
			for _, c := range []*instance{f.other(f.store), f.instance} {
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
			if !m.happened(f.ctx, f.instance) {
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
	create := func(c *instance) string {
		return answerText(c.once(f.ctx, keyOf("create"), func(ctx context.Context, c catalog.Verbs) (reply, error) {
			table, err := c.CreateTable(ctx, ident("t"), catalog.CreateTableRequest{Schema: []byte(testSchema)})
			return reply{Table: table}, err
		}))
	}
	refused := create(f.instance)
	if want := "already exists: Table already exists: ns.t"; refused != want {
		t.Fatalf("refused with %q, want %q", refused, want)
	}
	if err := f.DropTable(f.ctx, ident("t"), catalog.DropOptions{}); err != nil {
		t.Fatal(err)
	}
	for _, c := range []*instance{f.instance, f.other(f.store)} {
		if again := create(c); again != refused {
			t.Errorf("refused with %q, then answered %q", refused, again)
		}
	}
	wantKind(t, f.TableExists(f.ctx, ident("t")), moorage.KindNoSuchTable)
	f.wantClean()
}

// A key belongs to one request of one caller in one warehouse.
func TestOnceBinding(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.create("t")
	commits := 0
	sendAs := func(caller moorage.Caller, key catalog.Key) error {
		commits++
		_, err := f.For(caller, &key, nil).Commit(f.ctx, ident("t"), setProperty(t, "n", fmt.Sprint(commits)))
		return err
	}
	send := func(key catalog.Key) error { return sendAs(moorage.Anonymous(), key) }
	key := keyOf("a")
	if err := send(key); err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(*catalog.Key){
		"body":   func(key *catalog.Key) { key.Body[0]++ },
		"path":   func(key *catalog.Key) { key.Path += "?purgeRequested=true" },
		"method": func(key *catalog.Key) { key.Method = "DELETE" },
	} {
		other := key
		change(&other)
		if err := send(other); moorage.KindOf(err) != moorage.KindUnprocessable {
			t.Errorf("another %s: %v", name, err)
		}
	}
	if got := f.count(gate.Commit); got != 1 {
		t.Errorf("%d commits, want 1", got)
	}
	other := key
	other.Warehouse = "elsewhere"
	if err := send(other); err != nil {
		t.Errorf("another warehouse: %v", err)
	}
	other = key
	other.ID = "01926f3a-7b1c-7def-8123-456789abcdee"
	if err := send(other); err != nil {
		t.Errorf("another key: %v", err)
	}
	if err := sendAs(moorage.Caller{Name: "ann"}, key); err != nil {
		t.Errorf("another caller: %v", err)
	}
	if got := f.count(gate.Commit); got != 4 {
		t.Errorf("%d commits, want 4", got)
	}
}

// Staging has no effect and leaves nothing behind, nor does what the server could not do.
func TestOnceLeavesNothing(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	stage := func(ctx context.Context, c catalog.Verbs) (reply, error) {
		table, err := c.CreateTable(ctx, ident("t"), catalog.CreateTableRequest{Schema: []byte(testSchema), Stage: true})
		return reply{Table: table}, err
	}
	if _, err := f.once(f.ctx, keyOf("a"), stage); err != nil {
		t.Fatal(err)
	}
	for _, kind := range moorage.Kinds() {
		if kind.Final() {
			continue
		}
		_, err := f.once(f.ctx, keyOf("a"), refusal(moorage.Errorf(kind, "no")))
		wantKind(t, err, kind)
	}
	if stored := f.outcomes(); len(stored) != 0 {
		t.Errorf("stored: %+v", stored)
	}
	outcome, err := f.once(f.ctx, keyOf("a"), nothing)
	if err != nil || answerText(outcome, err) != answerText(reply{}, nil) {
		t.Errorf("the key was not free: %v", err)
	}
	for _, kind := range moorage.Kinds() {
		again, err := f.once(f.ctx, keyOf("a"), refusal(moorage.Errorf(kind, "no")))
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
		refused, err := f.once(f.ctx, key, refusal(moorage.Errorf(kind, "no to %s", kind)))
		again, errAgain := f.other(f.store).once(f.ctx, key, nothing)
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
		_, err := f.once(f.ctx, key, func(ctx context.Context, c catalog.Verbs) (reply, error) {
			table, err := c.Commit(ctx, ident("t"), setProperty(t, id, "b"))
			return reply{Table: table}, err
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
	f.clock.Advance(f.keyLife() - 30*time.Minute)
	wantStored(2)
	pause := f.keyLife() / 2 // between the first that expires and the pass that deletes it
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
	_, err := f.once(f.ctx, keyOf("a"), nothing)
	must(t, err)
	stored := tampering{f}.record(registry.TableIdempotency, "", registry.StateNone)
	request, err := ledger.Decode[registry.Idempotency](stored)
	must(t, err)
	change, err := f.ledger.NewChange(f.ctx, moorage.Anonymous(), "test", ident("t"))
	must(t, err)
	_, err = f.ledger.Apply(f.ctx, ledger.Mutation{
		Change: change, Answers: []ledger.Answer{{Key: &ledger.Key{Record: stored.Key, Request: request}}},
		Conditions: []registry.Condition{registry.ETagIs(registry.PointerKey(registry.ID{1}), registry.ETag{1})},
	})
	if !errors.Is(err, ledger.ErrAnswered) {
		t.Errorf("answered %v, want %v", err, ledger.ErrAnswered)
	}
}
