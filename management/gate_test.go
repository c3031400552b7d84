package management

import (
	"context"
	"net/http"
	"slices"
	"testing"

	"moorage"
	"moorage/catalog/gate"
)

// closedGate is a gate that refuses every request, and records them.
type closedGate struct{ asked, audited []gate.Request }

func (g *closedGate) Authorize(_ context.Context, request gate.Request) error {
	g.asked = append(g.asked, request)
	return moorage.Errorf(moorage.KindForbidden, "The gate is closed")
}

func (g *closedGate) Audit(_ context.Context, request gate.Request, _ error) {
	g.audited = append(g.audited, request)
}

// Every route asks the gate about the verb of its operation, and does nothing if the gate refuses.
func TestEveryRouteReachesTheGate(t *testing.T) {
	t.Parallel()
	for _, op := range (&server{}).operations() {
		closed, f := &closedGate{}, &fake{}
		config := configOf(f)
		config.Gate = closed
		answer := send(newServer(t, config), op.method, readDescription(t).target(op.path), `{"name":"b"}`)
		if answer.Code != http.StatusForbidden {
			t.Errorf("%s answers %d, not 403", op.id, answer.Code)
		}
		if len(closed.asked) != 1 || len(closed.audited) != 1 || !slices.Contains(gate.OfManagement(op.id), closed.asked[0].Verb) {
			t.Errorf("%s: the gate was asked %v, and heard of %v", op.id, closed.asked, closed.audited)
		}
		if len(f.calls) > 0 {
			t.Errorf("%s did %v", op.id, f.calls)
		}
	}
}
