package verb_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	"moorage"
	"moorage/catalog/verb"
	"moorage/txlog"
)

// Each verb has one row. A row that locks something changes something, and a face's operation that
// takes a key is one that changes something.
func TestTable(t *testing.T) {
	t.Parallel()
	seen := make(map[verb.Verb]bool)
	for _, row := range verb.Table() {
		if seen[row.Verb] {
			t.Errorf("%s has two rows", row.Verb)
		}
		seen[row.Verb] = true
		if found, ok := row.Verb.Row(); !ok || found.Verb != row.Verb {
			t.Errorf("%s finds the row %v", row.Verb, found)
		}
		if row.Reads && (row.Keyed || len(row.Locks)+len(row.Contended) > 0) {
			t.Errorf("%s reads, and takes locks or a key", row.Verb)
		}
		if len(row.Locks) > 0 && len(row.Contended) > 0 {
			t.Errorf("%s has two lock rules", row.Verb)
		}
		jobs := []verb.Verb{verb.Purge, verb.EndWindow, verb.Expire}
		if job := slices.Contains(jobs, row.Verb); (job || row.Open) != (len(row.Asks) == 0) {
			t.Errorf("%s is a job of the server: %v, and asks %v", row.Verb, job, row.Asks)
		}
		for _, operation := range row.Iceberg {
			if !slices.Contains(verb.OfIceberg(operation), row.Verb) {
				t.Errorf("%s is not found by %s", row.Verb, operation)
			}
		}
		for _, operation := range row.Management {
			if !slices.Contains(verb.OfManagement(operation), row.Verb) {
				t.Errorf("%s is not found by %s", row.Verb, operation)
			}
		}
	}
	if _, ok := verb.Verb("fly").Row(); ok {
		t.Error("there is a row for a verb that does not exist")
	}
}

// Change records keep the names of verbs, so they never change.
func TestNames(t *testing.T) {
	t.Parallel()
	want := []verb.Verb{
		"create-warehouse", "drop-warehouse", "change-warehouse", "validate-warehouse", "clear-tombstone", "create-namespace", "drop-namespace", "update-namespace-properties",
		"create-table", "stage-table", txlog.Operation, "commit-table", "commit-create", "register-table",
		"register-table-overwrite", "drop-table", "unregister-table", "rename-table", "create-view", "register-view",
		"drop-view", "rename-view", "replace-view", "purge", "end-undrop-window", "expire",
	}
	var got []verb.Verb
	for _, row := range verb.Table() {
		if !row.Reads && (len(row.Management) == 0 || row.On == verb.OnWarehouse) {
			got = append(got, row.Verb)
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("the verbs that change something are\n%q\nwant\n%q", got, want)
	}
}

// A panic is heard of as a failure.
func TestPassHearsOfPanics(t *testing.T) {
	t.Parallel()
	g := &gate{}
	func() {
		defer func() { _ = recover() }()
		_ = verb.Pass(t.Context(), g, verb.Request{Caller: moorage.Anonymous(), Verb: verb.LoadTable}, func() error {
			panic("out of range")
		})
	}()
	if len(g.heard) != 1 || g.heard[0] == nil {
		t.Errorf("the gate heard %v", g.heard)
	}
}

// gate refuses a verb, and notes what it hears.
type gate struct {
	refused verb.Verb
	heard   []error
}

var errRefused = moorage.Errorf(moorage.KindForbidden, "no")

func (g *gate) Authorize(_ context.Context, request verb.Request) error {
	if request.Verb == g.refused {
		return errRefused
	}
	return nil
}

func (g *gate) Audit(_ context.Context, _ verb.Request, outcome error) {
	g.heard = append(g.heard, outcome)
}

func TestPass(t *testing.T) {
	t.Parallel()
	failure := errors.New("it failed")
	ann := moorage.Caller{Name: "ann"}
	for name, tt := range map[string]struct {
		caller moorage.Caller
		verb   verb.Verb
		fails  error
		does   bool
		want   moorage.Kind
	}{
		"let in":                  {ann, verb.LoadTable, nil, true, 0},
		"let in and failed":       {ann, verb.LoadTable, failure, true, moorage.KindInternal},
		"refused":                 {ann, verb.DropTable, nil, false, moorage.KindForbidden},
		"nobody":                  {moorage.Caller{}, verb.LoadTable, nil, false, moorage.KindForbidden},
		"a verb without a row":    {ann, "fly", nil, false, moorage.KindInternal},
		"a job of the server":     {moorage.System("purge"), verb.Purge, nil, true, 0},
		"one who need not say so": {moorage.Anonymous(), verb.Commit, nil, true, 0},
	} {
		g, did := &gate{refused: verb.DropTable}, false
		err := verb.Pass(t.Context(), g, verb.Request{Caller: tt.caller, Verb: tt.verb}, func() error {
			did = true
			return tt.fails
		})
		if did != tt.does || (err == nil) != (tt.does && tt.fails == nil) || err != nil && moorage.KindOf(err) != tt.want {
			t.Errorf("%s: did it: %v, error %v", name, did, err)
		}
		if len(g.heard) != 1 || !errors.Is(g.heard[0], err) {
			t.Errorf("%s: the gate heard %v, not %v", name, g.heard, err)
		}
	}
	if err := verb.Pass(t.Context(), verb.Open(), verb.Request{Caller: ann, Verb: verb.DropTable}, func() error { return nil }); err != nil {
		t.Errorf("the open gate: %v", err)
	}
}
