package adls_test

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"moorage/internal/azuretest"
	"moorage/internal/cloudtest"
	"moorage/storage/adls"
	"moorage/storage/storagetest"
)

// newProxy returns a proxy before the emulator, a store behind it, and an empty root of the store.
func newProxy(t *testing.T, patience storagetest.Patience) (*cloudtest.Proxy, *adls.Store, string) {
	t.Helper()
	server := azuretest.Start(t)
	root := server.NewContainer(t) + "/w"
	address, account, _ := strings.Cut(strings.TrimPrefix(server.Endpoint, "http://"), "/")
	proxy := cloudtest.NewProxy(t, "http://"+address)
	options := emulated(server)
	options.Endpoint = proxy.URL + "/" + account
	options.StallTimeout, options.RetryDelayMax = patience.Stall, patience.Pause
	return proxy, open(t, options, root), root
}

// refuse answers with an error of Azure and does not pass the request on.
func refuse(status int, code string) cloudtest.Fault {
	return func(w http.ResponseWriter, r *http.Request, _ cloudtest.Forward) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("X-Ms-Error-Code", code)
		w.WriteHeader(status)
	}
}
