package memory_test

import (
	"testing"

	"moorage/storage"
	"moorage/storage/memory"
	"moorage/testkit/storagetest"
)

func TestStore(t *testing.T) {
	t.Parallel()
	for _, root := range []string{"memory://x/w", "file:///w", "s3://bucket/w"} {
		t.Run(root, func(t *testing.T) {
			t.Parallel()
			open := func(t *testing.T) (storage.Store, string) {
				store, err := memory.New().Within([]string{root})
				if err != nil {
					t.Fatal(err)
				}
				return store, root
			}
			storagetest.Run(t, open)
			storagetest.RunBatcher(t, open)
			storagetest.RunLocal(t, open)
			storagetest.RunLister(t, open)
		})
	}
}
