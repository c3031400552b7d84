package main

import (
	"strings"
	"testing"

	"moorage/internal/cli"
	"moorage/registry"
)

// TestCheckUnreadable checks a store in which the record of a table and a metadata file are
// damaged. It does so through a server, and without one.
func TestCheckUnreadable(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	server := startServe(t, "--data", data)
	server.request(t, "POST", "/v1/namespaces", `{"namespace":["harbour"]}`)
	for _, name := range []string{"ships", "crews"} {
		server.request(t, "POST", "/v1/namespaces/harbour/tables", `{"name":"`+name+`","schema":{"type":"struct","fields":[]}}`)
	}
	server.stop()
	store, closeStore := mustOpenStore(t, data)
	records, err := store.List(t.Context(), registry.TablePointer, "", "", registry.ListLimitMax)
	if err != nil {
		t.Fatal(err)
	}
	damaged := map[string]registry.Key{}
	for _, record := range records {
		pointer, err := registry.Decode[registry.Pointer](record)
		if err != nil {
			t.Fatal(err)
		}
		damaged[pointer.Name] = record.Key
		value := []byte("{")
		if pointer.Name == "crews" {
			pointer.MetadataLocation += ".gone"
			if value, err = registry.Encode(pointer); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := store.Apply(t.Context(), registry.Batch{Writes: []registry.Write{registry.Put(record.Key, record.State, value)}}); err != nil {
			t.Fatal(err)
		}
	}
	closeStore()

	wantProblems := func(args ...string) {
		t.Helper()
		got := runToEnd(t, append([]string{"doctor", "--deep"}, args...)...)
		for _, want := range []string{
			"store: 1 warehouse, 1 namespace, 1 table, 0 views: 2 problems\n", "problem: " + damaged["ships"].String() + " cannot be read: ", "it is called harbour.ships",
			"\nbad   problem: table default.harbour.crews (", ".gone is missing",
		} {
			if got.code != cli.ExitNo || strings.Count(got.stdout, "problem: ") != 2 || !strings.Contains(got.stdout, want) {
				t.Errorf("%q: %+v, want %d and %q", args, got, cli.ExitNo, want)
			}
		}
	}
	wantProblems("--data", data)
	server = startServe(t, "--data", data)
	wantProblems("--uri", server.uri)
	server.stop()
}
