//go:build !race

package rest_test

import (
	"net/http"
	"net/http/httptest"
	"testing"
)

// unread is an answer that is thrown away.
type unread struct{ header http.Header }

func (u unread) Header() http.Header            { return u.header }
func (u unread) Write(part []byte) (int, error) { return len(part), nil }
func (u unread) WriteHeader(int)                {}

// TestLoadAllocations limits the allocations of a load of a table in memory, without the
// allocations of net/http. It cannot run with the race detector, which makes pools drop their
// contents.
func TestLoadAllocations(t *testing.T) {
	const allocationsMax = 28
	w := newWorld(t)
	w.must("POST", pathNamespaces, `{"namespace":["ns"]}`)
	w.must("POST", pathTables, `{"name":"t","schema":`+schemaJSON+`}`)
	request := httptest.NewRequest("GET", pathTable, nil)
	answer := unread{http.Header{}}
	if got := testing.AllocsPerRun(1000, func() {
		clear(answer.header)
		w.server.ServeHTTP(answer, request)
	}); got > allocationsMax {
		t.Errorf("a load makes %.0f allocations, want at most %d", got, allocationsMax)
	}
}
