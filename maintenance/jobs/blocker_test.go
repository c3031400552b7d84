package jobs

import (
	"testing"
	"testing/synctest"
	"time"
)

// Batches are deleted no faster than the pace allows, and the first at once.
func TestPace(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := &pace{perSecond: 500, now: time.Now}
		began := time.Now()
		for i, want := range []time.Duration{0, 2 * time.Second, 3 * time.Second} {
			if err := p.wait(t.Context(), []int{1000, 500, 1}[i]); err != nil || time.Since(began) != want {
				t.Errorf("batch %d began after %s, %v; want %s", i, time.Since(began), err, want)
			}
		}
		time.Sleep(time.Hour)
		began = time.Now()
		if err := p.wait(t.Context(), 1); err != nil || time.Since(began) != 0 {
			t.Errorf("after a rest a batch waited %s, %v", time.Since(began), err)
		}
	})
}
