package browse

import (
	"crypto/rand"
	"testing"
	"testing/synctest"
	"time"

	"moorage"
	"moorage/registry"
	"moorage/registry/memory"
	"moorage/testkit/registrytest"
)

// While another warehouse is counted, a request gets an older count, or an error. It never gets
// zeros that look like a count.
func TestCountsTakeTurns(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		id, began := registry.ID{1}, time.Now()
		c := newCounts(registrytest.Ledger(memory.New(rand.Reader)), time.Now)
		c.turn <- struct{}{} // another count is running
		if got, err := c.statsOf(t.Context(), "w", id, 0); moorage.KindOf(err) != moorage.KindUnavailable {
			t.Errorf("without an older count: %+v, %v", got, err)
		}
		c.mu.Lock()
		c.last[id] = &Stats{Tables: 7, AsOf: began, Complete: true}
		c.mu.Unlock()
		if got, err := c.statsOf(t.Context(), "w", id, 0); err != nil || got.Tables != 7 || !got.AsOf.Equal(began) {
			t.Errorf("with an older count: %+v, %v", got, err)
		}
		time.Sleep(2 * statsTimeout)
		<-c.turn // the wait was long, and does not count towards the time limit of the count
		synctest.Wait()
		if got, err := c.statsOf(t.Context(), "w", id, time.Hour); err != nil || got.Tables != 0 || !got.Complete {
			t.Errorf("when the other count has ended: %+v, %v", got, err)
		}
	})
}
