package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"moorage/catalog/grants"
	"moorage/testkit/loopback"
)

// TestExpiries checks that the log warns of keys 14 days before they end, and of certificates 30
// days before. For certificates /readyz warns too.
func TestExpiries(t *testing.T) {
	t.Parallel()
	certificate, _ := loopback.NewAuthority(t).Sign(t)
	file := filepath.Join(t.TempDir(), "cert.pem")
	if err := os.WriteFile(file, certificate, 0o600); err != nil {
		t.Fatal(err)
	}
	log := new(strings.Builder)
	now := time.Now()
	e := &expiries{
		certificates: map[string]string{"--tls-cert": file, "--peer-tls": filepath.Join(t.TempDir(), "none")},
		now:          func() time.Time { return now }, logger: slog.New(slog.NewTextHandler(log, nil)),
		keys: func(context.Context) (ends []grants.KeyEnd, err error) {
			for i, days := range []int{-1, 1, 13, 15, 90} {
				ends = append(ends, grants.KeyEnd{
					Principal: "key:etl", ID: fmt.Sprint("id", i), Ends: now.Add(time.Duration(days)*24*time.Hour + time.Hour),
				})
			}
			return ends, nil
		},
	}
	tell := func(want ...string) {
		t.Helper()
		log.Reset()
		if err := e.tell(t.Context()); err != nil {
			t.Fatal(err)
		}
		if lines := strings.Count(log.String(), "\n"); lines != len(want) {
			t.Errorf("%d lines, want %d: %s", lines, len(want), log)
		}
		for _, text := range want {
			if !strings.Contains(log.String(), text) {
				t.Errorf("no %q in %s", text, log)
			}
		}
	}
	tell("key=id1", "key=id2")
	if got := e.addNotices(map[string]string{"audit": "x"}); len(got) != 1 {
		t.Errorf("/readyz says %v", got)
	}
	now = now.Add(61 * 24 * time.Hour)
	tell("key=id1", "key=id2", "setting=--tls-cert")
	if got := e.addNotices(nil)["certificate of --tls-cert"]; !strings.HasPrefix(got, "ends ") {
		t.Errorf("/readyz says %q", got)
	}
	now = now.Add(30 * 24 * time.Hour)
	if got := e.addNotices(nil)["certificate of --tls-cert"]; !strings.HasPrefix(got, "ended ") {
		t.Errorf("/readyz says %q", got)
	}
}

// TestKeysOfKeys checks that key list puts the keys that end first at the top, with a mark. When a
// key is withdrawn, the output explains how to withdraw the keys that were made with it. A
// withdrawn key is refused at the next request, even on an open connection.
func TestKeysOfKeys(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	root := newKey(t, "root", "--admin", "--data", data)
	server := startServe(t, "--data", data, "--keys")
	command := func(key string, words ...string) result {
		t.Helper()
		got := runToEnd(t, append(words, "--uri", server.uri, "--token", key)...)
		if got.code != 0 {
			t.Fatalf("%q: %s", words, got.stderr)
		}
		return got
	}
	last := func(got result) string {
		lines := strings.Split(strings.TrimSpace(got.stdout), "\n")
		return lines[len(lines)-1]
	}
	admin := last(command(root, "key", "create", "admin"))
	command(root, "grant", "admin", "on", "server", "to", "key:admin")
	child := last(command(admin, "key", "create", "etl", "--expires", "3d"))
	grandchild := last(command(admin, "key", "create", "admin", "--expires", "1000d"))
	great := last(command(grandchild, "key", "create", "etl", "--expires", "20d"))
	listed := strings.Split(command(root, "key", "list").stdout, "\n")
	if !strings.Contains(listed[1], "key:etl") || !strings.Contains(listed[1], "in 2 days") || strings.Contains(listed[2], "days") {
		t.Errorf("key list is\n%s", strings.Join(listed, "\n"))
	}
	ask := func(key string) int {
		status, _ := server.request(t, "GET", "/v1/config", "", "Authorization", "Bearer "+key)
		return status
	}
	if status := ask(admin); status != 200 {
		t.Fatalf("before: %d", status)
	}
	id := func(key string) string { return strings.Split(key, "_")[1] }
	got := command(root, "key", "withdraw", "admin", id(admin)).stdout
	for _, key := range []string{child, grandchild, great} {
		if !strings.Contains(got, id(key)) {
			t.Errorf("%s is not offered: %s", id(key), got)
		}
	}
	if strings.Contains(got, id(root)) {
		t.Errorf("the key of root is offered: %s", got)
	}
	if status := ask(admin); status != 401 { // on the same connection, which the client keeps
		t.Errorf("after: %d", status)
	}
	if status := ask(child); status != 200 {
		t.Errorf("a child: %d", status)
	}
}

// TestPeersAreNotClients checks that nodes and clients must not share a certificate authority.
func TestPeersAreNotClients(t *testing.T) {
	t.Parallel()
	one, other := loopback.NewAuthority(t), loopback.NewAuthority(t)
	clients := writeFile(t, "clients.pem", string(other.PEM)+string(one.PEM))
	if err := refuseClientsAsPeers(clients, one.PEM); err == nil || !strings.Contains(err.Error(), "--tls-client-ca") {
		t.Errorf("the same authority: %v", err)
	}
	if err := refuseClientsAsPeers(clients, loopback.NewAuthority(t).PEM); err != nil {
		t.Errorf("another authority: %v", err)
	}
}
