package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"moorage/internal/cli"
)

// TestLocalFolders checks that a warehouse may be below a folder in the settings, or in the folder
// warehouse. It may not be at, above or below the server's own folders, not even through links.
func TestLocalFolders(t *testing.T) {
	t.Parallel()
	top := t.TempDir()
	at := func(name string) string { return filepath.Join(top, name) }
	for link, target := range map[string]string{"lake/link": at("srv/moorage"), "seen": at("lake")} {
		for _, folder := range []string{filepath.Dir(at(link)), target} {
			if err := os.MkdirAll(folder, 0o700); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.Symlink(target, at(link)); err != nil {
			t.Fatal(err)
		}
	}
	f := newLocalFolders(cli.Config{
		Data: at("srv/moorage"), Store: at("lake/store"), Backups: at("lake/backups"), Audit: at("lake/log/audit.log"),
		SecretsKey: at("lake/keys.json"), TLSKey: at("lake/tls/key.pem"),
		AllowLocations: []string{"s3://lake", "file://" + at("lake"), "file:" + at("srv")},
	})
	for folder, allowed := range map[string]bool{
		"lake": false, "lake/a": true, "lake/a/b": true, "seen/a": true, "lakeside": false, "elsewhere": false,
		"lake/store": false, "lake/store/x": false, "lake/backups/1": false, "lake/log": false, "lake/tls": false,
		"lake/link": false, "lake/link/x": false, "lake/link/warehouse": true,
		"srv": false, "srv/other": true, "srv/moorage": false, "srv/moorage/registry": false,
		"srv/moorage/warehouse": true, "srv/moorage/warehouse/sales": true, "srv/moorage/warehouses": false,
	} {
		if err := f.check(at(folder)); (err == nil) != allowed {
			t.Errorf("%s: %v", folder, err)
		}
	}
	for _, folder := range []string{"/", "/etc", top} {
		if f.check(folder) == nil {
			t.Errorf("%s may be a warehouse", folder)
		}
	}
}

// TestWarehousesOverTheNetwork checks that, over the network, a warehouse can be created, changed
// and validated only in allowed folders. A warehouse that was created on the stopped store is
// served in any folder.
func TestWarehousesOverTheNetwork(t *testing.T) {
	t.Parallel()
	data, lake, elsewhere := t.TempDir(), t.TempDir(), t.TempDir()
	server := startServe(t, "--data", data, "--allow-location", "file://"+lake)
	create := func(name, location string, more ...string) int {
		allowed, err := json.Marshal(more)
		if err != nil {
			t.Fatal(err)
		}
		status, body := server.request(t, "POST", "/management/v1/warehouses",
			`{"name":"`+name+`","location":"file://`+location+`","allowed-locations":`+string(allowed)+`}`)
		if status == 403 && !strings.Contains(body, "file://"+elsewhere) && !strings.Contains(body, data) {
			t.Errorf("%s is refused by %s", location, body)
		}
		return status
	}
	for name, tt := range map[string]struct {
		location string
		more     []string
		status   int
	}{
		"allowed":       {location: lake + "/sales", status: 200},
		"of_data":       {location: data + "/warehouse/sales", status: 200},
		"elsewhere":     {location: elsewhere, status: 403},
		"data":          {location: data, status: 403},
		"store":         {location: data + "/registry", status: 403},
		"also_elsewere": {location: lake + "/more", more: []string{"file://" + elsewhere}, status: 403},
	} {
		if status := create(name, tt.location, tt.more...); status != tt.status {
			t.Errorf("%s: %d, want %d", name, status, tt.status)
		}
	}
	server.stop()
	made := runToEnd(t, "warehouse", "create", "old", "--location", "file://"+elsewhere, "--data", data)
	if made.code != 0 {
		t.Fatalf("on the stopped store: %s", made.stderr)
	}
	server = startServe(t, "--data", data)
	if status, body := server.request(t, "POST", "/v1/old/namespaces", createNamespace); status != 200 {
		t.Errorf("a namespace of it: %d %s", status, body)
	}
	if status, body := server.request(t, "POST", "/v1/old/namespaces/harbour/tables", createTable); status != 200 {
		t.Errorf("a table of it: %d %s", status, body)
	}
	if status, body := server.request(t, "GET", "/v1/allowed/namespaces", ""); status != 200 {
		t.Errorf("one that was allowed at another start: %d %s", status, body)
	}
	const at = "/management/v1/warehouses/old"
	if status, body := server.request(t, "POST", at+"/validate", ""); status != 200 ||
		!strings.Contains(body, `"passed":false`) || !strings.Contains(body, "--allow-location") {
		t.Errorf("validated over the network: %d %s", status, body)
	}
	if status, body := server.request(t, "PATCH", at, `{"storage":{"k":"v"}}`); status != 403 {
		t.Errorf("changed over the network: %d %s", status, body)
	}
	if status, body := server.request(t, "PATCH", at, `{"properties":{"k":"v"}}`); status != 200 {
		t.Errorf("properties of it: %d %s", status, body)
	}
}

// TestStartWithoutAllowLocation starts a server without --allow-location. The first start put the
// locations of that flag into the record of the warehouse default. So tables there can still be
// loaded and changed, but no further folders are allowed.
func TestStartWithoutAllowLocation(t *testing.T) {
	t.Parallel()
	data, lake, elsewhere := t.TempDir(), t.TempDir(), t.TempDir()
	server := startServe(t, "--data", data, "--allow-location", "file://"+lake, "--allow-location", "file://"+data)
	ask := func(want int, method, path, body string) string {
		t.Helper()
		status, answer := server.request(t, method, path, body)
		if status != want {
			t.Errorf("%s %s: %d %s, want %d", method, path, status, answer, want)
		}
		return answer
	}
	const (
		tables = "/v1/namespaces/harbour/tables"
		at     = "/management/v1/warehouses/default"
		commit = `{"requirements":[],"updates":[{"action":"set-properties","updates":{"a":"b"}}]}`
	)
	table := func(name, location string) string {
		return `{"name":"` + name + `","location":"file://` + location + `","schema":{"type":"struct","fields":[]}}`
	}
	ask(200, "POST", "/v1/namespaces", createNamespace)
	ask(200, "POST", tables, table("ships", lake+"/ships"))
	ask(400, "POST", tables, table("within", data+"/within"))
	ask(400, "POST", tables, table("boats", elsewhere+"/boats"))
	if answer := ask(200, "GET", at, ""); !strings.Contains(answer, `"allowed-locations":["file://`+lake+`"]`) {
		t.Errorf("the warehouse is %s", answer)
	}
	server.stop()

	server = startServe(t, "--data", data)
	ask(200, "GET", tables+"/ships", "")
	ask(200, "POST", tables+"/ships", commit)
	ask(200, "POST", tables, table("more", lake+"/more"))
	ask(409, "PATCH", at, `{"remove-locations":["file://`+lake+`"]}`)
	ask(403, "PATCH", at, `{"allow-locations":["file://`+elsewhere+`"]}`)
	server.stop()

	server = startServe(t, "--data", data, "--allow-location", "file://"+elsewhere)
	ask(400, "POST", tables, table("boats", elsewhere+"/boats"))          // the flag alone allows no tables there
	ask(403, "PATCH", at, `{"allow-locations":["file://`+elsewhere+`"]}`) // it would keep lake, too
	server.stop()
	changed := runToEnd(t, "warehouse", "change", "default", "--allow-location", "file://"+elsewhere, "--data", data)
	if changed.code != 0 || !strings.Contains(changed.stdout, "allowed: file://"+elsewhere) {
		t.Errorf("on the stopped store: %s %s", changed.stdout, changed.stderr)
	}
	server = startServe(t, "--data", data)
	ask(200, "POST", tables, table("boats", elsewhere+"/boats"))
}
