package locks_test

import (
	"sync"
	"testing"
	"time"

	"moorage/locks"
)

func TestTimeoutAdapts(t *testing.T) {
	t.Parallel()
	const initial, floor = 30 * time.Second, 5 * time.Second
	for _, test := range []struct {
		name      string
		successes int // of every 16 waits
		waited    time.Duration
		windows   int
		want      time.Duration
	}{
		{"half a window changes nothing", 8, time.Second, 0, initial},
		{"all in vain: grows by a quarter", 0, 0, 1, initial * 5 / 4},
		{"six in vain: grows by a quarter", 10, time.Second, 1, initial * 5 / 4},
		{"five in vain: stays", 11, time.Second, 1, initial},
		{"two in vain: stays", 14, time.Second, 1, initial},
		{"one in vain: shrinks halfway", 15, time.Second, 1, (initial + floor) / 2},
		{"none in vain: shrinks halfway", 16, time.Second, 1, (initial + floor) / 2},
		{"long waits: shrinks halfway to twice the longest", 16, 10 * time.Second, 1, 25 * time.Second},
		{"very long waits: does not shrink", 16, 29 * time.Second, 5, initial},
		{"never below the floor", 16, 0, 100, floor},
		{"never beyond four times the initial value", 0, 0, 100, 4 * initial},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			timeout := locks.NewTimeout(initial, floor)
			for range test.windows {
				for i := range 16 {
					if i < test.successes {
						timeout.Succeeded(test.waited)
					} else {
						timeout.TimedOut()
					}
				}
			}
			if test.windows == 0 {
				for range 8 {
					timeout.TimedOut()
				}
			}
			if got := timeout.Duration(); got != test.want {
				t.Errorf("got %s, want %s", got, test.want)
			}
		})
	}
}

func TestTimeoutsOfClasses(t *testing.T) {
	t.Parallel()
	classes := locks.NewTimeouts()
	for _, test := range []struct {
		name             string
		timeout          *locks.Timeout
		initial, floor   time.Duration
		ceilingOfGrowing time.Duration
	}{
		{"structural", classes.Structural, 30 * time.Second, 5 * time.Second, 2 * time.Minute},
		{"namespace drop", classes.NamespaceDrop, 45 * time.Second, 30 * time.Second, 3 * time.Minute},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			if got := test.timeout.Duration(); got != test.initial {
				t.Errorf("at first: got %s, want %s", got, test.initial)
			}
			for range 16 * 100 {
				test.timeout.Succeeded(0)
			}
			if got := test.timeout.Duration(); got != test.floor {
				t.Errorf("after many successes: got %s, want %s", got, test.floor)
			}
			for range 16 * 100 {
				test.timeout.TimedOut()
			}
			if got := test.timeout.Duration(); got != test.ceilingOfGrowing {
				t.Errorf("after many failures: got %s, want %s", got, test.ceilingOfGrowing)
			}
		})
	}
}

// Many operations share one Timeout; it stays within its bounds.
func TestTimeoutConcurrently(t *testing.T) {
	t.Parallel()
	timeout := locks.NewTimeout(30*time.Second, 5*time.Second)
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			for range 1000 {
				if i%2 == 0 {
					timeout.Succeeded(time.Millisecond)
				} else {
					timeout.TimedOut()
				}
				if got := timeout.Duration(); got < 5*time.Second || got > 2*time.Minute {
					t.Errorf("got %s, want 5s to 2m", got)
				}
			}
		})
	}
	all.Wait()
}
