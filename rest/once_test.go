package rest_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"moorage/registry"
	"moorage/rest"
)

// sendKeyed sends server a request with the n-th idempotency key.
func (w *world) sendKeyed(server http.Handler, n int, method, path, body string) *httptest.ResponseRecorder {
	w.t.Helper()
	r := httptest.NewRequest(method, "/", strings.NewReader(body))
	if body == "" {
		r = httptest.NewRequest(method, "/", nil)
	}
	r.URL = parseURL(w.t, path)
	r.Header.Set("Idempotency-Key", fmt.Sprintf("01926f3a-7b1c-7def-8123-%012x", n))
	answer := httptest.NewRecorder()
	server.ServeHTTP(answer, r)
	return answer
}

// outcomes returns the number of stored outcomes.
func (w *world) outcomes() int {
	w.t.Helper()
	records, err := w.store.List(w.t.Context(), registry.TableIdempotency, "", "", registry.ListLimitMax)
	if err != nil {
		w.t.Fatal(err)
	}
	return len(records)
}

// answerOf returns an answer as text, without its date and request id.
func answerOf(answer *httptest.ResponseRecorder) string {
	header := answer.Header().Clone()
	header.Del("X-Request-Id")
	return fmt.Sprintf("%d %v %s", answer.Code, header, answer.Body)
}

// transactionOf returns a transaction that sets a property of the tables ns.t and ns.s.
func transactionOf(key, value string) string {
	const change = `{"identifier":{"namespace":["ns"],"name":"%s"},"requirements":[],"updates":[{"action":"set-properties","updates":{%q:%q}}]}`
	return `{"table-changes":[` + fmt.Sprintf(change, "t", key, value) + "," + fmt.Sprintf(change, "s", key, value) + `]}`
}

