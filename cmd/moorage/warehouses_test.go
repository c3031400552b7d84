package main

import (
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"moorage/internal/cli"
	"moorage/testkit/fakecloud"
)

// TestWarehousesOfRunningServer manages a warehouse in S3 with commands that call a running server.
// The server itself has no key for S3. No output of the server or of a command contains the secret.
func TestWarehousesOfRunningServer(t *testing.T) {
	t.Parallel()
	storage := fakecloud.StartS3(t)
	bucket, keyFile := storage.NewBucket(t), filepath.Join(t.TempDir(), "keys.json")
	secretFile := func(key string) string {
		return writeFile(t, "secret.json", `{"access-key-id":"`+fakecloud.S3AccessKeyID+`","secret-access-key":"`+key+`"}`)
	}
	right := secretFile(fakecloud.S3SecretAccessKey)
	if got := runToEnd(t, "secrets", "init", "--secrets-key", keyFile); got.code != cli.ExitDone {
		t.Fatalf("%+v", got)
	}
	s := startServe(t, "--data", t.TempDir(), "--secrets-key", keyFile)
	var said []string
	command := func(code int, want string, words ...string) {
		t.Helper()
		got := runToEnd(t, append(words, "--uri", s.uri)...)
		said = append(said, got.stdout, got.stderr)
		if got.code != code || !strings.Contains(got.stdout+got.stderr, want) {
			t.Errorf("%q: %+v, want exit code %d and %q", words, got, code, want)
		}
	}
	load := func(want int) {
		t.Helper()
		code, body := s.request(t, "GET", "/v1/lake/namespaces/harbour/tables/ships", "")
		if said = append(said, body); code != want {
			t.Errorf("load: %d %s, want %d", code, body, want)
		}
	}
	create := []string{"warehouse", "create", "lake", "--location", "s3://" + bucket + "/lake",
		ownOption, "s3.endpoint=" + storage.Endpoint, ownOption, "s3.region=us-east-1", "--secret-file"}
	command(cli.ExitFailed, "Cannot open the location", append(create, secretFile("wrong"))...)
	command(cli.ExitDone, "created warehouse lake", append(create, right)...)
	command(cli.ExitConflict, "already exists", append(create, right)...)
	command(cli.ExitDone, "lake     s3://"+bucket+"/lake\n", "warehouse", "list")
	command(cli.ExitDone, "secret: access-key, set 2", "warehouse", "show", "lake")
	s.request(t, "POST", "/v1/lake/namespaces", `{"namespace":["harbour"]}`)
	s.request(t, "POST", "/v1/lake/namespaces/harbour/tables",
		`{"name":"ships","schema":{"type":"struct","fields":[{"id":1,"name":"id","required":false,"type":"long"}]}}`)
	load(http.StatusOK)

	command(cli.ExitFailed, "Cannot use the location", "warehouse", "change", "lake", "--secret-file", secretFile("wrong"))
	command(cli.ExitFailed, "Cannot use the location", "warehouse", "change", "lake", "--no-secret")
	command(cli.ExitFailed, "unknown option s3.regoin", "warehouse", "change", "lake", "--storage-option", "s3.regoin=x")
	load(http.StatusOK)
	command(cli.ExitDone, "secret: access-key", "warehouse", "change", "lake", "--secret-file", right)
	command(cli.ExitDone, "property a=b", "warehouse", "change", "lake", "--property", "a=b")
	command(cli.ExitDone, "lake at s3", "warehouse", "change", "lake", "--remove-property", "a", "--delegation", "none")
	load(http.StatusOK)
	command(cli.ExitDone, "files: passed", "warehouse", "validate", "lake")
	command(cli.ExitDone, "sealed 1 secret with the key", "secrets", "rotate")
	command(cli.ExitDone, "sealed 0 secrets with the key", "secrets", "rotate", "--keep-key")
	load(http.StatusOK)
	command(cli.ExitConflict, "is not empty", "warehouse", "drop", "lake")
	command(cli.ExitNo, "Warehouse does not exist: sea", "warehouse", "drop", "sea")
	s.request(t, "DELETE", "/v1/lake/namespaces/harbour/tables/ships", "")
	s.request(t, "DELETE", "/v1/lake/namespaces/harbour", "")
	command(cli.ExitDone, "dropped warehouse lake", "warehouse", "drop", "lake")
	load(http.StatusNotFound)
	s.stop()
	for _, text := range append(said, s.stdout.String(), s.stderr.String()) {
		if strings.Contains(text, fakecloud.S3SecretAccessKey) {
			t.Errorf("the secret is in %s", text)
		}
	}
}
