package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"moorage/internal/cli"
	"moorage/testkit/loopback"
)

// newKey makes an API key in the store of a stopped server.
func newKey(t *testing.T, name string, args ...string) string {
	t.Helper()
	made := runToEnd(t, append([]string{"key", "create", name}, args...)...)
	if made.code != 0 {
		t.Fatalf("key create: %s", made.stderr)
	}
	lines := strings.Split(strings.TrimSpace(made.stdout), "\n")
	return lines[len(lines)-1]
}

// token requests a token from the token endpoint. It returns the status and the token.
func (s *served) token(t testing.TB, header string, pairs ...string) (int, string) {
	t.Helper()
	form := url.Values{}
	for i := 0; i < len(pairs); i += 2 {
		form.Set(pairs[i], pairs[i+1])
	}
	headers := []string{"Content-Type", "application/x-www-form-urlencoded"}
	if header != "" {
		headers = append(headers, "Authorization", header)
	}
	status, body := s.request(t, "POST", "/v1/oauth/tokens", form.Encode(), headers...)
	var answer struct {
		Token string `json:"access_token"`
	}
	if err := json.Unmarshal([]byte(body), &answer); err != nil {
		t.Fatalf("%d: %s", status, body)
	}
	return status, answer.Token
}

// TestKeysFromNothing starts with an empty folder, and ends with requests by an administrator. It
// sends the key in every way that clients use, and also covers the expiry of a token.
func TestKeysFromNothing(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	startServe(t, "--data", data).stop() // creates the store
	key := newKey(t, "root", "--admin", "--data", data)
	if refused := runToEnd(t, "serve", "--listen", "127.0.0.1:0", "--data", data); refused.code == 0 ||
		!strings.Contains(refused.stderr, "--keys") {
		t.Errorf("without a way to show who one is: %+v", refused)
	}
	server := startServe(t, "--data", data, "--keys", "--token-lifetime", "10s")
	config := func(header string) (int, string) {
		if header == "" {
			return server.request(t, "GET", "/v1/config", "")
		}
		return server.request(t, "GET", "/v1/config", "", "Authorization", header)
	}
	basic := "Basic " + base64.StdEncoding.EncodeToString([]byte(key[4:16]+":"+key))
	for header, want := range map[string]int{
		"": 401, "Bearer " + key: 200, basic: 200, "Bearer " + key[:len(key)-1] + "!": 401, "Bearer a.b.c": 401,
	} {
		if status, body := config(header); status != want {
			t.Errorf("%q: %d %s", header, status, body)
		}
	}
	if _, body := config("Bearer " + key); !strings.Contains(body, `"token-exchange-enabled":"false"`) {
		t.Errorf("the configuration of a key is %s", body)
	}
	for _, path := range []string{"/metrics", "/management/v1/doctor", "/v1/namespaces", "/none"} {
		if status, _ := server.request(t, "GET", path, ""); status != 401 {
			t.Errorf("%s is answered %d to nobody", path, status)
		}
	}
	for _, path := range []string{"/healthz", "/readyz"} {
		if status, _ := server.request(t, "GET", path, ""); status != 200 {
			t.Errorf("%s is answered %d", path, status)
		}
	}

	status, token := server.token(t, "", "grant_type", "client_credentials", "client_secret", key, "scope", "catalog")
	if status != 200 {
		t.Fatalf("no token: %d", status)
	}
	const exchange = "urn:ietf:params:oauth:grant-type:token-exchange"
	renew := func(header string) int {
		status, renewed := server.token(t, header, "grant_type", exchange, "subject_token", token,
			"subject_token_type", "urn:ietf:params:oauth:token-type:access_token")
		if status == 200 {
			token = renewed
		}
		return status
	}
	if status, body := config("Bearer " + token); status != 200 || strings.Contains(body, "token-exchange-enabled") {
		t.Errorf("with a token: %d %s", status, body)
	}
	if status := renew("Bearer " + token); status != 200 {
		t.Errorf("renewed before its end: %d", status)
	}
	ticker := time.NewTicker(50 * time.Millisecond)
	defer ticker.Stop()
	for began := time.Now(); ; <-ticker.C {
		status, _ := config("Bearer " + token)
		if status == 401 {
			break
		}
		if status != 200 || time.Since(began) > patience {
			t.Fatalf("after %s: %d", time.Since(began), status)
		}
	}
	if status := renew("Bearer " + token); status != 400 {
		t.Errorf("renewed after its end, by itself: %d", status)
	}
	if status := renew("Basic " + base64.StdEncoding.EncodeToString([]byte(key))); status != 200 {
		t.Errorf("renewed after its end, by the key: %d", status)
	}
	if status, _ := config("Bearer " + token); status != 200 {
		t.Errorf("with the renewed token: %d", status)
	}
	if code := server.stop(); code != 0 {
		t.Errorf("the server ended with %d", code)
	}
	for _, secret := range []string{key, key[17:60], token} {
		if strings.Contains(server.stderr.String()+server.stdout.String(), secret) {
			t.Error("a secret is in the log")
		}
	}
	// A token outlives the process that signed it.
	again := startServe(t, "--data", data, "--keys")
	status, _ = again.request(t, "GET", "/v1/config", "", "Authorization", "Bearer "+token)
	if status != 200 && status != 401 { // the token may have expired in the meantime
		t.Errorf("after a restart: %d", status)
	}
}

