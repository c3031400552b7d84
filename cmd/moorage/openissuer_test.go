package main

import (
	"path/filepath"
	"strings"
	"testing"

	"moorage/testkit/loopback"
)

// TestAuthoritiesOfAnOpenStore checks that a store without access control is not served to all
// identities of an issuer or an authority, unless a setting allows it. A store with access control
// is.
func TestAuthoritiesOfAnOpenStore(t *testing.T) {
	t.Parallel()
	certificate, key := loopback.NewAuthority(t).Sign(t)
	issuer := []string{"--issuer", "corp=http://127.0.0.1:9/lake,audience=moorage"}
	authority := []string{
		"--tls-cert", writeFile(t, "cert.pem", string(certificate)), "--tls-key", writeFile(t, "key.pem", string(key)),
		"--tls-client-ca", writeFile(t, "ca.pem", string(loopback.NewAuthority(t).PEM)),
	}
	data := filepath.Join(t.TempDir(), "data")
	for name, given := range map[string][]string{
		"issuer": issuer, "authority": authority, "keys too": append([]string{"--keys"}, issuer...),
	} {
		refused := runToEnd(t, append([]string{"serve", "--listen", "127.0.0.1:0", "--data", data}, given...)...)
		if refused.code == 0 || !strings.Contains(refused.stderr, "--insecure open-to-issuer") {
			t.Errorf("%s on an open store: %+v", name, refused)
		}
		memory := append([]string{"--store", "memory", "--data", t.TempDir(), "--insecure=open-to-issuer"}, given...)
		startServe(t, memory...).stop()
	}
	if enabled := runToEnd(t, "access", "enable", "--data", data); enabled.code != 0 {
		t.Fatalf("access enable: %+v", enabled)
	}
	startServe(t, append([]string{"--data", data}, issuer...)...).stop()
	fresh := filepath.Join(t.TempDir(), "fresh")
	if enabled := runToEnd(t, "access", "enable", "--data", fresh); enabled.code != 0 {
		t.Errorf("access enable where there is no store: %+v", enabled)
	}
	startServe(t, append([]string{"--data", fresh}, authority...)...)
}
