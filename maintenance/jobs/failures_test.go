package jobs_test

import (
	"testing"
	"time"

	"moorage/maintenance/jobs"
)

// TestRow: failures block after four hours of tries, however long each try takes, and after thirty
// tries. Failures with long gaps between the tries are not in a row.
func TestRow(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		takes time.Duration // each try
		idle  time.Duration // after each rest
		want  int           // number of failures that block; 0 if none do
	}{
		"at once":                  {0, 0, 21},
		"tries of an hour":         {time.Hour, 0, 5},
		"tries of 65 minutes":      {65 * time.Minute, 0, 5},
		"idle for 59 minutes":      {0, 59 * time.Minute, 5},
		"idle for two hours":       {0, 2 * time.Hour, 0},
		"idle, tries of two hours": {2 * time.Hour, 2 * time.Hour, 0},
	} {
		now, row, blocked := time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC), jobs.FailureRow{}, 0
		for n := 1; n <= 100 && blocked == 0; n++ {
			began := now
			now = now.Add(test.takes)
			if row = row.Again(began, now); row.Blocks() {
				blocked = n
			}
			if rest := row.Until.Sub(now); rest < time.Minute || rest > 15*time.Minute {
				t.Errorf("%s: failure %d brings a rest of %s", name, n, rest)
			}
			now = row.Until.Add(test.idle)
		}
		if blocked != test.want {
			t.Errorf("%s: failure %d blocks, want %d", name, blocked, test.want)
		}
	}
}
