package s3_test

import (
	"testing"
	"time"

	"moorage/storage"
	"moorage/storage/s3"
	"moorage/testkit/fakecloud"
	"moorage/testkit/storagetest"
)

func TestStore(t *testing.T) {
	t.Parallel()
	newStore := func(t *testing.T) (storage.Store, string) {
		server := fakecloud.StartS3(t)
		root := "s3://" + server.NewBucket(t) + "/w"
		return open(t, options(server.Endpoint), root), root
	}
	storagetest.Run(t, newStore)
	storagetest.RunLister(t, newStore)
}

// options returns options for the server at endpoint. Their timeouts are long, so that a slow
// machine does not look like a silent server.
func options(endpoint string) s3.Options {
	return s3.Options{
		Endpoint: endpoint, Region: fakecloud.S3Region, AccessKeyID: fakecloud.S3AccessKeyID, SecretAccessKey: fakecloud.S3SecretAccessKey,
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
