package identity

import (
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"testing"

	"moorage"
)

func TestCertificateNames(t *testing.T) {
	t.Parallel()
	f := newFixture(t, func(c *Config) { c.Certificates = true })
	spiffe := must(url.Parse("spiffe://lake/etl"))
	web := must(url.Parse("https://lake/etl"))
	for name, row := range map[string]struct {
		certificate x509.Certificate
		want        string
	}{
		"SPIFFE":      {x509.Certificate{URIs: []*url.URL{web, spiffe}, Subject: pkix.Name{CommonName: "etl"}}, "cert:spiffe://lake/etl"},
		"common name": {x509.Certificate{URIs: []*url.URL{web}, Subject: pkix.Name{CommonName: "etl"}}, "cert:etl"},
		"no name":     {x509.Certificate{}, ""},
		"line":        {x509.Certificate{Subject: pkix.Name{CommonName: "a\nb"}}, ""},
	} {
		r := httptest.NewRequest("GET", "/", nil)
		r.TLS = &tls.ConnectionState{VerifiedChains: [][]*x509.Certificate{{&row.certificate}}}
		caller, err := f.Authenticate(r)
		if caller.Name != row.want || (err == nil) != (row.want != "") {
			t.Errorf("%s: got %+v, error %v", name, caller, err)
		}
		if err == nil && caller.Source != moorage.SourceCertificate {
			t.Errorf("%s: source %s", name, caller.Source)
		}
		// Only the header counts, and its failure is final.
		r.Header.Set("Authorization", "Bearer a.b.c")
		if _, err := f.Authenticate(r); moorage.KindOf(err) != moorage.KindNotAuthorized {
			t.Errorf("%s, with a bad bearer: %v", name, err)
		}
	}
	r := httptest.NewRequest("GET", "/", nil)
	r.TLS = &tls.ConnectionState{PeerCertificates: []*x509.Certificate{{Subject: pkix.Name{CommonName: "etl"}}}}
	if caller, err := f.Authenticate(r); err == nil {
		t.Errorf("a certificate that was not verified is %+v", caller)
	}
	r = httptest.NewRequest("GET", "/?access_token=x", nil)
	if _, err := f.Authenticate(r); moorage.KindOf(err) != moorage.KindNotAuthorized || f.lastReason() != reasonMalformed {
		t.Errorf("a token in the query: %v", err)
	}
}

func TestAddressBehindProxies(t *testing.T) {
	t.Parallel()
	f := newFixture(t, func(c *Config) {
		c.TrustedProxies = []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("fd00::/8")}
	})
	for _, row := range []struct {
		remote string
		hops   []string
		want   string
	}{
		{"192.0.2.1:7", []string{"198.51.100.1"}, "192.0.2.1"},
		{"10.0.0.1:7", []string{"198.51.100.1"}, "198.51.100.1"},
		{"10.0.0.1:7", []string{"198.51.100.9, 198.51.100.1, 10.0.0.2"}, "198.51.100.1"},
		{"10.0.0.1:7", []string{"198.51.100.9", "198.51.100.1"}, "198.51.100.1"},
		{"10.0.0.1:7", []string{"forged, ???"}, "10.0.0.1"},
		{"10.0.0.1:7", nil, "10.0.0.1"},
		{"[fd00::1]:7", []string{"2001:db8::1"}, "2001:db8::1"},
		{"[::ffff:10.0.0.1]:7", []string{"198.51.100.1"}, "198.51.100.1"},
		{"@", nil, ""},
	} {
		r := httptest.NewRequest("GET", "/", nil)
		r.RemoteAddr = row.remote
		for _, hop := range row.hops {
			r.Header.Add("X-Forwarded-For", hop)
		}
		if got := f.addressOf(r); got != row.want {
			t.Errorf("%s, %q: got %q, want %q", row.remote, row.hops, got, row.want)
		}
	}
}
