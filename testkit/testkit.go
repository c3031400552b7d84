// Package testkit holds helpers for the tests of most packages: a clock that tests move, seeded
// random bits, and identifiers in the warehouse "w". Its sub-packages are for special tests.
package testkit

import (
	"encoding/binary"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"moorage"
)

// Must fails the test at once if err is not nil.
func Must(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}

// Ident returns the identifier of a table or view in the namespace "ns" of the warehouse "w".
func Ident(name string) moorage.Identifier {
	return moorage.Identifier{Warehouse: "w", Namespace: moorage.Namespace{"ns"}, Name: name}
}

// Clock is a clock that shows the same time until a test moves it. It is safe for concurrent use.
type Clock struct {
	mu     sync.Mutex // guards the fields below; held while follow runs
	now    time.Time
	follow func(time.Time) // nil if no other clock follows
}

// NewClock returns a clock that shows noon of 1 November 2026, UTC.
func NewClock() *Clock { return NewClockAt(time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC)) }

// NewClockAt returns a clock that shows the given time.
func NewClockAt(now time.Time) *Clock { return &Clock{now: now} }

// Now returns the time.
func (c *Clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

// Advance moves the clock.
func (c *Clock) Advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
	if c.follow != nil {
		c.follow(c.now)
	}
}

// Follow makes each later Advance also call set, with the new time. It is for a store that has its
// own clock.
func (c *Clock) Follow(set func(time.Time)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.follow = set
}

// Bits is a seeded source of random bits. It is safe for concurrent use.
type Bits struct {
	mu     sync.Mutex // guards source
	source *rand.ChaCha8
}

// NewBits returns the bits of a seed.
func NewBits(seed uint64) *Bits {
	var key [32]byte
	binary.LittleEndian.PutUint64(key[:], seed)
	return &Bits{source: rand.NewChaCha8(key)}
}

// Read implements io.Reader.
func (b *Bits) Read(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.source.Read(p)
}

// Rand returns a generator whose seed is drawn from b.
func (b *Bits) Rand() *rand.Rand {
	var seed [32]byte
	_, _ = b.Read(seed[:]) // cannot fail
	return rand.New(rand.NewChaCha8(seed))
}
