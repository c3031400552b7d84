package main

import (
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"moorage/internal/cli"
	"moorage/testkit/fakecloud"
)

// TestWarehouseWithSecret makes a warehouse with its own key for the storage, on a server that has
// no key for S3.
func TestWarehouseWithSecret(t *testing.T) {
	t.Parallel()
	server := fakecloud.StartS3(t)
	bucket := server.NewBucket(t)
	data, keyFile := t.TempDir(), filepath.Join(t.TempDir(), "keys.json")
	secret := writeFile(t, "secret.json",
		`{"access-key-id":"`+fakecloud.S3AccessKeyID+`","secret-access-key":"`+fakecloud.S3SecretAccessKey+`"}`)
	done := func(args ...string) result {
		t.Helper()
		got := runToEnd(t, args...)
		if got.code != cli.ExitDone || strings.Contains(got.stdout+got.stderr, fakecloud.S3SecretAccessKey) {
			t.Fatalf("%q: %+v", args, got)
		}
		return got
	}
	if code := startServe(t, "--data", data).stop(); code != cli.ExitDone { // creates the store
		t.Fatalf("exit code %d", code)
	}
	create := []string{"warehouse", "create", "lake", "--data", data, "--location", "s3://" + bucket + "/lake",
		ownOption, "s3.endpoint=" + server.Endpoint, ownOption, "s3.region=us-east-1", "--secret-file", secret}
	if got := runToEnd(t, create...); got.code != cli.ExitFailed || !strings.Contains(got.stderr, "--secrets-key") {
		t.Errorf("without a key: %+v", got)
	}
	done("secrets", "init", "--secrets-key", keyFile)
	if got := runToEnd(t, "secrets", "init", "--secrets-key", keyFile); got.code != cli.ExitFailed {
		t.Errorf("a second time: %+v", got)
	}
	done(append(create, "--secrets-key", keyFile)...)

	const table = `{"name":"ships","schema":{"type":"struct","fields":[{"id":1,"name":"id","required":false,"type":"long"}]}}`
	serve := func(make bool, args ...string) {
		t.Helper()
		s := startServe(t, append(args, "--data", data)...)
		defer s.stop()
		if make {
			s.request(t, "POST", "/v1/lake/namespaces", `{"namespace":["harbour"]}`)
			s.request(t, "POST", "/v1/lake/namespaces/harbour/tables", table)
		}
		code, body := s.request(t, "GET", "/v1/lake/namespaces/harbour/tables/ships", "")
		if want := map[bool]int{true: http.StatusOK, false: http.StatusServiceUnavailable}[len(args) > 0]; code != want {
			t.Errorf("load by a server with %q: %d %s", args, code, body)
		}
		for _, text := range []string{body, s.stdout.String(), s.stderr.String()} {
			if strings.Contains(text, fakecloud.S3SecretAccessKey) {
				t.Errorf("the secret is in %s", text)
			}
		}
	}
	serve(true, "--secrets-key", keyFile)
	serve(false) // without a key
	before, err := os.ReadFile(keyFile)
	if err != nil {
		t.Fatal(err)
	}
	if got := done("secrets", "rotate", "--data", data, "--secrets-key", keyFile); !strings.Contains(got.stdout, "sealed 1 secret") {
		t.Errorf("%+v", got)
	}
	serve(false, "--secrets-key", keyFile)
	old := writeFile(t, "old.json", string(before))
	if err := os.Chmod(old, 0o600); err != nil {
		t.Fatal(err)
	}
	s := startServe(t, "--data", data, "--secrets-key", old)
	if code, body := s.request(t, "GET", "/v1/lake/namespaces/harbour/tables/ships", ""); code < 500 {
		t.Errorf("load with the old key alone: %d %s", code, body)
	}
	s.stop()

	backup := filepath.Join(t.TempDir(), "backup")
	done("backup", backup, "--data", data)
	for _, folder := range []string{backup, data} {
		err := filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() {
				return err
			}
			content, err := os.ReadFile(path)
			if strings.Contains(string(content), fakecloud.S3SecretAccessKey) {
				t.Errorf("the secret is in %s", path)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	s = startServe(t, "--data", backup, "--secrets-key", keyFile)
	defer s.stop()
	if code, body := s.request(t, "GET", "/v1/lake/namespaces/harbour/tables/ships", ""); code != http.StatusOK {
		t.Errorf("load from the backup: %d %s", code, body)
	}
}
