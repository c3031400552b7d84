package loopback

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// Authority signs certificates for the loopback addresses and localhost.
type Authority struct {
	// PEM is the certificate of the authority.
	PEM []byte

	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
}

// NewAuthority returns an authority for the calling test alone.
func NewAuthority(t testing.TB) *Authority {
	t.Helper()
	key := newKey(t)
	template := template("authority")
	template.IsCA, template.BasicConstraintsValid = true, true
	template.KeyUsage = x509.KeyUsageCertSign
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	certificate, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return &Authority{encode("CERTIFICATE", der), certificate, key}
}

// Sign returns the certificate of a node and its key, as PEM.
func (a *Authority) Sign(t testing.TB) (certificate, key []byte) {
	t.Helper()
	return a.SignFor(t, x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth)
}

// SignFor returns a certificate for the given uses and its key, as PEM.
func (a *Authority) SignFor(t testing.TB, uses ...x509.ExtKeyUsage) (certificate, key []byte) {
	t.Helper()
	private := newKey(t)
	template := template("node")
	template.IPAddresses = []net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback}
	template.DNSNames = []string{"localhost"}
	template.KeyUsage = x509.KeyUsageDigitalSignature
	template.ExtKeyUsage = uses
	der, err := x509.CreateCertificate(rand.Reader, template, a.certificate, private.Public(), a.key)
	if err != nil {
		t.Fatal(err)
	}
	encoded, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	return encode("CERTIFICATE", der), encode("PRIVATE KEY", encoded)
}

// Flags writes the certificate of a new node into a folder. It returns the flags of moorage serve
// with this folder, and with a peer listener on a free port of loopback.
func (a *Authority) Flags(t testing.TB) []string {
	t.Helper()
	folder := t.TempDir()
	certificate, key := a.Sign(t)
	for name, text := range map[string][]byte{"tls.crt": certificate, "tls.key": key, "ca.crt": a.PEM} {
		if err := os.WriteFile(filepath.Join(folder, name), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return []string{"--peer-listen", "127.0.0.1:0", "--peer-tls", folder}
}

func template(name string) *x509.Certificate {
	now := time.Now()
	return &x509.Certificate{
		SerialNumber: big.NewInt(now.UnixNano()), Subject: pkix.Name{CommonName: name},
		NotBefore: now.Add(-time.Hour), NotAfter: now.Add(90 * 24 * time.Hour),
	}
}

func newKey(t testing.TB) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func encode(kind string, der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
}
