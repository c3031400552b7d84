package commit

import (
	"testing"
	"time"

	"moorage"
)

// The outcome of an internal key is kept for as long as two nodes may work on one request. That of
// a client's key is kept for as long as clients are told.
func TestInternalKeyIsShort(t *testing.T) {
	t.Parallel()
	now := time.Unix(1000, 0)
	for _, row := range []struct {
		lifetime time.Duration
		internal bool
		want     time.Duration
	}{
		{30 * time.Minute, false, 30*time.Minute + KeyGrace},
		{30 * time.Minute, true, internalKeyLifetime + KeyGrace},
		{time.Minute, true, time.Minute + KeyGrace},
	} {
		p := &Pipeline{now: func() time.Time { return now }, idempotencyLifetime: row.lifetime}
		key := p.ledgerKey(moorage.Anonymous(), Key{ID: "k", Internal: row.internal})
		if got := key.Request.Expires().Sub(now); got != row.want {
			t.Errorf("internal %t of %s: kept for %s, want %s", row.internal, row.lifetime, got, row.want)
		}
	}
}
