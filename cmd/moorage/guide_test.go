package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// guideCommand matches a command line with moorage or curl in a guide. The command continues after
// a line that ends in a backslash.
var guideCommand = regexp.MustCompile(`(?m)^(moorage|curl) ((?:.*\\\n)*.*)$`)

// createByMonth is the request for the definer view of the guide.
const createByMonth = `{"name":"by_month","schema":{"type":"struct","schema-id":0,"fields":[
	{"id":1,"name":"id","required":false,"type":"long"}]},
	"view-version":{"version-id":1,"timestamp-ms":1700000000000,"schema-id":0,"default-namespace":["sales"],"summary":{},
		"representations":[{"type":"sql","sql":"SELECT id FROM orders","dialect":"spark"}]},
	"properties":{"security":"definer"}}`

// TestSecureGuide runs the commands of docs/guide/secure.md in their order. Only the folder, the
// address and the ids of keys are replaced. It then checks at the server that the commands have the
// promised effects.
func TestSecureGuide(t *testing.T) {
	guide, err := os.ReadFile("../../docs/guide/secure.md")
	if err != nil {
		t.Fatal(err)
	}
	data := t.TempDir()
	keys := make(map[string]string) // by name
	var server *served
	ask := func(name, path, body string) int {
		t.Helper()
		method := "GET"
		if body != "" {
			method = "POST"
		}
		status, _ := server.request(t, method, path, body, "Authorization", "Bearer "+keys[name])
		return status
	}
	const orders = "/v1/namespaces/sales/tables/orders"
	for _, found := range guideCommand.FindAllStringSubmatch(string(guide), -1) {
		if found[1] == "curl" {
			if !strings.Contains(found[2], "KEY_OF_ETL") {
				continue
			}
			request := exec.CommandContext(t.Context(), "sh", "-c", strings.ReplaceAll(found[0], "KEY_OF_ETL", keys["etl"]))
			request.Env = append(os.Environ(), "MOORAGE_URI="+server.uri)
			if answer, err := request.Output(); err != nil || strings.Contains(string(answer), `"error"`) {
				t.Fatalf("%s: %s, %v", found[0], answer, err)
			}
			continue
		}
		line, _, _ := strings.Cut(strings.ReplaceAll(found[2], "\\\n", ""), "#")
		words := strings.Fields(strings.ReplaceAll(line, "/srv/moorage", data))
		if words[0] == "serve" { // TestTLS starts one with certificates, interop/oauth one with an issuer
			if server == nil {
				server = startServe(t, "--keys", "--data", data, "--issuer", "corp=http://127.0.0.1:9/lake,audience=moorage")
			}
			continue
		}
		for i, word := range words {
			if word == "ID" {
				words[i] = strings.Split(keys[words[2]], "_")[1]
			}
		}
		before, after := 0, 0 // statuses that ann gets for the table
		switch {
		case strings.HasPrefix(line, "grant read on namespace default.sales to role analysts"):
			if ask("etl", "/v1/namespaces/sales/views", createByMonth) != 200 {
				t.Fatal("an engineer may not create")
			}
			before, after = 404, 200
		case strings.HasPrefix(line, "revoke read"):
			before, after = 200, 404
		}
		if before != 0 && ask("ann", orders, "") != before {
			t.Errorf("before %q: ann does not hear %d", line, before)
		}
		if server != nil { // as if MOORAGE_URI and MOORAGE_TOKEN were set
			words = append(words, "--uri", server.uri, "--token", keys["root"])
		}
		done := runToEnd(t, words...)
		if done.code != 0 {
			t.Fatalf("moorage %s: exit code %d: %s", line, done.code, done.stderr)
		}
		if after != 0 && ask("ann", orders, "") != after {
			t.Errorf("after %q: ann does not hear %d", line, after)
		}
		if words[0] == "key" && words[1] == "create" {
			printed := strings.Split(strings.TrimSpace(done.stdout), "\n")
			keys[words[2]] = printed[len(printed)-1]
		}
	}
	if status := ask("etl", "/v1/config", ""); status != 401 {
		t.Errorf("the key that was withdrawn hears %d", status)
	}
}

var (
	// guideSession matches a block of a guide with commands and their output.
	guideSession = regexp.MustCompile("(?s)```console\n(.*?)```")
	// guideAnswer matches the end of a question in such a block, and the user's answer.
	guideAnswer = regexp.MustCompile(`(\[y/N\] |to go on: )(\S+)\n`)
)

// TestUndoGuide runs the commands of docs/guide/undo.md in their order on one demo, at a terminal.
// Each must print the output on the page, except for times, addresses and random ids.
func TestUndoGuide(t *testing.T) {
	t.Parallel()
	guide, err := os.ReadFile("../../docs/guide/undo.md")
	if err != nil {
		t.Fatal(err)
	}
	data := filepath.Join(t.TempDir(), "demo")
	s := startDemo(t, "--data", data, "--listen", "127.0.0.1:0")
	commands := 0
	for _, block := range guideSession.FindAllStringSubmatch(string(guide), -1) {
		for shown := range strings.SplitSeq(strings.TrimPrefix(block[1], "$ "), "\n$ ") {
			line, want, _ := strings.Cut(strings.TrimSuffix(shown, "\n")+"\n", "\n")
			typed := ""
			for _, answer := range guideAnswer.FindAllStringSubmatch(want, -1) {
				typed += answer[2] + "\n"
			}
			want = steady(guideAnswer.ReplaceAllString(want, "$1"))
			line, _, _ = strings.Cut(line, "#")
			var printed bytes.Buffer
			env := s.anHourLater(data, &printed, &printed)
			env.Columns, env.Stdin = 80, strings.NewReader(typed)
			words := strings.Fields(line)
			run(t.Context(), words[1:], env)
			if got := steady(printed.String()); got != want {
				t.Errorf("%s prints\n%s\nand the page shows\n%s", line, got, want)
			}
			commands++
		}
	}
	if commands < 10 {
		t.Errorf("the page has %d commands", commands)
	}
}
