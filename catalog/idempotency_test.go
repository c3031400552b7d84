package catalog_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"moorage"
	"moorage/catalog"
	"moorage/catalog/gate"
	"moorage/ledger"
	"moorage/registry"
	"moorage/testkit/catalogkit"
)

// count returns how many times operation has happened.
func count(f *catalogkit.Fixture, operation gate.Verb) (n int) {
	f.T.Helper()
	err := f.Ledger.Scan(f.Ctx, registry.TableChange, "", "", func(record registry.Record) (bool, error) {
		change, err := ledger.Decode[registry.Change](record)
		if err == nil && record.State != registry.StateVoid && change.Operation == string(operation) {
			n++
		}
		return true, err
	})
	if err != nil {
		f.T.Fatal(err)
	}
	return n
}

// outcomes returns the stored outcomes.
func outcomes(f *catalogkit.Fixture) (stored []registry.Idempotency) {
	f.T.Helper()
	err := f.Ledger.Scan(f.Ctx, registry.TableIdempotency, "", "", func(record registry.Record) (bool, error) {
		value, err := ledger.Decode[registry.Idempotency](record)
		stored = append(stored, value)
		return true, err
	})
	if err != nil {
		f.T.Fatal(err)
	}
	return stored
}

// opNothing is the operation of mutations that succeed and change nothing.
const opNothing gate.Verb = "nothing"

// keyedMutations returns the mutations that a client can send with a key, and some mutations that
// change nothing.
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
		return []catalog.TableChange{catalogkit.On("t", catalogkit.SetProperty(t, "mine", "yes")), catalogkit.On("new", catalogkit.CommitCreateRequest(t, "file:///wh/ns/new"))}
	}
	always := func(context.Context, *catalogkit.Instance) bool { return true }
	return append(keyed, mutation{opNothing, func(ctx context.Context, c catalog.Verbs) (catalogkit.Reply, error) {
		table, err := c.Commit(ctx, ident("t"), catalogkit.CommitRequest(t, `[]`, `[]`))
		return catalogkit.Reply{Table: table}, err
	}, always}, mutation{opNothing, func(ctx context.Context, c catalog.Verbs) (catalogkit.Reply, error) {
		changed, err := c.UpdateNamespaceProperties(ctx, catalogkit.Warehouse, moorage.Namespace{"ns"}, catalog.PropertiesChange{Removals: []string{"c"}})
		return catalogkit.Reply{Changed: &changed}, err
	}, always}, mutation{gate.Transaction, func(ctx context.Context, c catalog.Verbs) (catalogkit.Reply, error) {
		return catalogkit.Reply{}, c.CommitTransaction(ctx, catalogkit.Warehouse, changes())
	}, func(ctx context.Context, c *catalogkit.Instance) bool { return c.TableExists(ctx, ident("new")) == nil }})
}

// A mutation that is sent three times, the second time to another node, takes effect once. All its
// answers are the same.
func TestOnceEveryMutation(t *testing.T) {
	t.Parallel()
	for n, m := range keyedMutations(t, "") {
		t.Run(string(m.operation), func(t *testing.T) {
			t.Parallel()
			f, unregistered := newCrashFixture(t, m.operation, func(*catalog.Config) {})
			m := keyedMutations(t, unregistered)[n]
			before := count(f, m.operation)
			send := func(c *catalogkit.Instance) string {
				return catalogkit.AnswerText(c.Once(f.Ctx, catalogkit.KeyOf("a"), func(ctx context.Context, c catalog.Verbs) (catalogkit.Reply, error) { return m.run(ctx, c) }))
			}
			outcome, err := f.Once(f.Ctx, catalogkit.KeyOf("a"), func(ctx context.Context, c catalog.Verbs) (catalogkit.Reply, error) { return m.run(ctx, c) })
			if err != nil {
				t.Fatal(err)
			}
			first := catalogkit.AnswerText(outcome, err)
			for _, c := range []*catalogkit.Instance{f.Other(f.Store), f.Instance} {
				if again := send(c); again != first {
					t.Errorf("answered\n%s\nand then\n%s", first, again)
				}
			}
			want := 1
			if m.operation == opNothing {
				want = 0
			}
			if happened := count(f, m.operation) - before; happened != want {
				t.Errorf("%s happened %d times", m.operation, happened)
			}
			if !m.happened(f.Ctx, f.Instance) {
				t.Error("it was answered, but did not happen")
			}
			f.WantClean()
		})
	}
}

// A refused request stays refused, even after the reason is gone.
func TestOnceRefused(t *testing.T) {
	t.Parallel()
	f := catalogkit.New(t)
	f.Create("t")
	create := func(c *catalogkit.Instance) string {
		return catalogkit.AnswerText(c.Once(f.Ctx, catalogkit.KeyOf("create"), func(ctx context.Context, c catalog.Verbs) (catalogkit.Reply, error) {
			table, err := c.CreateTable(ctx, ident("t"), catalog.CreateTableRequest{Schema: []byte(catalogkit.Schema)})
			return catalogkit.Reply{Table: table}, err
		}))
	}
	refused := create(f.Instance)
	if want := "already exists: Table already exists: ns.t"; refused != want {
		t.Fatalf("refused with %q, want %q", refused, want)
	}
	if err := f.DropTable(f.Ctx, ident("t"), catalog.DropOptions{}); err != nil {
		t.Fatal(err)
	}
	for _, c := range []*catalogkit.Instance{f.Instance, f.Other(f.Store)} {
		if again := create(c); again != refused {
			t.Errorf("refused with %q, then answered %q", refused, again)
		}
	}
	catalogkit.WantKind(t, f.TableExists(f.Ctx, ident("t")), moorage.KindNoSuchTable)
	f.WantClean()
}

