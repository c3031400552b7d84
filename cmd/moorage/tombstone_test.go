package main

import (
	"context"
	"encoding/json"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"moorage/internal/cli"
	"moorage/testkit/fakecloud"
)

// TestTombstoneKeepsCredentialsOut moves a table from one catalog to another, with its files. A
// tenant of the first catalog, who may create tables in the old namespace, must get no credentials
// for the table's folder. That holds for any name and location, and for a copy of the store. The
// table stays usable in the second catalog. The storage is MinIO, which enforces the limits of
// credentials.
func TestTombstoneKeepsCredentialsOut(t *testing.T) {
	t.Parallel()
	storage := fakecloud.StartMinIO(t)
	bucket := storage.NewBucket(t)
	open := func(data string) (s *served, root string) {
		t.Helper()
		root = newKey(t, "root", "--admin", "--data", data)
		created := runToEnd(t, append([]string{"warehouse", "create", "lake", "--data", data, "--delegation", "vended-credentials",
			"--location", "s3://" + bucket + "/wh"}, inS3(ownOption, storage.Endpoint)...)...)
		if created.code != 0 {
			t.Fatal(created.stderr)
		}
		return startServe(t, "--data", data, "--keys"), root
	}
	type loaded struct {
		Location string `json:"metadata-location"`
		Metadata struct{ Location string }
		Config   map[string]string
	}
	ask := func(s *served, key, method, path, body string) (status int, found loaded, text string) {
		t.Helper()
		status, text = s.request(t, method, "/v1/lake"+path, body,
			"Authorization", "Bearer "+key, "X-Iceberg-Access-Delegation", "vended-credentials")
		if status == http.StatusOK {
			if err := json.Unmarshal([]byte(text), &found); err != nil {
				t.Fatal(err)
			}
		}
		return status, found, text
	}
	must := func(s *served, key, method, path, body string) loaded {
		t.Helper()
		status, found, text := ask(s, key, method, path, body)
		if status > 299 {
			t.Fatalf("%s %s %s: %d %s", method, path, body, status, text)
		}
		return found
	}
	const tables = "/namespaces/harbour/tables"
	data := t.TempDir()
	first, root := open(data)
	run := func(uri string, words ...string) {
		t.Helper()
		if got := runToEnd(t, append(words, "--uri", uri, "--token", root)...); got.code != 0 {
			t.Fatalf("%q: %s", words, got.stderr)
		}
	}
	run(first.uri, "owner", "warehouse", "lake", "to", "key:root")
	tenant := newKey(t, "tenant", "--uri", first.uri, "--token", root)
	must(first, root, "POST", "/namespaces", createNamespace)
	run(first.uri, "grant", "create,describe", "on", "namespace", "lake.harbour", "to", "key:tenant")
	old := must(first, root, "POST", tables, createTable)
	folder := old.Metadata.Location
	file := folder + "/data/1.parquet"
	owner := storage.As(old.Config)
	for what, err := range map[string]error{"write": owner.Write(t.Context(), file), "read": owner.Read(t.Context(), file)} {
		if err != nil {
			t.Fatalf("the owner may not %s: %v", what, err)
		}
	}

	// The table moves to the second catalog.
	must(first, root, "POST", tables+"/ships/unregister", "")
	second, secondRoot := open(t.TempDir())
	rootOfFirst := root
	root = secondRoot
	run(second.uri, "owner", "warehouse", "lake", "to", "key:root")
	root = rootOfFirst
	must(second, secondRoot, "POST", "/namespaces", createNamespace)
	must(second, secondRoot, "POST", "/namespaces/harbour/register", `{"name":"ships","metadata-location":"`+old.Location+`"}`)

	tries := func(s *served) {
		t.Helper()
		located := func(location string, stage bool) string {
			body := strings.TrimSuffix(createTable, "}") + `,"location":"` + location + `"}`
			if stage {
				body = strings.TrimSuffix(body, "}") + `,"stage-create":true}`
			}
			return body
		}
		for _, location := range []string{folder, folder + "/", folder + "/data", folder[:strings.LastIndexByte(folder, '/')]} {
			for _, stage := range []bool{false, true} {
				status, found, text := ask(s, tenant, "POST", tables, located(location, stage))
				if status != http.StatusForbidden || !strings.Contains(text, "locate") {
					t.Errorf("a table at %s (staged %t): %d %s %v", location, stage, status, text, found.Config)
				}
			}
		}
		registered := `{"name":"mine","metadata-location":"` + old.Location + `"}`
		if status, _, text := ask(s, tenant, "POST", "/namespaces/harbour/register", registered); status != http.StatusForbidden {
			t.Errorf("a register of its file: %d %s", status, text)
		}
		mine := must(s, tenant, "POST", tables, createTable) // with the table's former name
		if mine.Metadata.Location == folder || strings.HasPrefix(mine.Metadata.Location, folder+"/") {
			t.Errorf("the next table lives at %s", mine.Metadata.Location)
		}
		holder := storage.As(mine.Config)
		if err := holder.Write(t.Context(), mine.Metadata.Location+"/data/1.parquet"); err != nil {
			t.Fatalf("the tenant cannot write to the own table: %v", err)
		}
		for what, try := range map[string]func(context.Context, string) error{
			"read": holder.Read, "write": holder.Write, "delete": holder.Delete,
		} {
			for _, target := range []string{file, folder + "/data/2.parquet", old.Location} {
				if err := try(t.Context(), target); err == nil {
					t.Errorf("the tenant may %s %s", what, target)
				}
			}
		}
		if err := holder.List(t.Context(), folder+"/"); err == nil {
			t.Error("the tenant may list the folder")
		}
		must(s, tenant, "DELETE", tables+"/ships", "")
	}
	tries(first)
	run(first.uri, "backup", "copy")
	first.stop()
	used := filepath.Join(data, cli.StoreFolder)
	move(t, used, filepath.Join(data, "registry-before"))
	move(t, filepath.Join(data, "backups", "copy", cli.StoreFolder), used)
	if got := runToEnd(t, "doctor", "--deep", "--data", data); !strings.Contains(got.stdout, "no problems") {
		t.Errorf("check: %+v", got)
	}
	restored := startServe(t, "--data", data, "--keys")
	tries(restored)
	moved := must(second, secondRoot, "GET", tables+"/ships", "")
	if err := storage.As(moved.Config).Read(t.Context(), file); err != nil {
		t.Errorf("the table that moved lacks its file: %v", err)
	}
}
