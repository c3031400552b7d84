//go:build !race

package rest_test

import (
	"net/http"
	"net/http/httptest"
	"testing"
)

// unread is an answer that nobody reads.
type unread struct{ header http.Header }

func (u unread) Header() http.Header            { return u.header }
func (u unread) Write(part []byte) (int, error) { return len(part), nil }
func (u unread) WriteHeader(int)                {}

// TestLoadAllocations bounds what a load of a table that is in memory allocates, beside net/http.
// The race detector lets pools forget what they hold.
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
