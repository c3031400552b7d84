package main

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"moorage/internal/cli"
	"moorage/registry"
)

// leakRun is a run of a server with keys and tokens, and all of its output.
type leakRun struct {
	t      *testing.T
	folder string
	server *served
	// secrets has all texts that only their owners may see, by description.
	secrets map[string]string
	// channels has all output by channel: answers, logs and stored data.
	channels map[string]*bytes.Buffer
}

// seed is a text that the run sends wherever a client can. The search must find it in each channel,
// which shows that the search works there.
const seed = "seed7Qv2XnK4wTz9"

// TestNothingLeaks runs a server with keys, tokens and an audit log, and searches all of its output
// for each secret of the run. It first checks that the search finds a known text in each channel.
func TestNothingLeaks(t *testing.T) {
	t.Parallel()
	run := &leakRun{t: t, folder: t.TempDir(), secrets: map[string]string{}, channels: map[string]*bytes.Buffer{}}
	run.use()
	run.stop()
	for _, name := range []string{"stdout", "metrics"} { // clients cannot put a text into these
		run.channel(name).WriteString(seed)
	}
	for _, name := range []string{
		"stdout", "stderr", "answers", "audit log", "metrics", "records", "changes", "files", "backup records", "backup files",
	} {
		if run.channels[name] == nil || !holds(run.channels[name].Bytes(), seed) {
			t.Errorf("the search does not find the seed in the %s (%d bytes)", name, run.channel(name).Len())
		}
	}
	if len(run.secrets) < 12 {
		t.Errorf("the run had %d secrets only: %q", len(run.secrets), run.secrets)
	}
	for channel, content := range run.channels {
		for what, secret := range run.secrets {
			if holds(content.Bytes(), secret) {
				t.Errorf("%s is in the %s", what, channel)
			}
		}
	}
}

// holds reports whether content contains secret, in plain form or in any encoding.
func holds(content []byte, secret string) bool {
	for _, spelled := range []string{
		secret, url.QueryEscape(secret), hex.EncodeToString([]byte(secret)),
		base64.StdEncoding.EncodeToString([]byte(secret)), base64.RawURLEncoding.EncodeToString([]byte(secret)),
	} {
		if bytes.Contains(content, []byte(spelled)) {
			return true
		}
	}
	return false
}

// A secret is found in every encoding.
func TestHolds(t *testing.T) {
	t.Parallel()
	const secret = "a secret/+"
	for _, content := range []string{"x" + secret + "y", "a+secret%2F%2B", "61207365637265742f2b", "YSBzZWNyZXQvKw==", "YSBzZWNyZXQvKw"} {
		if !holds([]byte(content), secret) {
			t.Errorf("not found in %s", content)
		}
	}
	if holds([]byte("a secret"), secret) {
		t.Error("found where it is not")
	}
}

func (l *leakRun) channel(name string) *bytes.Buffer {
	if l.channels[name] == nil {
		l.channels[name] = new(bytes.Buffer)
	}
	return l.channels[name]
}

// secret records a text, and the parts of it that could authenticate a caller, as secrets. It
// returns the text.
func (l *leakRun) secret(what, text string) string {
	l.secrets[what] = text
	switch parts := strings.Split(text, "."); {
	case strings.HasPrefix(text, "mrg_"):
		l.secrets[what+", its secret"] = strings.Split(text, "_")[2]
	case len(parts) == 3:
		l.secrets[what+", its signature"] = parts[2]
	}
	return text
}

// command runs a command, and returns the last line of its output.
func (l *leakRun) command(secret bool, args ...string) string {
	l.t.Helper()
	var stdout, stderr lockedBuffer
	env := cli.Environment{Stdout: &stdout, Stderr: &stderr}
	if root := l.secrets["key of root"]; root != "" {
		env.Environ = []string{"MOORAGE_TOKEN=" + root}
	}
	if code := run(l.t.Context(), args, env); code != cli.ExitDone {
		l.t.Fatalf("%q: exit %d: %s", args, code, stderr.String())
	}
	lines := strings.Split(strings.TrimSpace(stdout.String()), "\n")
	last := len(lines)
	if secret { // the last line is only for the owner
		last--
	}
	l.channel("answers").WriteString(strings.Join(lines[:last], "\n") + stderr.String())
	return lines[len(lines)-1]
}

