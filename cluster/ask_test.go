package cluster

import (
	"context"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"moorage"
)

// A read-only request goes to all other members, on behalf of its caller. Members that fail, or
// that run a different version, are named.
func TestAskAll(t *testing.T) {
	t.Parallel()
	one, owner := pair(t)
	view := *one.view.Load()
	view = NewView(view.Number+1, append(slices.Clone(view.Members), Member{Session: "gone", Address: "127.0.0.1:1", Version: testVersion},
		Member{Session: "newer", Address: "127.0.0.1:2", Version: "v2"}))
	one.view.Store(&view)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	r := httptest.NewRequestWithContext(ctx, http.MethodGet, "/management/v1/refusals?warehouse=w", nil)
	r.Header.Set("Accept-Encoding", "gzip")
	r.Header.Set("Authorization", "Bearer secret")
	answers := one.router.AskAll(r, caller)
	if len(answers) != 3 {
		t.Fatalf("%d answers: %+v", len(answers), answers)
	}
	for _, answer := range answers {
		switch answer.Node {
		case owner.address:
			if answer.Err != nil || string(answer.Body) != "done by "+owner.address {
				t.Errorf("the other node: %q, %v", answer.Body, answer.Err)
			}
		case "127.0.0.1:1":
			if answer.Err == nil {
				t.Error("a node that is gone answered")
			}
		default:
			if answer.Err == nil || !strings.Contains(answer.Err.Error(), "it runs version v2") {
				t.Errorf("a node of another version: %v", answer.Err)
			}
		}
	}
	got := owner.last(t)
	if got.method != http.MethodGet || got.uri != "/management/v1/refusals?warehouse=w" || !got.forwarded || got.arrival.Caller.Name != caller.Name ||
		got.header.Get("Authorization") != "" || got.header.Get("Accept-Encoding") != "" {
		t.Errorf("the other node got %+v", got)
	}
	owner.execute = func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusForbidden) }
	for _, answer := range one.router.AskAll(r, moorage.Caller{Name: "bob"}) {
		if answer.Node == owner.address && (answer.Err == nil || answer.Err.Error() != "the answer was 403 Forbidden") {
			t.Errorf("a node that refuses: %v", answer.Err)
		}
	}
}