// TestTLS serves HTTPS, accepts client certificates, and reads changed files again.
func TestTLS(t *testing.T) {
	t.Parallel()
	first, second, clients := loopback.NewAuthority(t), loopback.NewAuthority(t), loopback.NewAuthority(t)
	folder := t.TempDir()
	write := func(name string, text []byte) string {
		path := filepath.Join(folder, name)
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	certificate, key := first.Sign(t)
	args := []string{
		"--tls-cert", write("cert.pem", certificate), "--tls-key", write("key.pem", key),
		"--tls-client-ca", write("ca.pem", clients.PEM), "--insecure=open-to-issuer",
	}
	server := startServe(t, append([]string{"--store", "memory", "--data", t.TempDir()}, args...)...)
	if !strings.HasPrefix(server.uri, "https://") {
		t.Fatalf("the server is at %s", server.uri)
	}
	// If no authority of the system has signed the server's certificate, the command line can name
	// one.
	list := []string{"warehouse", "list", "--uri", server.uri}
	if got := runToEnd(t, list...); got.code != cli.ExitFailed || !strings.Contains(got.stderr, "is not trusted") || !strings.Contains(got.stderr, "--ca") {
		t.Errorf("without --ca: %+v", got)
	}
	got := runToEnd(t, append(list, "--ca", write("server-ca.pem", first.PEM))...)
	if strings.Contains(got.stderr, "trusted") || !strings.Contains(got.stderr, "redentials") {
		t.Errorf("with --ca: %+v", got)
	}
	ask := func(authority *loopback.Authority, shown ...tls.Certificate) (int, error) {
		pool := x509.NewCertPool()
		pool.AppendCertsFromPEM(authority.PEM)
		client := &http.Client{Transport: &http.Transport{
			TLSClientConfig: &tls.Config{RootCAs: pool, Certificates: shown}, ForceAttemptHTTP2: true,
		}}
		defer client.CloseIdleConnections()
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.uri+"/v1/config", nil)
		if err != nil {
			t.Fatal(err)
		}
		answer, err := client.Do(request)
		if err != nil {
			return 0, err
		}
		defer answer.Body.Close()
		if answer.ProtoMajor != 2 {
			t.Errorf("the server speaks %s", answer.Proto)
		}
		return answer.StatusCode, nil
	}
	pairOf := func(authority *loopback.Authority) tls.Certificate {
		pair, err := tls.X509KeyPair(authority.Sign(t))
		if err != nil {
			t.Fatal(err)
		}
		return pair
	}
	if status, err := ask(first, pairOf(clients)); status != 200 {
		t.Errorf("with a certificate: %d, %v", status, err)
	}
	if status, err := ask(first); status != 401 {
		t.Errorf("without one: %d, %v", status, err)
	}
	if status, err := ask(first, pairOf(second)); err == nil && status != 401 {
		t.Errorf("with one of another authority: %d", status)
	}
	if _, err := ask(second); err == nil {
		t.Error("the server has the certificate of another authority")
	}
}