// Every change to a table and a view, and every refusal, is sent twice with the same key, the
// second time to a server that has just started. Both answers must be equal.
func TestEveryChangeTwice(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	const namespace = "/v1/default/namespaces/ns"
	create := `{"name":"t","schema":` + schemaJSON + `}`
	location := ""
	for n, step := range []struct {
		method, path, body string
		status             int
	}{
		{"POST", "/v1/namespaces", `{"namespace":["ns"],"properties":{"a":"b"}}`, 200},
		{"POST", "/v1/namespaces", `{"namespace":["ns"]}`, 409},
		{"POST", "/v1/namespaces", `{"namespace":["ns"`, 400},
		{"POST", "/v1/namespaces", `{"namespace":["empty"]}`, 200},
		{"POST", namespace + "/properties", `{"updates":{"a":"c"},"removals":["d"]}`, 200},
		{"POST", namespace + "/properties", `{"removals":["d"]}`, 200}, // changes nothing
		{"POST", namespace + "/properties", `{"updates":{"a":"c"},"removals":["a"]}`, 422},
		{"POST", namespace + "/tables", create, 200},
		{"POST", namespace + "/tables", create, 409},
		{"POST", namespace + "/tables", `{"name":"s","schema":` + schemaJSON + `}`, 200},
		{"POST", namespace + "/tables/t", `{"requirements":[],"updates":[{"action":"set-properties","updates":{"a":"b"}}]}`, 200},
		{"POST", namespace + "/tables/t", `{"requirements":[],"updates":[]}`, 200}, // changes nothing
		{"POST", namespace + "/tables/t", `{"requirements":[{"type":"assert-create"}],"updates":[]}`, 409},
		{"POST", namespace + "/tables/t", `{"requirements":[]}`, 400},
		{"POST", namespace + "/tables/%ff", `{"requirements":[],"updates":[]}`, 400}, // a path that cannot be read
		{"POST", "/v1/%ff/namespaces", `{"namespace":["a"]}`, 400},
		{"POST", "/v1/nowhere/namespaces", `{"namespace":["a"]}`, 404},
		{"POST", "/v1/transactions/commit", transactionOf("a", "c"), 204},
		{"POST", "/v1/transactions/commit", transactionOf("a", "c"), 204}, // changes nothing
		{"POST", "/v1/transactions/commit", `{"table-changes":[]}`, 400},
		{"POST", "/v1/transactions/commit", strings.Replace(transactionOf("a", "d"), `"name":"t"`, `"name":"gone"`, 1), 404},
		{"DELETE", namespace, "", 409},
		{"POST", "/v1/tables/rename", `{"source":{"namespace":["ns"],"name":"t"},"destination":{"namespace":["ns"],"name":"u"}}`, 204},
		{"POST", "/v1/tables/rename", `{"source":{"namespace":["ns"],"name":"t"},"destination":{"namespace":["ns"],"name":"u"}}`, 404},
		{"POST", namespace + "/tables/u/unregister", "", 200},
		{"POST", namespace + "/tables/u/unregister", "", 404},
		{"POST", namespace + "/register", `{"name":"v","metadata-location":"LOCATION"}`, 200},
		{"POST", namespace + "/register", `{"name":"w","metadata-location":"LOCATION"}`, 409},
		{"DELETE", namespace + "/tables/v?purgeRequested=true", "", 204},
		{"DELETE", namespace + "/tables/v?purgeRequested=perhaps", "", 400},
		{"DELETE", namespace + "/tables/v", "", 404},
		{"DELETE", namespace + "/tables/s", "", 204},
		{"POST", namespace + "/views", viewJSON("v"), 200},
		{"POST", namespace + "/views", viewJSON("v"), 409},
		{"POST", namespace + "/views", `{"name":"w"}`, 400},
		{"POST", "/v1/namespaces/nowhere/views", viewJSON("v"), 404},
		{"POST", namespace + "/views/v", `{"updates":[` + newVersion + `]}`, 200},
		{"POST", namespace + "/views/v", `{"updates":[` + newVersion + `]}`, 200}, // changes nothing
		{"POST", namespace + "/views/v", `{"updates":[]}`, 200},                   // changes nothing
		{"POST", namespace + "/views/v", `{"requirements":[{"type":"assert-view-uuid","uuid":"x"}],"updates":[]}`, 409},
		{"POST", namespace + "/views/v", `{"requirements":[]}`, 400},
		{"POST", "/v1/views/rename", rename(identifier("ns", "v"), identifier("ns", "w")), 204},
		{"POST", "/v1/views/rename", rename(identifier("ns", "v"), identifier("ns", "w")), 404},
		{"POST", namespace + "/views/w", `{"updates":[{"action":"set-properties","updates":{"a":"b"}}]}`, 200},
		{"DELETE", namespace + "/views/w", "", 204},
		{"DELETE", namespace + "/views/w", "", 404},
		{"POST", namespace + "/register-view", `{"name":"x","metadata-location":"LOCATION"}`, 200},
		{"POST", namespace + "/register-view", `{"name":"y","metadata-location":"LOCATION"}`, 409},
		{"POST", namespace + "/register-view", `{"name":"y"}`, 400},
		{"DELETE", namespace + "/views/x", "", 204},
		{"DELETE", namespace, "", 204},
		{"DELETE", "/v1/namespaces/empty", "", 204},
	} {
		body := strings.ReplaceAll(step.body, "LOCATION", location)
		first := w.sendKeyed(w, n, step.method, step.path, body)
		if first.Code != step.status {
			t.Fatalf("%s %s %s: %d %s, want %d", step.method, step.path, body, first.Code, first.Body, step.status)
		}
		if (strings.HasSuffix(step.path, "unregister") || strings.HasSuffix(step.path, "/views/w")) && first.Code == 200 {
			location = metadataLocationOf(t, first)
		}
		again := w.sendKeyed(rest.NewServer(rest.TestConfig{Catalog: w.restarted()}), n, step.method, step.path, body)
		if answerOf(again) != answerOf(first) {
			t.Errorf("%s %s %s:\n%s\nand then\n%s", step.method, step.path, body, answerOf(first), answerOf(again))
		}
		if got := w.outcomes(); got != n+1 {
			t.Fatalf("%s %s %s: %d outcomes are stored, want %d", step.method, step.path, body, got, n+1)
		}
	}
	w.wantClean()
}

// A table or view may be dropped and created again between two attempts. The second attempt must
// have no effect.
func TestReplaysHaveNoEffect(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.fill()
	for n, row := range []struct{ path, list, create string }{
		{pathTable, pathTables, `{"name":"t","schema":` + schemaJSON + `}`},
		{pathView, pathViews, viewJSON("view")},
	} {
		drop := func() *httptest.ResponseRecorder { return w.sendKeyed(w, n, "DELETE", row.path, "") }
		if answer := drop(); answer.Code != 204 {
			t.Fatal(answer.Body)
		}
		w.must("POST", row.list, row.create)
		if answer := drop(); answer.Code != 204 {
			t.Errorf("the second attempt is answered with %d %s", answer.Code, answer.Body)
		}
		w.must("GET", row.path, "")
	}
	w.wantClean()
}

