package cluster

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"moorage"
)

// The headers that travel between nodes. HeaderPrefix is what begins all of them.
const (
	HeaderPrefix    = "Moorage-"
	headerForwarded = "Moorage-Forwarded"
	headerCaller    = "Moorage-Caller"
	headerKey       = "Moorage-Key"
	headerRequestID = "X-Request-Id"
)

// callerBytesMax bounds a caller on its way between nodes, as JSON. It is room for what a token of
// 16 KiB says, with an alias before each of its roles.
const callerBytesMax = 64 << 10

// checkNode refuses a certificate that is not for a server too. Those of nodes are for both; those
// of clients are for clients alone, also where an authority signs them for nodes and for others.
func checkNode(state tls.ConnectionState) error {
	for _, use := range state.PeerCertificates[0].ExtKeyUsage {
		if use == x509.ExtKeyUsageServerAuth || use == x509.ExtKeyUsageAny {
			return nil
		}
	}
	return errors.New("the certificate is not a node's: it lacks extendedKeyUsage=serverAuth")
}

// NewTLS returns how a node answers its peers and how it calls them. certificate and key are of
// this node, authority is what signed the certificates of all nodes; all are PEM. Each side refuses
// one that authority did not sign. A node that calls another also wants the host of its address in
// the certificate.
func NewTLS(certificate, key, authority []byte) (server, client *tls.Config, err error) {
	pair, err := tls.X509KeyPair(certificate, key)
	if err != nil {
		return nil, nil, fmt.Errorf("read the certificate of this node and its key: %w", err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(authority) {
		return nil, nil, errors.New("read the certificate of the authority: it holds none")
	}
	server = &tls.Config{
		Certificates: []tls.Certificate{pair}, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: pool,
		VerifyConnection: checkNode,
		MinVersion:       tls.VersionTLS13, NextProtos: []string{"h2"},
	}
	client = &tls.Config{Certificates: []tls.Certificate{pair}, RootCAs: pool, MinVersion: tls.VersionTLS13}
	return server, client, nil
}

// Protocols is what peers speak: HTTP/2 over TLS.
func Protocols() *http.Protocols {
	var protocols http.Protocols
	protocols.SetHTTP2(true)
	return &protocols
}

// Arrive returns what answers on the peer listener: handler, with what another node says about a
// request (moorage.ArrivalOf). It answers 421 to what it does not understand: then the other node
// carries the request out itself. It belongs behind the TLS of NewTLS only, because it believes the
// caller.
func Arrive(handler http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		caller, err := decodeCaller(r.Header.Get(headerCaller))
		from := r.Header.Get(headerForwarded)
		if err != nil || from == "" || r.Method != http.MethodPost {
			http.Error(w, "not a request that a node forwards", http.StatusMisdirectedRequest)
			return
		}
		arrival := moorage.Arrival{From: from, Caller: caller, Key: r.Header.Get(headerKey)}
		dropHeaders(r.Header)
		// The node that forwards has decided whether it answers to this name and this page.
		r.Host = ""
		for _, decided := range []string{"Origin", "Sec-Fetch-Site"} {
			r.Header.Del(decided)
		}
		handler.ServeHTTP(w, r.WithContext(moorage.WithArrival(r.Context(), arrival)))
	})
}

// DropHeaders returns handler behind the removal of what only nodes may say. It belongs in front
// of every port that clients reach.
func DropHeaders(handler http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		dropHeaders(r.Header)
		handler.ServeHTTP(w, r)
	})
}

// dropHeaders removes the headers that begin with HeaderPrefix, in any case.
func dropHeaders(header http.Header) {
	for name := range header {
		if len(name) >= len(HeaderPrefix) && strings.EqualFold(name[:len(HeaderPrefix)], HeaderPrefix) {
			delete(header, name)
		}
	}
}

// encodeCaller returns a caller with all that it has, fit for a header.
func encodeCaller(caller moorage.Caller) (string, error) {
	text, err := json.Marshal(caller)
	if err != nil {
		return "", fmt.Errorf("encode the caller: %w", err)
	}
	if len(text) > callerBytesMax {
		return "", fmt.Errorf("the caller has %d bytes, %d are allowed", len(text), callerBytesMax)
	}
	return base64.StdEncoding.EncodeToString(text), nil
}

// decodeCaller reads what encodeCaller returned. It refuses members that it does not know, because
// they may restrict the caller.
func decodeCaller(header string) (caller moorage.Caller, err error) {
	text, err := base64.StdEncoding.DecodeString(header)
	if err != nil {
		return moorage.Caller{}, fmt.Errorf("read the caller: %w", err)
	}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&caller); err != nil {
		return moorage.Caller{}, fmt.Errorf("read the caller: %w", err)
	}
	if caller.IsNobody() {
		return moorage.Caller{}, errors.New("read the caller: it has no name")
	}
	return caller, nil
}
