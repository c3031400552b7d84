package main

import (
	"net/http"
	"net/http/httptrace"
	"strings"
	"testing"
	"time"

	"moorage/internal/worker"
)

// TestWithdrawnKeyIsRefusedOnEveryNode checks that a key that was withdrawn at one node, or has
// ended, is refused at the next request on every node. That includes open connections, and tokens
// that were issued for the key.
func TestWithdrawnKeyIsRefusedOnEveryNode(t *testing.T) {
	t.Parallel()
	database := startPostgres(t)
	store := []string{"--store", database.DSN()}
	if got := runToEnd(t, append([]string{"migrate"}, store...)...); got.code != 0 {
		t.Fatal(got.stderr)
	}
	root := newKey(t, "root", append(store, "--admin", "--data", t.TempDir())...)
	nodes := []*served{
		startServe(t, append(store, "--data", t.TempDir(), "--keys")...),
		startServe(t, append(store, "--data", t.TempDir(), "--keys")...),
	}
	// ask sends one request to a node on the connection of a client. If the client already had a
	// connection, the request must use it.
	type held struct {
		client *http.Client
		secret string
		asked  bool
	}
	ask := func(at *served, by *held) int {
		t.Helper()
		trace := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{GotConn: func(got httptrace.GotConnInfo) {
			if got.Reused != by.asked {
				t.Errorf("the connection is used again: %t", got.Reused)
			}
		}})
		request, err := http.NewRequestWithContext(trace, http.MethodGet, at.uri+"/v1/config", nil)
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Authorization", "Bearer "+by.secret)
		answer, err := by.client.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		by.asked = true
		_ = answer.Write(new(strings.Builder)) // so that the connection can be used again
		_ = answer.Body.Close()
		return answer.StatusCode
	}
	// hold returns two clients for each node, one with a key and one with a token for the key. Both
	// have already sent a successful request.
	hold := func(key string) [][]*held {
		t.Helper()
		all := make([][]*held, len(nodes))
		for i, node := range nodes {
			status, token := node.token(t, "", "grant_type", "client_credentials", "client_secret", key)
			if status != http.StatusOK {
				t.Fatalf("token: %d", status)
			}
			for _, secret := range []string{key, token} {
				transport := &http.Transport{MaxConnsPerHost: 1}
				t.Cleanup(transport.CloseIdleConnections)
				all[i] = append(all[i], &held{client: &http.Client{Transport: transport}, secret: secret})
				if status := ask(node, all[i][len(all[i])-1]); status != http.StatusOK {
					t.Fatalf("before: %d", status)
				}
			}
		}
		return all
	}
	wantRefused := func(what string, all [][]*held) {
		t.Helper()
		for i, node := range nodes {
			for n, by := range all[i] {
				if status := ask(node, by); status != http.StatusUnauthorized {
					t.Errorf("%s, on node %d with %s: %d", what, i, []string{"the key", "a token"}[n], status)
				}
			}
		}
	}
	for i, node := range nodes {
		key := newKey(t, "etl", "--uri", nodes[1-i].uri, "--token", root)
		all := hold(key)
		withdrawn := runToEnd(t, "key", "withdraw", "etl", strings.Split(key, "_")[1], "--uri", node.uri, "--token", root)
		if withdrawn.code != 0 {
			t.Fatal(withdrawn.stderr)
		}
		wantRefused("withdrawn", all)
	}
	const life = 15 * time.Second // enough for hold on a machine that is slow
	key := newKey(t, "etl", "--expires", life.String(), "--uri", nodes[0].uri, "--token", root)
	ends := time.Now().Add(life)
	all := hold(key)
	// Each request is within the lifetime of the key, or is refused.
	for ; time.Now().Before(ends); worker.Sleep(t.Context(), 100*time.Millisecond) {
		for i, node := range nodes {
			ask(node, all[i][0])
			ask(node, all[i][1])
		}
	}
	wantRefused("ended", all)
}
