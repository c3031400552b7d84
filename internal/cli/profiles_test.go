package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// withProfiles returns the environment of a user whose file with profiles has this text.
func withProfiles(t *testing.T, text string, variables ...string) []string {
	t.Helper()
	home := t.TempDir()
	file := filepath.Join(home, "moorage", "profiles.yaml")
	if err := os.Mkdir(filepath.Dir(file), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return append(variables, "XDG_CONFIG_HOME="+home)
}

const threeProfiles = `
use: prod
profiles:
  prod: {uri: "http://prod/", warehouse: sales, token-command: echo prod-token}
  test: {uri: "http://test", token: test-token}
  bare: {warehouse: bare}
`

// Flags win over variables and the profile in use, and --profile wins over variables. No credential
// of a profile goes to another server.
func TestWhatWinsOverAProfile(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		line, variables, uri, warehouse, token string
	}{
		{"", "", "http://prod", "sales", "prod-token"},
		{"", "MOORAGE_WAREHOUSE=w MOORAGE_TOKEN=t", "http://prod", "w", "t"},
		{"", "MOORAGE_URI=http://other", "http://other", "", ""},
		{"--profile prod", "MOORAGE_URI=http://other MOORAGE_WAREHOUSE=w", "http://prod", "sales", "prod-token"},
		{"--profile test", "MOORAGE_TOKEN=t MOORAGE_WAREHOUSE=w", "http://test", "w", "test-token"},
		{"--profile bare", "MOORAGE_URI=http://other MOORAGE_TOKEN=t", "http://other", "bare", "t"},
		{"--profile bare", "", DefaultURI, "bare", ""},
		{"--profile prod --uri http://other", "", "http://other", "sales", ""},
		{"--profile prod --uri http://prod/ -w w", "", "http://prod", "w", "prod-token"},
		{"--profile prod --uri http://other --token x", "", "http://other", "sales", "x"},
		{"", "MOORAGE_PROFILE=test MOORAGE_URI=http://other", "http://other", "", ""},
		{"--profile prod --data d", "", "", "sales", ""},
	} {
		environ := withProfiles(t, threeProfiles, strings.Fields(c.variables)...)
		got, err := load(named("ls"), strings.Fields(c.line), environ)
		if err != nil || got.URI != c.uri || got.People.Warehouse != c.warehouse || got.Token != c.token {
			t.Errorf("ls %s with %s: %s, %s, %s, %v", c.line, c.variables, got.URI, got.People.Warehouse, got.Token, err)
		}
	}
}

// The first profile can be added to a file without profiles. Only the owner can read the file.
func TestFileWithoutProfiles(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"", "# nothing\n", "profiles:\n", "use:\n"} {
		environ := withProfiles(t, text)
		env := Environment{Environ: environ, Stdout: &strings.Builder{}, Stderr: &strings.Builder{}}
		args := []string{"profile", "set", "prod", "uri=http://prod"}
		if code := Run(t.Context(), args, env, nil); code != ExitDone {
			t.Errorf("%q: exit %d, %s", text, code, env.Stderr)
			continue
		}
		got, err := load(named("ls"), nil, environ)
		if err != nil || got.URI != "http://prod" {
			t.Errorf("%q: %s, %v", text, got.URI, err)
		}
		file := profilesFile(environ)
		info, err := os.Stat(file)
		if err != nil || info.Mode().Perm() != profileFileMode {
			t.Errorf("%q: %v, %v", text, info, err)
		}
		if left, err := os.ReadDir(filepath.Dir(file)); err != nil || len(left) != 1 {
			t.Errorf("%q: files are left: %v, %v", text, left, err)
		}
	}
}

// A slow token-command ends a completion early, even if a program that it started keeps running.
func TestCompletionWaitsForNoToken(t *testing.T) {
	t.Parallel()
	const slow = 30 * time.Second
	environ := withProfiles(t, "use: slow\nprofiles:\n  slow: {token-command: sleep 30; echo token}\n")
	asked := named("ls")
	asked.isCompleting = true
	begun := time.Now()
	if got, err := load(asked, nil, environ); err == nil {
		t.Errorf("the token %q arrived", got.Token)
	}
	if took := time.Since(begun); took >= slow {
		t.Errorf("it took %v", took)
	}
}