// A key belongs to one request of one caller in one warehouse.
func TestOnceBinding(t *testing.T) {
	t.Parallel()
	f := catalogkit.New(t)
	f.Create("t")
	commits := 0
	sendAs := func(caller moorage.Caller, key catalog.Key) error {
		commits++
		_, err := f.For(caller, &key, nil).Commit(f.Ctx, ident("t"), catalogkit.SetProperty(t, "n", fmt.Sprint(commits)))
		return err
	}
	send := func(key catalog.Key) error { return sendAs(moorage.Anonymous(), key) }
	key := catalogkit.KeyOf("a")
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
	if got := count(f, gate.Commit); got != 1 {
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
	if got := count(f, gate.Commit); got != 4 {
		t.Errorf("%d commits, want 4", got)
	}
}

// Neither a staged create nor a failed request of the server has an effect or stores an outcome.
func TestOnceLeavesNothing(t *testing.T) {
	t.Parallel()
	f := catalogkit.New(t)
	stage := func(ctx context.Context, c catalog.Verbs) (catalogkit.Reply, error) {
		table, err := c.CreateTable(ctx, ident("t"), catalog.CreateTableRequest{Schema: []byte(catalogkit.Schema), Stage: true})
		return catalogkit.Reply{Table: table}, err
	}
	if _, err := f.Once(f.Ctx, catalogkit.KeyOf("a"), stage); err != nil {
		t.Fatal(err)
	}
	for _, kind := range moorage.Kinds() {
		if kind.Final() {
			continue
		}
		_, err := f.Once(f.Ctx, catalogkit.KeyOf("a"), refusal(moorage.Errorf(kind, "no")))
		catalogkit.WantKind(t, err, kind)
	}
	if stored := outcomes(f); len(stored) != 0 {
		t.Errorf("stored: %+v", stored)
	}
	outcome, err := f.Once(f.Ctx, catalogkit.KeyOf("a"), nothing)
	if err != nil || catalogkit.AnswerText(outcome, err) != catalogkit.AnswerText(catalogkit.Reply{}, nil) {
		t.Errorf("the key was not free: %v", err)
	}
	for _, kind := range moorage.Kinds() {
		again, err := f.Once(f.Ctx, catalogkit.KeyOf("a"), refusal(moorage.Errorf(kind, "no")))
		if got, want := catalogkit.AnswerText(again, err), catalogkit.AnswerText(outcome, nil); got != want {
			t.Errorf("%s after success is answered %q, want %q", kind, got, want)
		}
	}
}

// Every final refusal is stored, with its kind and message.
func TestOnceStoresEveryRefusal(t *testing.T) {
	t.Parallel()
	f := catalogkit.New(t)
	for i, kind := range moorage.Kinds() {
		if !kind.Final() {
			continue
		}
		key := catalogkit.KeyOf("a")
		key.ID = fmt.Sprint(i)
		refused, err := f.Once(f.Ctx, key, refusal(moorage.Errorf(kind, "no to %s", kind)))
		again, errAgain := f.Other(f.Store).Once(f.Ctx, key, nothing)
		if got, want := catalogkit.AnswerText(again, errAgain), catalogkit.AnswerText(refused, err); got != want || errAgain == nil {
			t.Errorf("%s: answered %q, then %q", kind, want, got)
		}
	}
}

// Outcomes are deleted some time after their keys have expired, and not earlier.
func TestOnceForgets(t *testing.T) {
	t.Parallel()
	f := catalogkit.New(t)
	f.Create("t")
	commit := func(id string) {
		key := catalogkit.KeyOf("a")
		key.ID = id
		_, err := f.Once(f.Ctx, key, func(ctx context.Context, c catalog.Verbs) (catalogkit.Reply, error) {
			table, err := c.Commit(ctx, ident("t"), catalogkit.SetProperty(t, id, "b"))
			return catalogkit.Reply{Table: table}, err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	wantStored := func(want int) {
		t.Helper()
		if err := f.SweepAll(f.Ctx); err != nil {
			t.Fatal(err)
		}
		if got := len(outcomes(f)); got != want {
			t.Errorf("%d outcomes, want %d", got, want)
		}
	}
	commit("1")
	f.Clock.Advance(30 * time.Minute)
	commit("2")
	wantStored(2)
	f.Clock.Advance(f.KeyLife() - 30*time.Minute)
	wantStored(2)
	pause := f.KeyLife() / 2 // between the first expiry and the pass that deletes the outcome
	f.Clock.Advance(pause)
	wantStored(1)
	f.Clock.Advance(30*time.Minute - pause)
	wantStored(1)
	f.Clock.Advance(pause)
	wantStored(0)
}

// If a key already has an outcome, the batch fails because of the key, whatever other conditions
// fail.
func TestOnceWinsOverOtherConditions(t *testing.T) {
	t.Parallel()
	f := catalogkit.New(t)
	_, err := f.Once(f.Ctx, catalogkit.KeyOf("a"), nothing)
	must(t, err)
	stored := catalogkit.Tamper(f).Record(registry.TableIdempotency, "", registry.StateNone)
	request, err := ledger.Decode[registry.Idempotency](stored)
	must(t, err)
	change, err := f.Ledger.NewChange(f.Ctx, moorage.Anonymous(), "test", ident("t"))
	must(t, err)
	_, err = f.Ledger.Apply(f.Ctx, ledger.Mutation{
		Change: change, Answers: []ledger.Answer{{Key: &ledger.Key{Record: stored.Key, Request: request}}},
		Conditions: []registry.Condition{registry.ETagIs(registry.PointerKey(registry.ID{1}), registry.ETag{1})},
	})
	if !errors.Is(err, ledger.ErrAnswered) {
		t.Errorf("answered %v, want %v", err, ledger.ErrAnswered)
	}
}
