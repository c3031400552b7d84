package adls

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
)

// identity returns a token for any scope, and records the requested scopes.
type identity struct {
	mu     sync.Mutex // guards the field below; a leaf
	scopes []string
}

func (i *identity) GetToken(_ context.Context, asked policy.TokenRequestOptions) (azcore.AccessToken, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.scopes = append(i.scopes, asked.Scopes...)
	return azcore.AccessToken{Token: "secret", ExpiresOn: time.Now().Add(time.Hour)}, nil
}

// challenger answers every request with a demand for a token for another service.
type challenger struct {
	mu    sync.Mutex // guards the field below; a leaf
	hosts []string   // hosts that got a token
}

func (c *challenger) Do(r *http.Request) (*http.Response, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if r.Header.Get("Authorization") != "" {
		c.hosts = append(c.hosts, r.URL.Host)
	}
	header := make(http.Header)
	header.Set("WWW-Authenticate", "Bearer authorization_uri=https://login.microsoftonline.com/t/oauth2/authorize "+
		"resource_id=https://management.azure.com")
	return &http.Response{StatusCode: http.StatusUnauthorized, Header: header, Body: http.NoBody, Request: r}, nil
}

// TestTokensGoToAzure: tokens are sent only to Azure's hosts and to an endpoint that the process
// trusts. They are for storage, whatever a server demands.
func TestTokensGoToAzure(t *testing.T) {
	t.Parallel()
	at := func(endpoint string) map[string]string { return map[string]string{OptionEndpoint: endpoint} }
	const azures = "abfss://lake@acct.dfs.core.windows.net/w"
	for _, tt := range []struct {
		name     string
		trusted  string            // endpoint that the process trusts
		place    map[string]string // options of the warehouse
		location string
		host     string // the host that gets tokens; empty if none does
	}{
		{"Azure", "", nil, azures, "acct.blob.core.windows.net"},
		{"Azure by another cloud", "", nil, "abfss://lake@acct.dfs.core.chinacloudapi.cn/w",
			"acct.blob.core.chinacloudapi.cn"},
		{"a host of the location's own", "", nil, "abfss://lake@acct.dfs.evil.example/w", ""},
		{"a host that ends alike", "", nil, "abfss://lake@acct.dfs.xcore.windows.net/w", ""},
		{"an endpoint of the place", "", at("https://evil.example"), azures, ""},
		{"an endpoint that begins alike", "", at("https://acct.blob.core.windows.net.evil.example"), azures, ""},
		{"another port", "", at("https://acct.blob.core.windows.net:8443"), azures, ""},
		{"no TLS", "", at("http://acct.blob.core.windows.net"), azures, ""},
		{"an endpoint of Azure's", "", at("https://other.blob.core.windows.net"), azures,
			"other.blob.core.windows.net"},
		{"an endpoint that the process trusts", "https://private.example", at("https://private.example"),
			azures, "private.example"},
		{"another than that", "https://private.example", at("https://evil.example"),
			azures, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			options, err := Options{Trusted: tt.trusted, TenantID: "t", ClientID: "c", ClientSecret: "s"}.With(tt.place)
			if err != nil {
				t.Fatal(err)
			}
			asked, server := new(identity), new(challenger)
			client, err := Connect(options)
			var store *Store
			if err == nil {
				client.identity, client.core.Transport = asked, server
				store, err = client.Within([]string{tt.location})
			}
			if err == nil {
				_, err = store.Stat(t.Context(), tt.location+"/a")
			}
			refused := err != nil && strings.Contains(err.Error(), "tokens are not sent") && len(server.hosts) == 0
			if err == nil || tt.host == "" && !refused {
				t.Errorf("%v; tokens went to %q", err, server.hosts)
			}
			if tt.host == "" {
				return
			}
			if b, err := store.name(store.roots[0]); err == nil {
				_, err = b.account.keys.get(t.Context(), time.Now().Add(time.Hour))
				if err == nil || errors.Is(err, errNoToken) {
					t.Errorf("a key: %v", err)
				}
			}
			if len(server.hosts) < 2 {
				t.Errorf("%d requests with a token", len(server.hosts))
			}
			for _, host := range server.hosts {
				if host != tt.host {
					t.Errorf("a token went to %s", host)
				}
			}
			for _, scope := range asked.scopes {
				if scope != storageScope {
					t.Errorf("a token was asked for %s", scope)
				}
			}
		})
	}
}
