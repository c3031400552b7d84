package metadata_test

import (
	"fmt"
	"sync"
	"testing"

	"moorage/metadata"
)

// Concurrent commits on one document do not interfere with each other.
func TestConcurrentCommits(t *testing.T) {
	t.Parallel()
	const writers, commits = 8, 50
	base := createTest(t, 2)
	var wg sync.WaitGroup
	for writer := range writers {
		wg.Go(func() {
			d := base
			for n := range commits {
				value := fmt.Sprint(writer, n)
				next, err := d.Apply(decodeTest(t, fmt.Sprintf(`{"action":"set-properties","updates":{"w":%q}},{"action":"set-location","location":"s3://%[1]s"}`, value)), testEnv(n))
				if err != nil {
					t.Error(err)
					return
				}
				if w, _ := next.Property("w"); w != value || next.Location() != "s3://"+value {
					t.Errorf("writer %d got %s", writer, next.Raw())
				}
				d = next
			}
			if err := metadata.CheckIndex(d); err != nil {
				t.Errorf("writer %d: %v", writer, err)
			}
		})
	}
	wg.Wait()
}
