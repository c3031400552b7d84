package fakecloud_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"moorage/testkit/fakecloud"
)

var serve = flag.Bool("serve", false, "print what clients of the double of Google Cloud Storage need, and serve until standard input ends")

// told is the information that TestServe prints for a suite, as JSON.
type told struct {
	// Location is the location for a warehouse, in an empty bucket.
	Location string `json:"location"`
	// URL is the address for clients, which need tokens. Behind is the address of the same storage
	// without the gate.
	URL    string `json:"url"`
	Behind string `json:"behind"`
	// Arguments and Environment are what moorage needs to reach the storage as its owner.
	Arguments   []string          `json:"arguments"`
	Environment map[string]string `json:"environment"`
}

// TestServe checks that the double of Google Cloud Storage requires a token. With -serve it prints
// what a server and its clients need, as a line of JSON, and serves until its standard input ends.
// interop/lib/harness/google.py reads that line.
func TestServe(t *testing.T) {
	cloud := fakecloud.NewGoogleCloud(t)
	made := newTold(t, cloud)
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, made.URL+"/storage/v1/b/x/o", nil)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusUnauthorized {
		t.Errorf("a request without a token is answered %s", answer.Status)
	}
	text, err := json.Marshal(made)
	if err != nil {
		t.Fatal(err)
	}
	if *serve {
		fmt.Println(string(text))
		_, _ = io.Copy(io.Discard, os.Stdin)
	}
}

func newTold(t *testing.T, cloud *fakecloud.GoogleCloud) told {
	t.Helper()
	key := cloud.Key(t)
	key["token_uri"] = cloud.URL + "/token"
	text, err := json.Marshal(key)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "key.json")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return told{
		Location: "gs://" + cloud.Server.NewBucket(t) + "/warehouse", URL: cloud.URL, Behind: cloud.Server.URL,
		Arguments:   []string{"--trusted-storage", cloud.URL},
		Environment: map[string]string{"GOOGLE_APPLICATION_CREDENTIALS": file},
	}
}
