package main

import (
	"bytes"
	"path/filepath"
	"strings"
	"testing"

	"moorage"
	"moorage/catalog"
	"moorage/internal/cli"
	"moorage/management/client"
	"moorage/secrets"
	"moorage/testkit/catalogkit"
)

// newKeyring returns the keys in a new key file.
func newKeyring(t *testing.T) *secrets.Keyring {
	t.Helper()
	path := filepath.Join(t.TempDir(), "keys.json")
	if _, err := secrets.Init(path); err != nil {
		t.Fatal(err)
	}
	keys, err := secrets.Load(path)
	if err != nil {
		t.Fatal(err)
	}
	return keys
}

// TestEndSessions runs key withdraw --sessions on a stopped store.
func TestEndSessions(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	if code := startServe(t, "--data", data).stop(); code != cli.ExitDone { // creates the store
		t.Fatalf("exit code %d", code)
	}
	got := runToEnd(t, "key", "withdraw", "--sessions", "--data", data)
	if got.code != cli.ExitDone || !strings.Contains(got.stdout, "ended all sessions") {
		t.Errorf("%+v", got)
	}
}

// TestSessionKey checks that the key of sessions stays the same until the key for secrets is
// rotated, or until a server without the former key needs it. Such a server then draws a new key of
// sessions.
func TestSessionKey(t *testing.T) {
	t.Parallel()
	former := newKeyring(t)
	f := catalogkit.New(t, func(c *catalog.Config) { c.Sealer = former })
	access := f.As(moorage.System("test")).Grants()
	keyFor := func(sealer secrets.Sealer) []byte {
		t.Helper()
		key, err := (&sessionKeys{access: access, sealer: sealer}).key(f.Ctx)
		if err != nil || len(key) != sessionKeyBytes {
			t.Fatalf("%d bytes, %v", len(key), err)
		}
		return key
	}
	rotateNow := func() {
		t.Helper()
		if _, err := rotate(f.Ctx, f.Catalog, former, moorage.System("test"), client.SecretsRotation{}); err != nil {
			t.Fatal(err)
		}
	}
	rotateNow() // there is no key of sessions yet
	first := keyFor(former)
	if again := keyFor(former); !bytes.Equal(again, first) {
		t.Error("a second server has another key")
	}
	rotateNow()
	second := keyFor(former)
	if bytes.Equal(second, first) {
		t.Error("the key stays when the key for secrets is rotated")
	}
	if err := (&node{catalog: f.Catalog, sealer: former}).endSessions(f.Ctx); err != nil {
		t.Fatal(err)
	}
	if ended := keyFor(former); bytes.Equal(ended, second) {
		t.Error("the key stays when all sessions are ended")
	} else {
		second = ended
	}
	other := newKeyring(t)
	third := keyFor(other)
	if bytes.Equal(third, second) || !bytes.Equal(keyFor(other), third) {
		t.Error("a key that does not open is not drawn again, or is drawn each time")
	}
	if key, err := (&sessionKeys{access: access}).key(f.Ctx); moorage.KindOf(err) != moorage.KindUnavailable || err == nil {
		t.Errorf("a server without keys has %d bytes, %v", len(key), err)
	}
}
