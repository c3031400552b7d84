package main

import (
	"net/http"
	"strings"
	"testing"

	"moorage/internal/cli"
	"moorage/storage"
	"moorage/storage/adls"
	"moorage/storage/s3"
	"moorage/testkit/fakecloud"
)

// TestDefaultWarehouseInAzure serves the warehouse default from a container, commits to its table,
// drops it with its files, and checks the store.
func TestDefaultWarehouseInAzure(t *testing.T) {
	t.Parallel()
	server := fakecloud.StartAzure(t)
	container := server.NewContainer(t)
	flags := []string{"--data", t.TempDir()}
	s := startServe(t, append(flags, "--default-location", container+"/lake/",
		defaultOption, "adls.endpoint="+server.Endpoint)...)
	s.makeTable(t)
	const commit = `{"requirements":[],"updates":[{"action":"set-properties","updates":{"a":"b"}}]}`
	if code, body := s.request(t, "POST", tablePath, commit); code != http.StatusOK {
		t.Errorf("commit: %d %s", code, body)
	}
	config := s.loadedConfig(t, tablePath)
	if config["adls.account-name"] != fakecloud.AzureAccount || config["adls.blob-storage-scheme"] != "http" {
		t.Errorf("config %v", config)
	}
	for name, value := range config {
		if strings.Contains(value, fakecloud.AzureAccountKey) {
			t.Errorf("the key is answered as %s", name)
		}
	}
	banner := s.stdout.String()
	for _, want := range []string{"iceberg-azure-bundle", "fs.native-azure.enabled=true", `"adls.account-key": "…"`} {
		if !strings.Contains(banner, want) {
			t.Errorf("printed without %s:\n%s", want, banner)
		}
	}
	if strings.Contains(banner, "HadoopFileIO") || strings.Contains(banner, "native-local") {
		t.Errorf("printed:\n%s", banner)
	}
	found := server.Names(t, container)
	if len(found) != 2 || !strings.HasPrefix(found[0], "lake/harbour/ships/metadata/") {
		t.Errorf("blobs %q, want two metadata files", found)
	}
	if code, body := s.request(t, "GET", "/management/v1/doctor?deep=true", ""); code != http.StatusOK || !strings.Contains(body, `1 table, 0 views: no problems`) {
		t.Errorf("check: %d %s", code, body)
	}
	if log := s.stderr.String(); strings.Contains(log, "level=WARN") || strings.Contains(log, fakecloud.AzureAccountKey) {
		t.Errorf("log:\n%s", log)
	}
	if code := s.stop(); code != cli.ExitDone {
		t.Errorf("exit code %d", code)
	}
	if got := runToEnd(t, append([]string{"doctor", "--deep"}, flags...)...); got.code != cli.ExitDone || !strings.Contains(got.stdout, "no problems") {
		t.Errorf("check: %+v", got)
	}
}

// TestWarehouseCreateInAzure makes warehouses in containers that exist and in one that does not.
func TestWarehouseCreateInAzure(t *testing.T) {
	t.Parallel()
	server := fakecloud.StartAzure(t)
	container := server.NewContainer(t)
	data := t.TempDir()
	if code := startServe(t, "--data", data).stop(); code != cli.ExitDone { // makes the store
		t.Fatalf("exit code %d", code)
	}
	create := func(name, location string, more ...string) result {
		return runToEnd(t, append([]string{"warehouse", "create", name, "--data", data, "--location", location,
			ownOption, "adls.endpoint=" + server.Endpoint}, more...)...)
	}
	missing := "abfss://none@" + fakecloud.AzureAccount + ".dfs.core.windows.net/lake"
	for _, tt := range []struct {
		location, want string
		more           []string
	}{
		{missing, "there is no container called none", nil},
		{container + "/lake", "hierarchical", []string{"--delegation", "vended-credentials"}},
		{container + "/lake", "need an identity",
			[]string{"--delegation", "vended-credentials", "--storage-option", "adls.hierarchical=true"}},
		{container + "/lake", "no such thing", []string{"--delegation", "remote-signing"}},
		{container + "/lake", "unknown option adls.herarchical", []string{"--storage-option", "adls.herarchical=true"}},
		{container + "/lake", "unknown option s3.region", []string{"--storage-option", "s3.region=x"}},
	} {
		if got := create("nowhere", tt.location, tt.more...); got.code != cli.ExitFailed || !strings.Contains(got.stderr, tt.want) {
			t.Errorf("%s %q: %+v, want %q", tt.location, tt.more, got, tt.want)
		}
	}
	if got := create("lake", strings.Replace(container, "abfss", "abfs", 1)+"/lake"); got.code != cli.ExitDone {
		t.Fatalf("%+v", got)
	}
	if found := server.Names(t, container); len(found) > 0 {
		t.Errorf("the probe left %q", found)
	}
	// The warehouse's record has the endpoint, but not the key. Clients get locations in their own
	// spelling.
	s := startServe(t, "--data", data)
	if code, body := s.request(t, "POST", "/v1/lake/namespaces", `{"namespace":["harbour"]}`); code != http.StatusOK {
		t.Fatalf("create a namespace: %d %s", code, body)
	}
	const table = `{"name":"schöne.","schema":{"type":"struct","fields":[{"id":1,"name":"id","required":false,"type":"long"}]}}`
	code, body := s.request(t, "POST", "/v1/lake/namespaces/harbour/tables", table)
	if code != http.StatusOK || !strings.Contains(body, `"location":"abfs://`) || !strings.Contains(body, "/harbour/sch=C3=B6ne=2E") {
		t.Fatalf("create a table: %d %s", code, body)
	}
}

func TestAzureFaults(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		args []string
		want string
	}{
		{[]string{"serve", "--default-location", "abfss://lake@account.dfs.core.windows.net/wh", defaultOption, "adls.endpoint=127.0.0.1:10000"}, "adls.endpoint"},
		{[]string{"serve", "--trusted-storage", "127.0.0.1:10000"}, "--trusted-storage"},
		{[]string{"serve", "--default-location", "abfss://lake@account"}, "--default-location"},
		{[]string{"warehouse", "create", "w", "--location", "abfss://account.dfs.core.windows.net/lake"}, "--location"},
	} {
		if got := runToEnd(t, tt.args...); got.code != cli.ExitUsage || !strings.Contains(got.stderr, tt.want) {
			t.Errorf("%q: %+v, want %s", tt.args, got, tt.want)
		}
	}
}

// TestOptionsOf checks that a place in several kinds of storage has options for each, and that no
// option is lost.
func TestOptionsOf(t *testing.T) {
	t.Parallel()
	options := map[string]string{s3.OptionRegion: "r", adls.OptionHierarchical: "true", "other.x": "y"}
	both := map[string][]string{storage.SchemeS3: {"s3://b"}, storage.SchemeAzure: {"abfss://…"}, storage.SchemeFile: {"/"}}
	if got := optionsOf(storage.SchemeS3, options, both); len(got) != 2 || got[s3.OptionRegion] == "" || got["other.x"] == "" {
		t.Errorf("for S3: %v", got)
	}
	if got := optionsOf(storage.SchemeAzure, options, both); len(got) != 2 || got[adls.OptionHierarchical] == "" {
		t.Errorf("for Azure: %v", got)
	}
	one := map[string][]string{storage.SchemeS3: {"s3://b"}}
	if got := optionsOf(storage.SchemeS3, options, one); len(got) != 3 {
		t.Errorf("for S3 alone: %v, want all, so that the strange ones are refused", got)
	}
}
