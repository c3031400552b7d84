package main

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"moorage/internal/cli"
	"moorage/testkit/fakecloud"
)

// TestVendedInAzure serves a warehouse in a hierarchical account with an identity. It tries the
// credentials for one table on the table's own files and on another table's files. The server is a
// separate process, whose environment has the identity.
func TestVendedInAzure(t *testing.T) {
	t.Parallel()
	lake := fakecloud.StartLake(t)
	environment := append(os.Environ(), asCommand+"="+asUsual)
	trusted := ""
	for name, value := range lake.Environment(t) {
		environment = append(environment, name+"="+value)
		if name == "SSL_CERT_FILE" {
			trusted = value
		}
	}
	// Tokens of the process's own identity go to Azure, and to endpoints that the process trusts.
	environment = append(environment, "MOORAGE_TRUSTED_STORAGE="+lake.Endpoint, azureAccountKey+"=")
	container, data := lake.Behind.NewContainer(t), t.TempDir()
	command := func(args ...string) *exec.Cmd {
		process := exec.CommandContext(t.Context(), os.Args[0], append(args, "--data", data)...)
		process.Env = environment
		return process
	}
	if code := startServe(t, "--data", data).stop(); code != cli.ExitDone { // makes the store
		t.Fatalf("exit code %d", code)
	}
	output, err := command("warehouse", "create", "lake", "--location", container+"/wh",
		"--delegation", "vended-credentials", "--storage-option", "adls.hierarchical=true",
		"--storage-option", "adls.endpoint="+lake.Endpoint).CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, output)
	}
	s := startReady(t, command("serve", "--listen", "127.0.0.1:0"))
	if code, body := s.request(t, "POST", "/v1/lake/namespaces", `{"namespace":["harbour"]}`); code != http.StatusOK {
		t.Fatalf("create a namespace: %d %s", code, body)
	}
	ships, boats := s.vendedTable(t, "ships"), s.vendedTable(t, "boats")
	if got := ships.Config["adls.refresh-credentials-endpoint"]; got != "v1/lake/namespaces/harbour/tables/ships/credentials" {
		t.Errorf("credentials are renewed at %q", got)
	}
	engine := clientTrusting(t, trusted)
	for _, tt := range []struct {
		method, location string
		want             int
	}{
		{"GET", ships.Metadata, http.StatusOK}, {"GET", boats.Metadata, http.StatusForbidden},
		{"DELETE", boats.Metadata, http.StatusForbidden},
	} {
		_, path, _ := strings.Cut(strings.TrimPrefix(tt.location, container), "/")
		name, _, _ := strings.Cut(strings.TrimPrefix(container, "abfss://"), "@")
		address := lake.Endpoint + "/" + name + "/" + path + "?" + ships.Config["adls.sas-token"]
		if got := send(t, engine, tt.method, address); got != tt.want {
			t.Errorf("with the credentials of ships %s %s is %d, want %d", tt.method, tt.location, got, tt.want)
		}
	}
	if log := s.stderr.String(); strings.Contains(log, "sig=") || strings.Contains(log, fakecloud.AzureToken) {
		t.Errorf("the log has a credential:\n%s", log)
	}
}

// vended is the answer to a load of a table.
type vended struct {
	Metadata string            `json:"metadata-location"`
	Config   map[string]string `json:"config"`
}

// vendedTable creates a table in the namespace harbour of the warehouse lake, and loads it with
// credentials.
func (s *served) vendedTable(t *testing.T, name string) vended {
	t.Helper()
	const path = "/v1/lake/namespaces/harbour/tables"
	body := `{"name":"` + name + `","schema":{"type":"struct","fields":[{"id":1,"name":"id","required":false,"type":"long"}]}}`
	if code, body := s.request(t, "POST", path, body); code != http.StatusOK {
		t.Fatalf("create %s: %d %s", name, code, body)
	}
	code, body := s.request(t, "GET", path+"/"+name, "", "X-Iceberg-Access-Delegation", "vended-credentials")
	var loaded vended
	if err := json.Unmarshal([]byte(body), &loaded); err != nil || loaded.Config["adls.sas-token"] == "" {
		t.Fatalf("load %s: %d %s", name, code, body)
	}
	return loaded
}

// clientTrusting returns a client that trusts the certificate in a file.
func clientTrusting(t *testing.T, path string) *http.Client {
	t.Helper()
	certificate, err := os.ReadFile(filepath.Clean(path))
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(certificate) {
		t.Fatalf("%s has no certificate", path)
	}
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport, Timeout: patience}
}

// send returns the status of a request without a body.
func send(t *testing.T, client *http.Client, method, address string) int {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, address, nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("X-Ms-Version", "2022-11-02")
	answer, err := client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if _, err := io.Copy(io.Discard, answer.Body); err != nil {
		t.Fatal(err)
	}
	return answer.StatusCode
}
