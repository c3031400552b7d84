package main

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"sync"

	"moorage"
	"moorage/catalog/grants"
	"moorage/console"
	"moorage/identity"
	"moorage/internal/cli"
	"moorage/registry"
	"moorage/secrets"
)

// hasConsole reports whether the server has the console. A server that only does maintenance has no
// console, because it lacks the operations on tables.
func hasConsole(c cli.Config) bool { return c.Console && c.Maintenance != cli.MaintenanceOnly }

// homePath returns the path to which a browser at the root is sent: that of the console, or ""
// without a console.
func homePath(c cli.Config) string {
	if hasConsole(c) {
		return console.Root
	}
	return ""
}

// consoleConfig returns the configuration of the console.
func (n *node) consoleConfig() console.Config {
	keys := &sessionKeys{access: n.catalog.As(moorage.System(whoAuthenticates)).Grants(), sealer: n.sealer}
	made := console.Config{
		Version: version(), Authenticates: n.config.Authenticates(), Recipes: n.recipes, SessionKey: keys.key,
		IsEncrypted: func(r *http.Request) bool { return isEncrypted(r, n.config.TrustedProxies) },
		IsFromProxy: func(r *http.Request) bool { return isFromProxy(r, n.config.TrustedProxies) },
	}
	if n.who != nil {
		made.Providers = providers{n.who}
	}
	return made
}

// providers implements the sign-in of console visitors at the issuers of an authenticator.
type providers struct{ who *identity.Authenticator }

// Names returns the aliases of the issuers at which visitors can sign in.
func (p providers) Names() []string { return p.who.SignInIssuers() }

// Begin begins a sign-in.
func (p providers) Begin(ctx context.Context, provider, redirect string) (console.SignIn, string, error) {
	begun, address, err := p.who.BeginSignIn(ctx, provider, redirect)
	return console.SignIn(begun), address, err
}

// Finish ends a sign-in and returns the visitor's token.
func (p providers) Finish(ctx context.Context, begun console.SignIn, returned url.Values) (string, error) {
	return p.who.FinishSignIn(ctx, identity.SignIn(begun), returned)
}

// endSessions replaces the key of sessions, which ends all sessions.
func (n *node) endSessions(ctx context.Context) error {
	access := n.catalog.As(moorage.System(whoAuthenticates)).Grants()
	return access.RedrawConsoleKey(ctx, drawSessionKey(n.sealer))
}

// recipes returns the lines with which each engine reads a table. It returns none if a shell could
// interpret the address, because a link can lead a browser to a host whose name is a command.
func (n *node) recipes(reach console.Reach) (made []console.Recipe) {
	if moorage.ShellWord(reach.URI) != reach.URI {
		return nil
	}
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
	return r.Header.Get("X-Forwarded-Proto") == "https" && isFromProxy(r, trusted)
}

// isFromProxy reports whether a request came directly from one of the trusted proxies.
func isFromProxy(r *http.Request, trusted []netip.Prefix) bool {
	peer, err := netip.ParseAddrPort(r.RemoteAddr)
	return err == nil && slices.ContainsFunc(trusted, func(p netip.Prefix) bool {
		return p.Contains(peer.Addr().Unmap())
	})
}

// sessionKeyBytes is the length of the key of sessions, for AES-256.
const sessionKeyBytes = 32

// sessionKeyOwner is the owner of the sealed key of sessions. The ids in it are zero, which no
// other owner of a secret has.
func sessionKeyOwner() secrets.Owner {
	none := registry.ID{}.String()
	return secrets.Owner{Store: none, Secret: none, Warehouse: none}
}

// sessionKeys provides the key with which all nodes encrypt the console's sessions. The store keeps
// the key, sealed if the server has a key for secrets. It is safe for concurrent use.
type sessionKeys struct {
	access *grants.Grants
	sealer secrets.Sealer // nil if there are no keys

	mu sync.Mutex // guards the fields below; leaf, never held during I/O
	// opened is the decrypted content of sealed.
	sealed string
	opened []byte
}

// key returns the key, which the first call draws. If this server's keys for secrets cannot open
// the stored key, it is drawn again, which ends all sessions. Otherwise no visitor could sign in.
func (k *sessionKeys) key(ctx context.Context) ([]byte, error) {
	draw := drawSessionKey(k.sealer)
	found, err := k.access.ConsoleKey(ctx, "", draw)
	if err != nil {
		return nil, err
	}
	opened, err := k.open(found)
	if errors.Is(err, secrets.ErrNoKey) || errors.Is(err, secrets.ErrOpen) {
		if found, err = k.access.ConsoleKey(ctx, found.Key, draw); err == nil {
			opened, err = k.open(found)
		}
	}
	return opened, err
}

// open returns the decrypted key in a record.
func (k *sessionKeys) open(found registry.ConsoleKey) ([]byte, error) {
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
		return nil, moorage.E("moorage.open", "", moorage.KindUnavailable,
			fmt.Errorf("open the key of sessions: %w", err))
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.sealed, k.opened = found.Key, opened
	return opened, nil
}

// drawSessionKey returns a function that draws a key of sessions, in the form that is stored.
// sealer is nil if the server has no key for secrets.
func drawSessionKey(sealer secrets.Sealer) func() (registry.ConsoleKey, error) {
	return func() (made registry.ConsoleKey, err error) {
		drawn := make([]byte, sessionKeyBytes)
		rand.Read(drawn)
		if sealer != nil {
			made.Seal = true
			drawn, err = sealer.Seal(drawn, sessionKeyOwner())
		}
		made.Key = base64.RawURLEncoding.EncodeToString(drawn)
		return made, err
	}
}
