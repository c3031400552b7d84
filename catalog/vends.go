package catalog

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"io"
	"strconv"
	"sync"
	"time"

	"github.com/maypok86/otter/v2"
	"golang.org/x/sync/singleflight"

	"moorage"
	"moorage/storage"
)

const (
	// vendsMax bounds the credentials that are kept. One takes some 3 KiB with its session token.
	vendsMax = 50_000
	// vendLeftMin is how long a credential must be good for when it is given again. Java's clients
	// renew theirs 5 minutes before the end, and keep tables for 5 minutes.
	vendLeftMin = 10 * time.Minute
	// vendTimeout bounds how long a credential may take to make.
	vendTimeout = 10 * time.Second
	// vendRate is how many credentials one warehouse may ask its storage for in a second.
	vendRate = 50
	// vendWaitMax is how long a client waits for its turn.
	vendWaitMax = 2 * time.Second
)

// vends makes credentials and gives each again for a while. It is safe for concurrent use.
type vends struct {
	cache  *otter.Cache[string, vended]
	flight singleflight.Group
	now    func() time.Time
	random io.Reader

	// mu guards the fields below; a leaf.
	mu    sync.Mutex
	turns map[string]time.Time // by place: when the next credential may be asked for
}

// vended is a credential that was made.
type vended struct {
	credential storage.Credential
	version    string
	// until is how long it is given again.
	until time.Time
}

func newVends(now func() time.Time, random io.Reader) *vends {
	return &vends{
		cache: otter.Must(&otter.Options[string, vended]{MaximumSize: vendsMax}),
		now:   now, random: random, turns: make(map[string]time.Time),
	}
}

// get returns a credential for scope, which vender makes if none that is good is kept. Those who
// ask for the same at the same time share one. place names the storage.
func (v *vends) get(ctx context.Context, vender storage.Vender, place string, scope storage.Scope) (vended, error) {
	key := vendKey(place, scope)
	if kept, ok := v.cache.GetIfPresent(key); ok && v.now().Before(kept.until) {
		return kept, nil
	}
	done := v.flight.DoChan(key, func() (any, error) {
		// The first who asked may leave; the others still wait.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), vendTimeout)
		defer cancel()
		return v.make(ctx, vender, key, place, scope)
	})
	select {
	case result := <-done:
		made, _ := result.Val.(vended)
		return made, result.Err
	case <-ctx.Done():
		return vended{}, moorage.E("catalog.get", "", moorage.KindUnavailable, context.Cause(ctx))
	}
}

// make asks for a credential and keeps it.
func (v *vends) make(ctx context.Context, vender storage.Vender, key, place string, scope storage.Scope) (
	vended, error) {
	const op = "catalog.make"
	if err := v.turn(ctx, place); err != nil {
		return vended{}, err
	}
	asked := v.now()
	credential, err := vender.Vend(ctx, scope)
	switch {
	case errors.Is(err, storage.ErrUnscopable):
		return vended{}, err
	case err != nil:
		// Whether it was away or refused is the operator's to see: it is in the log.
		return vended{}, moorage.E(op, "", moorage.KindUnavailable, err)
	}
	spread, err := v.spread()
	if err != nil {
		return vended{}, moorage.E(op, "", moorage.KindInternal, err)
	}
	lives := credential.Expires.Sub(asked)
	left := max(time.Duration(float64(lives/2)*spread), vendLeftMin)
	sum := sha256.Sum256([]byte(key + strconv.FormatInt(credential.Expires.UnixNano(), 10)))
	made := vended{credential, hex.EncodeToString(sum[:8]), credential.Expires.Add(-left)}
	v.cache.Set(key, made)
	return made, nil
}

// spread returns a factor of 0.9 to 1.1: credentials that were made together are not renewed
// together.
func (v *vends) spread() (float64, error) {
	var drawn [2]byte
	_, err := io.ReadFull(v.random, drawn[:])
	return 0.9 + 0.2*float64(binary.BigEndian.Uint16(drawn[:]))/(1<<16), err
}

// turn waits until the warehouse at place may ask for another credential.
func (v *vends) turn(ctx context.Context, place string) error {
	v.mu.Lock()
	now := v.now()
	begins := v.turns[place]
	if begins.Before(now) {
		begins = now
	}
	wait := begins.Sub(now)
	if wait <= vendWaitMax {
		v.turns[place] = begins.Add(time.Second / vendRate)
	}
	v.mu.Unlock()
	if wait > vendWaitMax {
		return moorage.Errorf(moorage.KindTooManyRequests,
			"More than %d credentials a second were asked for in this warehouse", vendRate)
	}
	if wait == 0 {
		return nil
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return moorage.E("catalog.turn", "", moorage.KindUnavailable, context.Cause(ctx))
	}
}

// vendKey names what a credential is for.
func vendKey(place string, scope storage.Scope) string {
	text := make([]byte, 0, 512)
	write := func(part string) { text = append(append(strconv.AppendInt(text, int64(len(part)), 10), ':'), part...) }
	write(place)
	write(scope.Session)
	write(strconv.FormatBool(scope.Write))
	write(scope.Duration.String())
	for _, location := range scope.Locations {
		write(location)
	}
	sum := sha256.Sum256(text)
	return string(sum[:])
}
