package gate_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	"moorage"
	"moorage/access"
	"moorage/catalog/gate"
	"moorage/txlog"
)

// Each verb has one row. A verb with locks changes the catalog, and an operation of an API that
// takes a key does too.
func TestTable(t *testing.T) {
	t.Parallel()
	seen := make(map[gate.Verb]bool)
	for _, row := range gate.Table() {
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
		jobs := []gate.Verb{gate.Purge, gate.EndWindow, gate.Expire}
		if job := slices.Contains(jobs, row.Verb); (job || row.Open) != (len(row.Asks) == 0) {
			t.Errorf("%s is a job of the server: %v, and asks %v", row.Verb, job, row.Asks)
		}
		for _, operation := range row.Iceberg {
			if !slices.Contains(gate.OfIceberg(operation), row.Verb) {
				t.Errorf("%s is not found by %s", row.Verb, operation)
			}
		}
		for _, operation := range row.Management {
			if !slices.Contains(gate.OfManagement(operation), row.Verb) {
				t.Errorf("%s is not found by %s", row.Verb, operation)
			}
		}
	}
	if _, ok := gate.Verb("fly").Row(); ok {
		t.Error("there is a row for a verb that does not exist")
	}
}

// Change records contain the names of verbs, so these names never change.
func TestNames(t *testing.T) {
	t.Parallel()
	want := []gate.Verb{
		"create-warehouse", "drop-warehouse", "change-warehouse", "validate-warehouse", "clear-tombstone", "create-namespace", "drop-namespace", "update-namespace-properties",
		"create-table", "stage-table", txlog.Operation, "commit-table", "commit-create", "register-table",
		"register-table-overwrite", "drop-table", "unregister-table", "rename-table", "create-view", "register-view",
		"drop-view", "rename-view", "replace-view", "purge", "end-undrop-window", "expire",
	}
	var got []gate.Verb
	for _, row := range gate.Table() {
		if !row.Reads && (len(row.Management) == 0 || row.On == access.Warehouse) {
			got = append(got, row.Verb)
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("the verbs that change something are\n%q\nwant\n%q", got, want)
	}
}

// A panic is audited as a failure.
func TestPassHearsOfPanics(t *testing.T) {
	t.Parallel()
	g := &refusing{}
	func() {
		defer func() { _ = recover() }()
		_ = gate.Pass(t.Context(), g, gate.Request{Caller: moorage.Anonymous(), Verb: gate.LoadTable}, func() error {
			panic("out of range")
		})
	}()
	if len(g.heard) != 1 || g.heard[0] == nil {
		t.Errorf("the gate heard %v", g.heard)
	}
}

// refusing is an Authorizer that refuses one verb, and records the audited outcomes.
type refusing struct {
	refused gate.Verb
	heard   []error
}

var errRefused = moorage.Errorf(moorage.KindForbidden, "no")

func (g *refusing) Authorize(_ context.Context, request gate.Request) error {
	if request.Verb == g.refused {
		return errRefused
	}
	return nil
}

func (g *refusing) Audit(_ context.Context, _ gate.Request, outcome error) {
	g.heard = append(g.heard, outcome)
}

func TestPass(t *testing.T) {
	t.Parallel()
	failure := errors.New("it failed")
	ann := moorage.Caller{Name: "ann"}
	for name, tt := range map[string]struct {
		caller moorage.Caller
		verb   gate.Verb
		fails  error
		does   bool
		want   moorage.Kind
	}{
		"let in":                  {ann, gate.LoadTable, nil, true, 0},
		"let in and failed":       {ann, gate.LoadTable, failure, true, moorage.KindInternal},
		"refused":                 {ann, gate.DropTable, nil, false, moorage.KindForbidden},
		"nobody":                  {moorage.Caller{}, gate.LoadTable, nil, false, moorage.KindForbidden},
		"a verb without a row":    {ann, "fly", nil, false, moorage.KindInternal},
		"a job of the server":     {moorage.System("purge"), gate.Purge, nil, true, 0},
		"one who need not say so": {moorage.Anonymous(), gate.Commit, nil, true, 0},
	} {
		g, did := &refusing{refused: gate.DropTable}, false
		err := gate.Pass(t.Context(), g, gate.Request{Caller: tt.caller, Verb: tt.verb}, func() error {
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
	if err := gate.Pass(t.Context(), gate.AdmitAll(), gate.Request{Caller: ann, Verb: gate.DropTable}, func() error { return nil }); err != nil {
		t.Errorf("the open gate: %v", err)
	}
}
