package rest

import (
	"net"
	"net/http/httptest"
	"testing"
)

// dial opens a connection on which a test writes raw requests.
func dial(t *testing.T, server *httptest.Server) net.Conn {
	t.Helper()
	connection, err := net.Dial("tcp", server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = connection.Close() })
	return connection
}