// ask sends a request and returns the answer. Unless secret is true, the answer belongs to the
// searched output.
func (l *leakRun) ask(secret bool, method, path, body string, headers ...string) (status int, answer string) {
	l.t.Helper()
	request, err := http.NewRequestWithContext(l.t.Context(), method, l.server.uri+path, strings.NewReader(body))
	if err != nil {
		l.t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/json")
	for i := 0; i < len(headers); i += 2 {
		request.Header.Set(headers[i], headers[i+1])
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		l.t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		l.t.Fatal(err)
	}
	fmt.Fprintln(l.channel("answers"), response.Header)
	if !secret {
		l.channel("answers").Write(text)
	}
	return response.StatusCode, string(text)
}

// token requests a token from the token endpoint, and returns it.
func (l *leakRun) token(what string, form url.Values, headers ...string) string {
	l.t.Helper()
	headers = append(headers, "Content-Type", "application/x-www-form-urlencoded")
	status, answer := l.ask(true, http.MethodPost, "/v1/oauth/tokens", form.Encode(), headers...)
	var given struct {
		Token string `json:"access_token"`
	}
	if err := json.Unmarshal([]byte(answer), &given); err != nil || status != http.StatusOK {
		l.t.Fatalf("%s: %d %s", what, status, answer)
	}
	return l.secret(what, given.Token)
}

// use makes keys and tokens. It sends valid and invalid ones to the server, in every way that
// clients use.
func (l *leakRun) use() {
	data := filepath.Join(l.folder, "data")
	l.secret("key of root", l.command(true, "key", "create", "root", "--admin", "--data", data))
	l.server, _ = startProcess(l.t, "--data", data, "--keys", "--log-level", "debug", "--log-format", "json")
	uri := []string{"--uri", l.server.uri}
	key := l.secret("key of etl", l.command(true, append([]string{"key", "create", "etl"}, uri...)...))
	id := strings.Split(key, "_")[1]
	l.command(false, append([]string{"grant", "create,read", "on", "warehouse", "default", "to", "key:etl"}, uri...)...)
	secret := strings.Split(key, "_")[2]
	basic := "Basic " + l.secret("Basic of etl", base64.StdEncoding.EncodeToString([]byte(id+":"+secret)))
	grant := url.Values{"grant_type": {"client_credentials"}, "client_id": {id}, "client_secret": {secret}}
	token := l.token("token of etl", grant)
	l.token("token by Basic", url.Values{"grant_type": {"client_credentials"}}, "Authorization", basic)
	l.token("token by exchange", url.Values{
		"grant_type":         {"urn:ietf:params:oauth:grant-type:token-exchange"},
		"subject_token":      {token},
		"subject_token_type": {"urn:ietf:params:oauth:token-type:access_token"},
	}, "Authorization", "Bearer "+token)

	for _, authorization := range []string{"Bearer " + token, "Bearer " + key, basic} {
		l.ask(false, http.MethodGet, "/v1/namespaces", "", "Authorization", authorization)
		l.ask(false, http.MethodGet, "/v1/namespaces/"+seed, "", "Authorization", authorization)
		l.ask(false, http.MethodGet, "/management/v1/principals", "", "Authorization", authorization)
		l.ask(false, http.MethodPost, "/v1/namespaces", "{", "Authorization", authorization)
	}
	status, answer := l.ask(false, http.MethodPost, "/v1/namespaces", `{"namespace":["`+seed+`"]}`, "Authorization", "Bearer "+token)
	if status != http.StatusOK {
		l.t.Fatalf("create namespace: %d %s", status, answer)
	}
	l.ask(false, http.MethodGet, "/v1/namespaces/"+seed, "", "Authorization", "Bearer "+token)
	l.showBad(key, token)
	l.command(true, append([]string{"key", "list"}, uri...)...)
	l.secret("rotated key", l.command(true, append([]string{"key", "rotate", "etl", id}, uri...)...))
	l.command(false, append([]string{"access", "export"}, uri...)...)
	l.command(false, append([]string{"explain", "read", "on", "warehouse", "default", "for", "key:etl"}, uri...)...)
	l.command(false, append([]string{"backup", "copy"}, uri...)...)
	l.command(false, append([]string{"key", "withdraw", "etl", id}, uri...)...)
	l.ask(false, http.MethodGet, "/v1/namespaces", "", "Authorization", "Bearer "+token)
	_, metrics := l.ask(true, http.MethodGet, "/metrics", "", "Authorization", "Bearer "+l.secrets["key of root"])
	l.channel("metrics").WriteString(metrics)
}

// showBad sends credentials that are nearly valid, which are just as secret. It also sends
// credentials in wrong places.
func (l *leakRun) showBad(key, token string) {
	typo := l.secret("key with a typing error", "mrg_"+key[4:17]+"A"+key[18:])
	cut := l.secret("token that was cut", token[:len(token)-9])
	for _, authorization := range []string{
		"Bearer " + typo, "Bearer " + cut, "Bearer " + token + "x", "Token " + key, key, "Basic " + key, "Bearer " + key + " " + token,
	} {
		l.ask(false, http.MethodGet, "/v1/namespaces", "", "Authorization", authorization)
	}
	form := url.Values{"grant_type": {"client_credentials"}, "client_secret": {typo}}
	l.ask(false, http.MethodPost, "/v1/oauth/tokens", form.Encode(), "Content-Type", "application/x-www-form-urlencoded")
	l.ask(false, http.MethodPost, "/v1/oauth/tokens", "{"+form.Encode(), "Content-Type", "application/json")
}

// stop stops the server, and collects its logs and its stored data.
func (l *leakRun) stop() {
	if code := l.server.stop(); code != cli.ExitDone {
		l.t.Errorf("exit %d: %s", code, l.server.stderr)
	}
	l.channel("stdout").WriteString(l.server.stdout.String())
	l.channel("stderr").WriteString(l.server.stderr.String())
	data := filepath.Join(l.folder, "data")
	audit, err := os.ReadFile(filepath.Join(data, "audit.log"))
	if err != nil {
		l.t.Error(err)
	}
	l.channel("audit log").Write(audit)
	backup := filepath.Join(data, "backups", "copy")
	l.readFiles("backup files", backup)
	l.readFiles("files", filepath.Join(data, cli.StoreFolder))
	l.readRecords("backup records", backup)
	l.readRecords("records", data)
}

// readFiles reads every file below a folder, as a finder of the disk could.
func (l *leakRun) readFiles(channel, folder string) {
	err := filepath.WalkDir(folder, func(name string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return err
		}
		content, err := os.ReadFile(name)
		l.channel(channel).Write(content)
		return err
	})
	if err != nil {
		l.t.Error(err)
	}
}

// readRecords reads every record and every change of a store, because the store's files may be
// compressed.
func (l *leakRun) readRecords(channel, data string) {
	ctx := context.Background()
	store, err := openStore(ctx, cli.Config{Data: data}, slog.New(slog.DiscardHandler))
	if err != nil {
		l.t.Fatal(err)
	}
	defer store.Close()
	for _, table := range registry.Tables() {
		records, err := store.List(ctx, table, "", "", 10_000)
		if err != nil {
			l.t.Fatal(err)
		}
		for _, record := range records {
			fmt.Fprintf(l.channel(channel), "%s %s\n", record.Key.ID, record.Value)
		}
	}
	var first registry.Position
	changes, err := store.Changes(ctx, first, 10_000)
	if err != nil {
		l.t.Fatal(err)
	}
	for _, change := range changes {
		text, err := json.Marshal(change)
		if err != nil {
			l.t.Fatal(err)
		}
		l.channel("changes").Write(text)
	}
}
