package rest_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"moorage"
	"moorage/access"
	memorystorage "moorage/storage/memory"
)

// counted is a body that counts the bytes that are read from it.
type counted struct {
	io.Reader
	read int
}

func (c *counted) Read(p []byte) (int, error) {
	n, err := c.Reader.Read(p)
	c.read += n
	return n, err
}

// If a caller does not see the warehouse, a large body from it is not read. With a key the body is
// read, because a repetition must get the first answer even if the caller no longer sees the
// warehouse.
func TestLargeBodiesOfStrangersAreNotRead(t *testing.T) {
	t.Parallel()
	w := newGuardedWorld(t, memorystorage.New())
	w.warehouse("w")
	w.must(root, "POST", "/v1/w/namespaces", `{"namespace":["a"]}`)
	w.must(root, "POST", "/v1/w/namespaces/a/tables", `{"name":"t","schema":`+schemaJSON+`}`)
	objects := w.objects()
	const first, second = "017f22e2-79b0-7cc3-98c4-dc0c0c07398f", "017f22e2-79b0-7cc3-98c4-dc0c0c073990"
	padding := strings.Repeat("x", 100<<10)
	send := func(path, key string) (*httptest.ResponseRecorder, int) {
		text := fmt.Sprintf(`{"requirements":[],"updates":[{"action":"set-properties","updates":{"k":%q}}]}`, key+padding)
		body := &counted{Reader: strings.NewReader(text)}
		r := httptest.NewRequest("POST", path, body)
		r.ContentLength, r.RemoteAddr = int64(len(text)), "127.0.0.1:4711"
		if key != "" {
			r.Header.Set("Idempotency-Key", key)
		}
		r = r.WithContext(moorage.WithArrival(r.Context(), moorage.Arrival{From: "test", Caller: callerNamed(ann)}))
		answer := httptest.NewRecorder()
		w.ServeHTTP(answer, r)
		return answer, body.read
	}
	const table = "/v1/w/namespaces/a/tables/t"
	w.setPolicy()
	for _, path := range []string{
		table, table + "/metrics", table + "/sign", "/v1/w/namespaces", "/v1/w/namespaces/a/tables", "/v1/w/transactions/commit",
		"/v1/none/namespaces/a/tables/t", table + "/unregister", "/v1/w/namespaces/a/register", "/v1/w/namespaces/a/views",
	} {
		if answer, read := send(path, ""); answer.Code != http.StatusNotFound || read > 0 ||
			!strings.Contains(answer.Body.String(), "Warehouse does not exist") {
			t.Errorf("%s: %d %s, %d bytes of the body were read", path, answer.Code, answer.Body, read)
		}
	}
	w.setPolicy(grantsAt(objects["w/a/t"], ann, access.Alter))
	if answer, _ := send(table, first); answer.Code != http.StatusOK {
		t.Fatalf("a commit that is allowed: %d %s", answer.Code, answer.Body)
	}
	w.setPolicy()
	if answer, _ := send(table, first); answer.Code != http.StatusOK {
		t.Errorf("its repetition, when nothing is seen any longer: %d %s", answer.Code, answer.Body)
	}
	if answer, _ := send(table, second); answer.Code != http.StatusNotFound {
		t.Errorf("another one: %d %s", answer.Code, answer.Body)
	}
}
