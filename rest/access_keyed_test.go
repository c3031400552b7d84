package rest_test

import (
	"fmt"
	"strings"
	"testing"

	"moorage/access"
	"moorage/registry"
	memorystorage "moorage/storage/memory"
)

// A refusal because of a missing privilege is not stored under the key: once the caller has the
// privilege, the same request with the same key succeeds. If a request has succeeded, a repetition
// gets the same answer even after the privilege is gone.
func TestKeyedRequestsAndRights(t *testing.T) {
	t.Parallel()
	w := newGuardedWorld(t, memorystorage.New())
	w.warehouse("w")
	w.must(root, "POST", "/v1/w/namespaces", `{"namespace":["a"]}`)
	w.must(root, "POST", "/v1/w/namespaces/a/tables", `{"name":"t","schema":`+schemaJSON+`}`)
	objects := w.objects()
	const first, second = "017f22e2-79b0-7cc3-98c4-dc0c0c07398f", "017f22e2-79b0-7cc3-98c4-dc0c0c073990"
	commit := func(caller, key string) (int, string) {
		answer := w.do(caller, "POST", "/v1/w/namespaces/a/tables/t",
			`{"requirements":[],"updates":[{"action":"set-properties","updates":{"k":"`+key+`"}}]}`, "Idempotency-Key", key)
		return answer.Code, answer.Body.String()
	}
	want := func(what, caller, key string, code int, text string) {
		t.Helper()
		if got, body := commit(caller, key); got != code || !strings.Contains(body, text) {
			t.Errorf("%s: %d %s, want %d with %q", what, got, body, code, text)
		}
	}
	w.setPolicy()
	want("hidden", ann, first, 404, "Warehouse does not exist: w")
	w.setPolicy(grantsAt(objects["w/a/t"], ann, access.Describe))
	want("seen, and not allowed", ann, first, 403, "Not allowed: alter on table a.t")
	w.setPolicy(grantsAt(objects["w/a/t"], ann, access.Alter))
	want("allowed, with the same key", ann, first, 200, first)
	w.setPolicy(grantsAt(objects["w/a/t"], ann, access.Describe))
	want("its repetition, when it is not allowed any longer", ann, first, 200, first)
	want("another one", ann, second, 403, "Not allowed: alter")
	w.setPolicy()
	want("its repetition, when nothing is seen any longer", ann, first, 200, first)
	want("another one, when nothing is seen", ann, second, 404, "Warehouse does not exist: w")
	if answer := w.do(root, "GET", "/v1/w/namespaces/a/tables/t", ""); strings.Contains(answer.Body.String(), second) {
		t.Error("a refused commit happened")
	}
}

// A caller without grants leaves nothing in the store, whatever it sends with keys. For a caller
// that sees the warehouse, outcomes are stored under its keys.
func TestRefusalsOfStrangersAreNotStored(t *testing.T) {
	t.Parallel()
	w := newGuardedWorld(t, memorystorage.New())
	w.warehouse("w")
	w.must(root, "POST", "/v1/w/namespaces", `{"namespace":["a"]}`)
	w.must(root, "POST", "/v1/w/namespaces/a/tables", `{"name":"t","schema":`+schemaJSON+`}`)
	objects := w.objects()
	w.setPolicy()
	stored := func() int {
		records, err := w.store.List(t.Context(), registry.TableIdempotency, "", "", 100)
		if err != nil {
			t.Fatal(err)
		}
		return len(records)
	}
	before := stored()
	for i, request := range []struct{ path, body string }{
		{"/v1/w/namespaces/a/tables/t", `{`},
		{"/v1/w/namespaces/a/tables/%ff", `{"requirements":[],"updates":[]}`},
		{"/v1/w/namespaces/a/tables/t", `{"requirements":[],"updates":[]}`},
		{"/v1/w/namespaces", `{"namespace":[]}`},
		{"/v1/none/namespaces/a/tables/t", `{"requirements":[],"updates":[]}`},
		{"/v1/none/namespaces", `{"namespace":["x"]}`},
	} {
		key := fmt.Sprintf("017f22e2-79b0-7cc3-98c4-dc0c0c0739%02d", i)
		if answer := w.do(ann, "POST", request.path, request.body, "Idempotency-Key", key); answer.Code < 400 || answer.Code > 404 {
			t.Errorf("%s is answered %d: %s", request.path, answer.Code, answer.Body)
		}
	}
	if after := stored(); after != before {
		t.Errorf("%d records of keys came of a caller without grants", after-before)
	}
	w.setPolicy(grantsAt(objects["w/a/t"], ann, access.Alter))
	const key = "017f22e2-79b0-7cc3-98c4-dc0c0c073998"
	if answer := w.do(ann, "POST", "/v1/w/namespaces/a/tables/t", `{`, "Idempotency-Key", key); answer.Code != 400 || stored() != before+1 {
		t.Errorf("a caller with grants is answered %d, and %d records are stored", answer.Code, stored()-before)
	}
}
