package gate_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"moorage/catalog/gate"
)

// For a long request, the decision is repeated every ten seconds. The request ends when it is
// refused.
func TestRecheck(t *testing.T) {
	t.Parallel()
	refused, broken := errors.New("refused"), errors.New("broken")
	for name, tt := range map[string]struct {
		lasts    time.Duration
		ends     int // the number of the refusing decision; 0 if none
		finishes bool
		want     error
		asked    int
	}{
		"short":                     {lasts: 9 * time.Second, ends: 1, finishes: true},
		"long, allowed":             {lasts: 35 * time.Second, finishes: true, asked: 3},
		"long, fails by itself":     {lasts: 15 * time.Second, want: broken, asked: 1},
		"refused at once":           {lasts: time.Minute, ends: 1, want: refused, asked: 1},
		"refused at the third time": {lasts: time.Minute, ends: 3, want: refused, asked: 3},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				asked := 0
				err := gate.Recheck(t.Context(), func(context.Context) error {
					if asked++; asked == tt.ends {
						return refused
					}
					return nil
				}, func(ctx context.Context) error {
					select {
					case <-time.After(tt.lasts):
						if tt.finishes {
							return nil
						}
						return broken
					case <-ctx.Done():
						return ctx.Err()
					}
				})
				synctest.Wait()
				if !errors.Is(err, tt.want) || asked != tt.asked {
					t.Errorf("%v after %d decisions, want %v after %d", err, asked, tt.want, tt.asked)
				}
			})
		})
	}
}

// A caller that gives up gets the error of its own context, not a refusal.
func TestRecheckOfCallerThatGivesUp(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		err := gate.Recheck(ctx, func(context.Context) error { return errors.New("refused") },
			func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() })
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
	})
}
