package main

import (
	"bytes"
	"encoding/json"
	"net/http"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"moorage/testkit/fakecloud"
)

// TestNothingOfStorageLeaks is like TestNothingLeaks. The secrets are the credentials that the
// server vends, the signatures that it makes, and its own key for the storage, which is MinIO.
func TestNothingOfStorageLeaks(t *testing.T) {
	t.Parallel()
	run := &leakRun{t: t, folder: t.TempDir(), secrets: map[string]string{}, channels: map[string]*bytes.Buffer{}}
	run.useStorage()
	run.stop()
	for _, name := range []string{"stderr", "answers", "audit log", "records", "changes", "files", "backup records", "backup files"} {
		if run.channels[name] == nil || !holds(run.channels[name].Bytes(), seed) {
			t.Errorf("the search does not find the seed in the %s (%d bytes)", name, run.channel(name).Len())
		}
	}
	if len(run.secrets) < 10 {
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

// useStorage makes a warehouse that vends credentials, and another that signs requests. It uses
// both as a caller with the privilege, and as a caller without it.
func (l *leakRun) useStorage() {
	vends, signs := fakecloud.StartMinIO(l.t), fakecloud.StartS3(l.t)
	data := filepath.Join(l.folder, "data")
	l.secret("key of root", l.command(true, "key", "create", "root", "--admin", "--data", data))
	l.secret("the server's key of the storage", fakecloud.S3SecretAccessKey)
	warehouses := map[string]*fakecloud.S3Server{"vended-credentials": vends, "remote-signing": signs}
	for way, server := range warehouses {
		l.command(false, append([]string{"warehouse", "create", way, "--data", data, "--delegation", way,
			"--location", "s3://" + server.NewBucket(l.t) + "/wh"}, inS3(ownOption, server.Endpoint)...)...)
	}
	l.server, _ = startProcess(l.t, "--data", data, "--keys", "--log-level", "debug", "--log-format", "json")
	etl := l.secret("key of etl", l.command(true, "key", "create", "etl", "--uri", l.server.uri))
	other := l.secret("key of other", l.command(true, "key", "create", "other", "--uri", l.server.uri))
	for way := range warehouses {
		l.command(false, "owner", "warehouse", way, "to", "key:etl", "--uri", l.server.uri)
		l.command(false, "grant", "describe", "on", "warehouse", way, "to", "key:other", "--uri", l.server.uri)
		l.useTable(way, etl, other)
	}
	l.command(false, "backup", "copy", "--uri", l.server.uri)
	_, metrics := l.ask(true, http.MethodGet, "/metrics", "", "Authorization", "Bearer "+l.secrets["key of root"])
	l.channel("metrics").WriteString(metrics)
}

// useTable creates a table in the warehouse whose name is that of the delegation in way, and
// requests that access.
func (l *leakRun) useTable(way, etl, other string) {
	l.t.Helper()
	must := func(secret bool, method, path, body string) string {
		l.t.Helper()
		status, answer := l.ask(secret, method, "/v1/"+way+path, body,
			"Authorization", "Bearer "+etl, "X-Iceberg-Access-Delegation", way)
		if status != http.StatusOK {
			l.t.Fatalf("%s: %s %s: %d %s", way, method, path, status, answer)
		}
		return answer
	}
	must(false, http.MethodPost, "/namespaces", `{"namespace":["`+seed+`"]}`)
	const table = "/namespaces/" + seed + "/tables/t"
	const request = `{"name":"t","schema":{"type":"struct","fields":[]}}`
	must(true, http.MethodPost, "/namespaces/"+seed+"/tables", request)
	answers := []string{must(true, http.MethodGet, table, "")}
	if way == "vended-credentials" {
		answers = append(answers, must(true, http.MethodGet, table+"/credentials", ""))
	}
	for _, answer := range answers {
		for _, name := range []string{"s3.secret-access-key", "s3.session-token"} {
			found := regexp.MustCompile(`"` + name + `":"([^"]+)"`).FindStringSubmatch(answer)
			if (found != nil) != (way == "vended-credentials") {
				l.t.Fatalf("%s: %s is %q", way, name, found)
			}
			if found != nil {
				l.secret(name, found[1])
			}
		}
	}
	if way == "remote-signing" {
		l.signAt(table, answers[0], must)
	}
	l.useStaged(way, other, must)
	// A caller without the privilege gets the reason, and nothing else.
	for _, path := range []string{"", "/credentials"} {
		l.ask(false, http.MethodGet, "/v1/"+way+table+path, "", "Authorization", "Bearer "+other, "X-Iceberg-Access-Delegation", way)
	}
	for _, key := range []string{etl, other} {
		l.ask(false, http.MethodPost, "/v1/"+way+table+"/sign", `{"region":"`+fakecloud.S3Region+`","method":"GET","headers":{},`+
			`"uri":"http://`+seed+`/x?X-Amz-Signature=y"}`, "Authorization", "Bearer "+key)
	}
}

// useStaged stages a table, and requests further access to it with the token in the answer. For
// another caller, the token is useless.
func (l *leakRun) useStaged(way, other string, must func(bool, string, string, string) string) {
	l.t.Helper()
	answer := must(true, http.MethodPost, "/namespaces/"+seed+"/tables",
		`{"name":"staged","stage-create":true,"schema":{"type":"struct","fields":[]}}`)
	var staged struct {
		Metadata struct{ Location string }
		Config   map[string]string
	}
	if err := json.Unmarshal([]byte(answer), &staged); err != nil {
		l.t.Fatal(err)
	}
	method, body := http.MethodGet, ""
	endpoint := staged.Config["client.refresh-credentials-endpoint"]
	if way == "remote-signing" {
		method, endpoint = http.MethodPost, staged.Config["s3.signer.endpoint"]
		body = `{"region":"` + fakecloud.S3Region + `","method":"PUT","headers":{},"uri":"` +
			staged.Config["s3.endpoint"] + "/" + staged.Metadata.Location[len("s3://"):] + `/data/x"}`
	}
	path, found := strings.CutPrefix(endpoint, "v1/"+way)
	_, token, named := strings.Cut(path, "?staged=")
	if !found || !named {
		l.t.Fatalf("%s: the endpoint of a staged table is %q", way, endpoint)
	}
	l.secret("a token of a staged table, "+way, token)
	again := must(true, method, path, body)
	for _, name := range []string{"s3.secret-access-key", "s3.session-token"} {
		if part := regexp.MustCompile(`"` + name + `":"([^"]+)"`).FindStringSubmatch(again); part != nil {
			l.secret("the "+name+" of a staged table", part[1])
		}
	}
	if status, refused := l.ask(false, method, "/v1/"+way+path, body, "Authorization", "Bearer "+other); status != http.StatusForbidden {
		l.t.Errorf("%s: another caller with the token is answered %d %s", way, status, refused)
	}
}

// signAt lets the server sign a read of a table's own file, and records the signature as a secret.
func (l *leakRun) signAt(table, loaded string, must func(bool, string, string, string) string) {
	l.t.Helper()
	var at struct {
		Location string            `json:"metadata-location"`
		Config   map[string]string `json:"config"`
	}
	if err := json.Unmarshal([]byte(loaded), &at); err != nil {
		l.t.Fatal(err)
	}
	asked, err := json.Marshal(map[string]any{
		"region": fakecloud.S3Region, "method": http.MethodGet, "headers": map[string][]string{},
		"uri": at.Config["s3.endpoint"] + "/" + at.Location[len("s3://"):],
	})
	if err != nil {
		l.t.Fatal(err)
	}
	answer := must(true, http.MethodPost, table+"/sign", string(asked))
	found := regexp.MustCompile(`Signature=([0-9a-f]{64})`).FindStringSubmatch(answer)
	if found == nil {
		l.t.Fatalf("no signature in %s", answer)
	}
	l.secret("a signature", found[1])
}
