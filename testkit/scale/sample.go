package scale

import (
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"time"
)

// Sample returns a function that reports whether a test runs the next case of an enumeration. With
// the race detector, the test runs one in every N cases, chosen at random, where N is the constant
// sampled. The seed is taken from the environment variable MOORAGE_SEED. If that is unset, the seed
// is new. Sample logs it. Otherwise, and with -every, the test runs all cases. The names of the
// tests that call Sample or Steps are in test.sh, so that its step "plain" runs all their cases.
func Sample(tb testing.TB) (drawn func() bool) {
	tb.Helper()
	if !On || Every() {
		return func() bool { return true }
	}
	chance := newChance(tb)
	return func() bool { return chance.IntN(sampled) == 0 }
}

// With the race detector, Sample runs one in every sampled cases.
const sampled = 2 * Factor

// Steps returns which calls of an enumeration get a fault: the index of the first, and the distance
// to the next. Without the race detector, these are 0 and 1. With it, the first call is drawn at
// random, and the distance is Factor. See Sample for the seed.
func Steps(tb testing.TB) (first, stride int) {
	tb.Helper()
	if !On || Every() {
		return 0, 1
	}
	return newChance(tb).IntN(Factor), Factor
}

func newChance(tb testing.TB) *rand.Rand {
	tb.Helper()
	seed := uint64(time.Now().UnixNano())
	if text := os.Getenv("MOORAGE_SEED"); text != "" {
		given, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			tb.Fatalf("MOORAGE_SEED=%s: %v", text, err)
		}
		seed = given
	}
	tb.Logf("MOORAGE_SEED=%d", seed)
	return rand.New(rand.NewPCG(seed, 0))
}
