package adls_test

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"moorage/storage/adls"
	"moorage/testkit/fakecloud"
	"moorage/testkit/storagetest"
)

// newProxy returns a proxy in front of the emulator, a store that uses the proxy, and an empty root
// of the store.
func newProxy(t *testing.T, patience storagetest.Patience) (*fakecloud.Proxy, *adls.Store, string) {
	t.Helper()
	server := fakecloud.StartAzure(t)
	root := server.NewContainer(t) + "/w"
	address, account, _ := strings.Cut(strings.TrimPrefix(server.Endpoint, "http://"), "/")
	proxy := fakecloud.NewProxy(t, "http://"+address)
	options := emulated(server)
	options.Endpoint = proxy.URL + "/" + account
	options.StallTimeout, options.RetryDelayMax = patience.Stall, patience.Pause
	return proxy, open(t, options, root), root
}

// refuse answers with one of Azure's errors, without passing the request on.
func refuse(status int, code string) fakecloud.Fault {
	return func(w http.ResponseWriter, r *http.Request, _ fakecloud.Forward) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("X-Ms-Error-Code", code)
		w.WriteHeader(status)
	}
}