// A repeated change of a view is answered with the version that the change made, even after later
// versions, and after the view was dropped.
func TestReplayOfAnEarlierViewVersion(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.fill()
	const body = `{"updates":[` + newVersion + `]}`
	first := w.sendKeyed(w, 1, "POST", pathView, body)
	if first.Code != 200 {
		t.Fatal(first.Body)
	}
	w.must("POST", pathView, `{"updates":[{"action":"set-properties","updates":{"later":"yes"}}]}`)
	again := func(when string) {
		t.Helper()
		for _, server := range []http.Handler{w, rest.NewServer(rest.TestConfig{Catalog: w.restarted()})} {
			if got := answerOf(w.sendKeyed(server, 1, "POST", pathView, body)); got != answerOf(first) {
				t.Errorf("%s:\n%s\nand then\n%s", when, answerOf(first), got)
			}
		}
	}
	again("after another change")
	w.must("DELETE", pathView, "")
	again("after the drop")
	w.wantClean()
}

// An invalid request, or one whose body was not read, stores nothing, so that its key can still be
// used.
func TestNothingIsStored(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(c *rest.TestConfig) { c.BodyBytesMax = 1000 })
	before := w.outcomes()
	for name, row := range map[string]struct {
		change func(*http.Request)
		status int
	}{
		"a body that is too long":      {func(r *http.Request) { r.Body, r.ContentLength = http.NoBody, 1001 }, 413},
		"a body that ends early":       {func(r *http.Request) { r.Body = http.MaxBytesReader(nil, r.Body, 3) }, 400},
		"a coded body":                 {func(r *http.Request) { r.Header.Set("Content-Encoding", "gzip") }, 400},
		"a page from elsewhere":        {func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "cross-site") }, 403},
		"two keys":                     {func(r *http.Request) { r.Header.Add("Idempotency-Key", "01926f3a-7b1c-7def-8123-000000000002") }, 400},
		"a key that is none":           {func(r *http.Request) { r.Header.Set("Idempotency-Key", "1") }, 400},
		"a method that is not allowed": {func(r *http.Request) { r.Method = "PUT" }, 405},
	} {
		r := httptest.NewRequest("POST", "/v1/namespaces", strings.NewReader(`{"namespace":["ns"]}`))
		r.Header.Set("Idempotency-Key", "01926f3a-7b1c-7def-8123-000000000001")
		row.change(r)
		answer := httptest.NewRecorder()
		w.ServeHTTP(answer, r)
		if answer.Code != row.status || w.outcomes() != before {
			t.Errorf("%s: answered %d, want %d; %d outcomes", name, answer.Code, row.status, w.outcomes()-before)
		}
	}
	if answer := w.sendKeyed(w, 1, "POST", "/v1/namespaces", `{"namespace":["ns"]}`); answer.Code != 200 {
		t.Errorf("the key was used up: %d %s", answer.Code, answer.Body)
	}
}

// A key that was used for another request is refused. The refusal does not change the first answer.
func TestKeyOfAnotherRequest(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	const body = `{"namespace":["ns"]}`
	first := answerOf(w.sendKeyed(w, 1, "POST", "/v1/namespaces", body))
	for _, other := range []struct{ method, path, body string }{
		{"POST", "/v1/namespaces", body + " "},
		{"POST", "/v1/default/namespaces", body},
		{"DELETE", "/v1/namespaces/ns", ""},
		{"POST", "/v1/namespaces?x=y", body},
	} {
		answer := w.sendKeyed(w, 1, other.method, other.path, other.body)
		if answer.Code != 422 || !strings.Contains(answer.Body.String(), "UnprocessableEntityException") {
			t.Errorf("%v: %d %s", other, answer.Code, answer.Body)
		}
	}
	if again := answerOf(w.sendKeyed(w, 1, "POST", "/v1/namespaces", body)); again != first {
		t.Errorf("%s\nand then\n%s", first, again)
	}
}
