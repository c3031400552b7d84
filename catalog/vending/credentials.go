package vending

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/maypok86/otter/v2"
	"golang.org/x/sync/singleflight"

	"moorage"
	"moorage/catalog/directory"
	"moorage/internal/worker"
	"moorage/registry"
	"moorage/storage"
)

const (
	// credentialsMax bounds the cached credentials. A credential takes some 4 KiB, including its
	// session token.
	credentialsMax = 50_000
	// credentialLeftMin is the minimum remaining lifetime of a credential that is returned from the
	// cache. Java clients renew credentials 5 minutes before they expire, and cache tables for 5
	// minutes.
	credentialLeftMin = 10 * time.Minute
	// issueTimeout is the maximum time that a storage may take to issue a credential.
	issueTimeout = 10 * time.Second
	// issueRate is the maximum number of credentials per second that one warehouse may request from
	// its storage.
	issueRate = 50
	// issueWaitMax is the maximum time that a client waits when the rate is exceeded.
	issueWaitMax = 2 * time.Second
)

// credentials issues credentials and caches each for a while. It is safe for concurrent use.
type credentials struct {
	cache  *otter.Cache[credentialKey, vended]
	flight singleflight.Group
	now    func() time.Time
	random io.Reader

	// mu guards the fields below. No other lock is taken while it is held.
	mu    sync.Mutex
	turns map[registry.ID]time.Time // by warehouse: the earliest time for its next request
}

// wanted describes a requested credential.
type wanted struct {
	vender    storage.Vender
	warehouse registry.ID
	place     storage.Place // the place that vender reaches
	scope     storage.Scope
}

// credentialKey is a cache key for a wanted that is cheap to compute. The cached credential may be
// for an earlier state of a table or warehouse; see vended.isFor.
type credentialKey struct {
	warehouse         registry.ID
	location, session string
	write             bool
	duration          time.Duration
}

func (w wanted) key() credentialKey {
	return credentialKey{w.warehouse, w.scope.Locations[0], w.scope.Session, w.scope.Write, w.scope.Duration}
}

// name returns a text that is unique for each wanted.
func (w wanted) name() string {
	text := make([]byte, 0, 512)
	write := func(part string) { text = append(append(strconv.AppendInt(text, int64(len(part)), 10), ':'), part...) }
	write(directory.PlaceKey(w.place))
	write(w.warehouse.String())
	write(w.scope.Session)
	write(strconv.FormatBool(w.scope.Write))
	write(w.scope.Duration.String())
	for _, location := range w.scope.Locations {
		write(location)
	}
	sum := sha256.Sum256(text)
	return string(sum[:])
}

// vended is an issued credential.
type vended struct {
	credential storage.Credential
	// encoded has the parts of the credential as members of a JSON object.
	encoded []byte
	version string
	// until is the time after which the credential is no longer returned from the cache.
	until time.Time

	vender    storage.Vender
	locations []string
}

// isFor reports whether v is a credential for w. The two have the same credentialKey, but the
// table's locations may have changed. The storage may also have been opened again as another
// Vender, for example with another key.
func (v vended) isFor(w wanted) bool {
	return v.vender == w.vender && slices.Equal(v.locations, w.scope.Locations)
}

func newCredentials(now func() time.Time, random io.Reader) *credentials {
	return &credentials{
		cache: otter.Must(&otter.Options[credentialKey, vended]{MaximumSize: credentialsMax}),
		now:   now, random: random, turns: make(map[registry.ID]time.Time),
	}
}

// get returns a credential for w, from the cache if it has a valid one. Concurrent callers with the
// same w share one credential.
func (c *credentials) get(ctx context.Context, w wanted) (vended, error) {
	if kept, ok := c.cache.GetIfPresent(w.key()); ok && kept.isFor(w) && c.now().Before(kept.until) {
		return kept, nil
	}
	name := w.name()
	done := c.flight.DoChan(name, func() (any, error) {
		// The first caller's request may be cancelled while other callers still wait for the
		// result.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), issueTimeout)
		defer cancel()
		return c.make(ctx, w, name)
	})
	select {
	case result := <-done:
		made, _ := result.Val.(vended)
		return made, result.Err
	case <-ctx.Done():
		return vended{}, moorage.E("vending.get", "", moorage.KindUnavailable, context.Cause(ctx))
	}
}

// make requests a credential and caches it.
func (c *credentials) make(ctx context.Context, w wanted, name string) (vended, error) {
	const op = "vending.make"
	if err := c.waitForRate(ctx, w.warehouse); err != nil {
		return vended{}, err
	}
	asked := c.now()
	credential, err := w.vender.Vend(ctx, w.scope)
	switch {
	case errors.Is(err, storage.ErrUnscopable):
		return vended{}, err
	case err != nil:
		// The log shows the operator whether the storage was unavailable or refused.
		return vended{}, moorage.E(op, "", moorage.KindUnavailable, err)
	}
	spread, err := c.spread()
	if err != nil {
		return vended{}, moorage.E(op, "", moorage.KindInternal, err)
	}
	encoded, err := json.Marshal(credential.Config)
	if err != nil {
		return vended{}, moorage.E(op, "", moorage.KindInternal, err)
	}
	lives := credential.Expires.Sub(asked)
	left := max(time.Duration(float64(lives/2)*spread), credentialLeftMin)
	sum := sha256.Sum256([]byte(name + strconv.FormatInt(credential.Expires.UnixNano(), 10)))
	made := vended{
		credential: credential, encoded: encoded[1 : len(encoded)-1], version: hex.EncodeToString(sum[:8]),
		until: credential.Expires.Add(-left), vender: w.vender, locations: w.scope.Locations,
	}
	c.cache.Set(w.key(), made)
	return made, nil
}

// spread returns a factor of 0.9 to 1.1, so that credentials that were issued together are not
// renewed together.
func (c *credentials) spread() (float64, error) {
	var drawn [2]byte
	_, err := io.ReadFull(c.random, drawn[:])
	return 0.9 + 0.2*float64(binary.BigEndian.Uint16(drawn[:]))/(1<<16), err
}

// waitForRate waits until issueRate allows the warehouse another credential.
func (c *credentials) waitForRate(ctx context.Context, warehouse registry.ID) error {
	c.mu.Lock()
	now := c.now()
	begins := c.turns[warehouse]
	if begins.Before(now) {
		begins = now
	}
	wait := begins.Sub(now)
	if wait <= issueWaitMax {
		c.turns[warehouse] = begins.Add(time.Second / issueRate)
	}
	c.mu.Unlock()
	if wait > issueWaitMax {
		return moorage.Errorf(moorage.KindTooManyRequests,
			"More than %d credentials a second were asked for in this warehouse", issueRate)
	}
	if wait == 0 {
		return nil
	}
	if !worker.Sleep(ctx, wait) {
		return moorage.E("vending.waitForRate", "", moorage.KindUnavailable, context.Cause(ctx))
	}
	return nil
}
