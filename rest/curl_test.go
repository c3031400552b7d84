package rest_test

import (
	"flag"
	"net/http/httptest"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
)

var curlServer = flag.String("curl-server", "", "address of an empty server; docs/guide/curl.md is then run against it")

// step is a block of commands in docs/guide/curl.md, and the output shown below it.
type step struct{ commands, output string }

var fence = regexp.MustCompile("(?ms)^```(sh|text)\n(.*?)^```$")

func curlSteps(t *testing.T) (steps []step) {
	t.Helper()
	text, err := os.ReadFile("../docs/guide/curl.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, block := range fence.FindAllStringSubmatch(string(text), -1) {
		if block[1] == "sh" {
			steps = append(steps, step{commands: block[2]})
			continue
		}
		if len(steps) == 0 || steps[len(steps)-1].output != "" {
			t.Fatalf("an output without commands: %s", block[2])
		}
		steps[len(steps)-1].output = block[2]
	}
	return steps
}

// Every command in docs/guide/curl.md, run in one shell from top to bottom, prints the output on
// the page.
func TestCurlDocument(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.mountManagement()
	server := httptest.NewServer(w)
	defer server.Close()
	if *curlServer != "" {
		server.URL = *curlServer
	}
	steps := curlSteps(t)
	const address, end = "URI=http://127.0.0.1:8181\n", "\x1e"
	if steps[0].commands != address {
		t.Fatalf("the page begins with %q", steps[0].commands)
	}
	script := "set -eu -o pipefail\nURI=" + server.URL + "\n"
	for _, s := range steps[1:] {
		script += s.commands + "printf '" + end + "'\n"
	}
	command := exec.CommandContext(t.Context(), "bash", "-c", script)
	command.Dir = t.TempDir()
	printed, err := command.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, printed)
	}
	outputs := strings.Split(string(printed), end)
	for i, s := range steps[1:] {
		pattern := strings.ReplaceAll(regexp.QuoteMeta(strings.TrimSpace(s.output)), "…", ".*")
		if !regexp.MustCompile("(?s)^" + pattern + "$").MatchString(strings.TrimSpace(outputs[i])) {
			t.Errorf("%s\nprints\n%s\nthe page says\n%s", s.commands, outputs[i], s.output)
		}
	}
	w.wantClean()
}
