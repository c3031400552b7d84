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

// The headers between nodes. HeaderPrefix is their common prefix.
const (
	HeaderPrefix    = "Moorage-"
	headerForwarded = "Moorage-Forwarded"
	headerCaller    = "Moorage-Caller"
	headerKey       = "Moorage-Key"
	headerRequestID = "X-Request-Id"
)

// callerBytesMax is the maximum size of a caller that is sent between nodes, as JSON. It suffices
// for the content of a 16 KiB token, with an alias before each of its roles.
const callerBytesMax = 64 << 10

// checkNode refuses a certificate that is not also for server authentication. Node certificates are
// for servers and clients. Client certificates are for clients only. So a client cannot act as a
// node, even if one authority signs both.
func checkNode(state tls.ConnectionState) error {
	for _, use := range state.PeerCertificates[0].ExtKeyUsage {
		if use == x509.ExtKeyUsageServerAuth || use == x509.ExtKeyUsageAny {
			return nil
		}
	}
	return errors.New("the certificate is not a node's: it lacks extendedKeyUsage=serverAuth")
}

// NewTLS returns the TLS settings for answering peers and for calling them. certificate and key
// belong to this node. authority is the one that signed the certificates of all nodes. All three
// are PEM. Each side refuses a certificate that authority did not sign. A node that calls another
// also requires that the certificate names the host of the other's address.
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

// Protocols returns the protocol of peers: HTTP/2 over TLS.
func Protocols() *http.Protocols {
	var protocols http.Protocols
	protocols.SetHTTP2(true)
	return &protocols
}

// Arrive returns the handler of the peer listener. It passes requests to handler, with the data
// about them that the forwarding node has sent (moorage.ArrivalOf). If it does not understand a
// request, it answers 421, so that the forwarding node executes the request. It must run only
// behind the TLS of NewTLS, because it accepts any caller that the peer states.
func Arrive(handler http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		caller, err := decodeCaller(r.Header.Get(headerCaller))
		from := r.Header.Get(headerForwarded)
		isKnown := r.Method == http.MethodPost || r.Method == http.MethodGet
		if err != nil || from == "" || !isKnown {
			http.Error(w, "not a request that a node forwards", http.StatusMisdirectedRequest)
			return
		}
		arrival := moorage.Arrival{From: from, Caller: caller, Key: r.Header.Get(headerKey)}
		dropHeaders(r.Header)
		// The forwarding node has already checked the Host and Origin.
		r.Host = ""
		for _, decided := range []string{"Origin", "Sec-Fetch-Site"} {
			r.Header.Del(decided)
		}
		handler.ServeHTTP(w, r.WithContext(moorage.WithArrival(r.Context(), arrival)))
	})
}

// DropHeaders returns handler behind a filter that removes headers that only nodes may send. Every
// port that clients reach needs it.
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

// encodeCaller returns the complete caller, encoded for a header.
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

// decodeCaller decodes the result of encodeCaller. It refuses unknown members, because they may
// restrict the caller.
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
