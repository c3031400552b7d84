package main

import (
	"encoding/json"
	"maps"
	"strings"
	"testing"

	"moorage/registry"
)

// A server sends clients the properties with which their warehouse was created. Clients that name
// no warehouse get the properties of the default warehouse.
func TestWarehouseProperties(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	startServe(t, "--data", data).stop() // creates the store
	create := func(name string, properties ...string) result {
		args := []string{"warehouse", "create", name, "--data", data, "--location", "file://" + t.TempDir()}
		for _, property := range properties {
			args = append(args, "--property", property)
		}
		return runToEnd(t, args...)
	}
	if got := create("lake", "io-impl=org.example.IO", "table-default.write.format.default=orc"); got.code != 0 {
		t.Fatalf("create: %+v", got)
	}
	for fault, property := range map[string]string{
		"the server's own": "prefix=x",
		"at most 1048576":  "k=" + strings.Repeat("x", registry.PropertiesBytesMax),
	} {
		if got := create("sea", property); got.code == 0 || !strings.Contains(got.stderr, fault) {
			t.Errorf("create with %.20s: %+v", property, got)
		}
	}

	if got := runToEnd(t, "warehouse", "drop", "default", "--data", data); got.code != 0 {
		t.Fatalf("drop: %+v", got)
	}
	if got := create("default", "cache-enabled=false"); got.code != 0 {
		t.Fatalf("create: %+v", got)
	}
	server := startServe(t, "--data", data)
	for path, want := range map[string]map[string]string{
		"/v1/config?warehouse=lake":    {"io-impl": "org.example.IO", "table-default.write.format.default": "orc"},
		"/v1/config?warehouse=default": {"cache-enabled": "false"},
		"/v1/config":                   {"cache-enabled": "false"},
	} {
		code, body := server.request(t, "GET", path, "")
		var got struct{ Defaults, Overrides map[string]string }
		if err := json.Unmarshal([]byte(body), &got); err != nil || code != 200 || !maps.Equal(got.Defaults, want) {
			t.Errorf("%s: %d %s, %v; want the defaults %v", path, code, body, err, want)
		}
	}
}
