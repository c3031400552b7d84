package rest_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"

	"moorage/rest"
)

// Every answer with a long document or list needs room, and this server has none. The answer to a
// change is sent nevertheless.
func TestLongAnswersTakeRoom(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newMemoryWorld(t, func(c *rest.TestConfig) { c.AnswersBytesMax = 1 })
		const table = "/v1/namespaces/ns/tables/t"
		w.must("POST", "/v1/namespaces", `{"namespace":["ns"]}`)
		w.must("POST", "/v1/namespaces/ns/tables", `{"name":"t","schema":`+schemaJSON+`}`)
		w.must("GET", table, "") // a short answer needs no room
		padding := strings.Repeat("x", 300<<10)
		w.must("POST", table, fmt.Sprintf(`{"requirements":[],"updates":[{"action":"set-properties","updates":{"padding":%q}}]}`, padding))
		w.must("POST", "/v1/namespaces", fmt.Sprintf(`{"namespace":["long"],"properties":{"padding":%q}}`, padding))
		for n := range 300 {
			w.must("POST", "/v1/namespaces", fmt.Sprintf(`{"namespace":["%0*d"]}`, 1000, n))
		}
		for _, row := range []struct{ path, encoding string }{
			{table, ""}, {table, "gzip"}, {table + "?snapshots=refs", ""},
			{"/v1/namespaces/long", ""}, {"/v1/namespaces/long", "gzip"}, {"/v1/namespaces", ""},
		} {
			r := httptest.NewRequest("GET", row.path, nil)
			r.Header.Set("Accept-Encoding", row.encoding)
			answer := httptest.NewRecorder()
			w.ServeHTTP(answer, r)
			if answer.Code != http.StatusTooManyRequests || !strings.Contains(answer.Body.String(), "large answers") {
				t.Errorf("%s, %q: %d with %d bytes, want 429", row.path, row.encoding, answer.Code, answer.Body.Len())
			}
		}
	})
}
