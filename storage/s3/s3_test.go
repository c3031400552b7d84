package s3_test

import (
	"testing"
	"time"

	"moorage/internal/s3test"
	"moorage/storage"
	"moorage/storage/s3"
	"moorage/storage/storagetest"
)

func TestStore(t *testing.T) {
	t.Parallel()
	newStore := func(t *testing.T) (storage.Store, string) {
		server := s3test.Start(t)
		root := "s3://" + server.NewBucket(t) + "/w"
		return open(t, options(server.Endpoint), root), root
	}
	storagetest.Run(t, newStore)
	storagetest.RunLister(t, newStore)
}

// options lead to the server at endpoint. They are patient: a slow machine must not look silent.
func options(endpoint string) s3.Options {
	return s3.Options{
		Endpoint: endpoint, Region: s3test.Region, AccessKeyID: s3test.AccessKeyID, SecretAccessKey: s3test.SecretAccessKey,
		StallTimeout: time.Minute,
	}
}

func open(t *testing.T, options s3.Options, roots ...string) *s3.Store {
	t.Helper()
	client, err := s3.Connect(t.Context(), options)
	if err != nil {
		t.Fatal(err)
	}
	store, err := client.Within(roots)
	if err != nil {
		t.Fatal(err)
	}
	return store
}
