package main

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync"

	"moorage"
	"moorage/catalog/grants"
	"moorage/console"
	"moorage/internal/cli"
	"moorage/registry"
	"moorage/secrets"
)

// hasConsole reports whether the server has the console. A server that only does maintenance has
// none, because it lacks the operations on tables.
func hasConsole(c cli.Config) bool { return c.Console && c.Maintenance != cli.MaintenanceOnly }

// homePath returns where a browser at the root goes: to the console, if there is one.
func homePath(c cli.Config) string {
	if hasConsole(c) {
		return console.Root
	}
	return ""
}

// consoleConfig returns what the console needs.
func (n *node) consoleConfig() console.Config {
	keys := &sessionKeys{access: n.catalog.As(moorage.System(whoAuthenticates)).Grants(), sealer: n.sealer}
	return console.Config{
		Version: version(), Authenticates: n.config.Authenticates(), Recipes: n.recipes, SessionKey: keys.key,
		IsEncrypted: func(r *http.Request) bool { return isEncrypted(r, n.config.TrustedProxies) },
	}
}

// recipes returns the lines with which each engine reads a table.
func (n *node) recipes(reach console.Reach) (made []console.Recipe) {
	to := connection{
		uri: reach.URI, warehouse: reach.Warehouse, as: catalogName, scheme: schemeOf(reach.Location),
		who: shownTo(n.config), table: reach.Table,
	}
	for _, each := range engines() {
		title, note, _ := strings.Cut(each.title(to), ", ")
		made = append(made, console.Recipe{Title: title, Note: note, Lines: each.lines(to)})
	}
	return made
}

// isEncrypted reports whether one of the trusted proxies received a request over TLS.
func isEncrypted(r *http.Request, trusted []netip.Prefix) bool {
	peer, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil || r.Header.Get("X-Forwarded-Proto") != "https" {
		return false
	}
	return slices.ContainsFunc(trusted, func(p netip.Prefix) bool { return p.Contains(peer.Addr().Unmap()) })
}

// sessionKeyBytes is the length of the key of sessions, for AES-256.
const sessionKeyBytes = 32

// sessionKeyOwner is the owner of the sealed key of sessions.
func sessionKeyOwner() secrets.Owner { return secrets.Owner{Store: "console", Secret: "session-key"} }

// sessionKeys has the key with which all nodes encrypt the console's sessions. The store keeps the
// key, sealed if the server has a key for secrets. It is safe for concurrent use.
type sessionKeys struct {
	access *grants.Grants
	sealer secrets.Sealer // nil if there are no keys

	mu sync.Mutex // guards the fields below; leaf, never held over I/O
	// opened is the key that sealed was opened to.
	sealed string
	opened []byte
}

// key returns the key. The first call draws it.
func (k *sessionKeys) key(ctx context.Context) ([]byte, error) {
	found, err := k.access.ConsoleKey(ctx, k.draw)
	if err != nil {
		return nil, err
	}
	kept, err := base64.RawURLEncoding.DecodeString(found.Key)
	if err != nil || !found.Seal {
		return kept, err
	}
	k.mu.Lock()
	sealed, opened := k.sealed, k.opened
	k.mu.Unlock()
	if sealed == found.Key {
		return opened, nil
	}
	if k.sealer == nil {
		return nil, moorage.Errorf(moorage.KindUnavailable,
			"The key of sessions is sealed: start this server with --secrets-key, as the others")
	}
	if opened, err = k.sealer.Open(kept, sessionKeyOwner()); err != nil {
		return nil, moorage.E("moorage.key", "", moorage.KindUnavailable,
			fmt.Errorf("open the key of sessions: %w", err))
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.sealed, k.opened = found.Key, opened
	return opened, nil
}

// draw returns a new key as the store keeps it.
func (k *sessionKeys) draw() (made registry.ConsoleKey, err error) {
	drawn := make([]byte, sessionKeyBytes)
	rand.Read(drawn)
	if k.sealer != nil {
		made.Seal = true
		drawn, err = k.sealer.Seal(drawn, sessionKeyOwner())
	}
	made.Key = base64.RawURLEncoding.EncodeToString(drawn)
	return made, err
}