// TestTLSFilesChange checks that changed files are read again after 10 seconds. If the new files
// cannot be used, the old ones stay in use. The log warns of a certificate that ends within 30
// days.
func TestTLSFilesChange(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	c := cli.Config{TLSCert: filepath.Join(folder, "cert.pem"), TLSKey: filepath.Join(folder, "key.pem")}
	write := func() {
		certificate, key := loopback.NewAuthority(t).Sign(t)
		for path, text := range map[string][]byte{c.TLSCert: certificate, c.TLSKey: key} {
			if err := os.WriteFile(path, text, 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	write()
	now := time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)
	log := new(strings.Builder)
	config, err := openTLS(c, func() time.Time { return now }, slog.New(slog.NewTextHandler(log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	look := func() string {
		current, err := config.GetConfigForClient(nil)
		if err != nil {
			t.Fatal(err)
		}
		return fmt.Sprintf("%x", current.Certificates[0].Certificate[0])
	}
	old := look()
	write()
	if look() != old {
		t.Error("the files were looked at within 10 seconds")
	}
	now = now.Add(tlsLookInterval)
	renewed := look()
	if renewed == old {
		t.Error("the files were not read again")
	}
	if strings.Contains(log.String(), "ends soon") {
		t.Errorf("a new certificate is told of: %s", log)
	}
	now = time.Now().Add(61 * 24 * time.Hour)
	write()
	if renewed = look(); !strings.Contains(log.String(), "a certificate ends soon or has ended") {
		t.Errorf("nothing is told of a certificate that ends soon: %s", log)
	}
	if err := os.WriteFile(c.TLSKey, []byte("half of a k"), 0o600); err != nil {
		t.Fatal(err)
	}
	now = now.Add(tlsLookInterval)
	if look() != renewed {
		t.Error("a broken key took the certificate away")
	}
	if _, err := openTLS(c, func() time.Time { return now }, slog.New(slog.DiscardHandler)); err == nil {
		t.Error("a broken key is accepted at the start")
	}
}

// TestInsecureNoAuth checks that a store with access control is served without authentication only
// if a setting allows it.
func TestInsecureNoAuth(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	startServe(t, "--data", data).stop() // creates the store
	newKey(t, "root", "--admin", "--data", data)
	server := startServe(t, "--data", data, "--insecure=no-auth")
	server.awaitLog(t, "there is no authentication")
}

// TestUnprintedKeyIsWithdrawn interrupts key create --admin with a signal before the key becomes an
// administrator. The key must still be withdrawn.
func TestUnprintedKeyIsWithdrawn(t *testing.T) {
	t.Parallel()
	ctx, signal := context.WithCancel(t.Context())
	var withdrawn atomic.Pointer[string]
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		switch {
		case r.Method == http.MethodDelete:
			withdrawn.Store(&r.URL.Path)
			w.WriteHeader(http.StatusNoContent)
		case strings.HasSuffix(r.URL.Path, "/keys"):
			fmt.Fprint(w, `{"id":"k1","principal":"key:root","secret":"s"}`)
		case strings.HasSuffix(r.URL.Path, "/grants"):
			signal()
			w.WriteHeader(http.StatusServiceUnavailable)
		default:
			fmt.Fprint(w, `{}`)
		}
	}))
	defer server.Close()
	c := cli.Config{URI: server.URL, Admin: true}
	c.Access.Principal = "key:root"
	err := createKey(ctx, c, cli.Environment{Stdout: io.Discard, Stderr: io.Discard})
	if path := withdrawn.Load(); err == nil || path == nil || !strings.HasSuffix(*path, "/keys/k1") {
		t.Errorf("%v; withdrawn %v", err, path)
	}
}
