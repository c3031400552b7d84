package rest

import (
	"cmp"
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"moorage"
	"moorage/catalog"
	"moorage/catalog/verb"
	"moorage/identity"
	"moorage/internal/jsontext"
	"moorage/internal/web"
)

// headerDelegation is what a client asks for in a load. It names some of catalog.Delegations.
const headerDelegation = "X-Iceberg-Access-Delegation"

// Names of what clients are told of their access. Java reads one name for the endpoint of
// signatures up to 1.10 and the other from 1.11 on.
const (
	configSigning        = "s3.remote-signing-enabled"
	configSignerEndpoint = "s3.signer.endpoint"
	configSignerNew      = "signer.endpoint"
	configSigner         = "s3.signer"
	configFileIO         = "py-io-impl"
	configReason         = "moorage.delegation"
)

// headerPrivate keeps an answer with credentials out of caches.
var headerPrivate = []string{"private, no-store"}

// asksFor returns the delegations that a request names.
func asksFor(r *http.Request) (asked []catalog.Delegation) {
	for _, line := range r.Header[headerDelegation] {
		for name := range strings.SplitSeq(line, ",") {
			delegation := catalog.Delegation(strings.TrimSpace(name))
			if slices.Contains(catalog.Delegations(), delegation) {
				asked = append(asked, delegation)
			}
		}
	}
	return asked
}

// withAccess returns config, a JSON object, with what access adds, apart from the parts of a
// credential, which are secret. It may write to the memory of config.
func (s *server) withAccess(r *http.Request, ident moorage.Identifier, config []byte, access catalog.Delegated) (
	[]byte, error) {
	query := queryOfViews(access.Through)
	if access.Staged != "" {
		token, err := s.config.Stages.Token(r.Context(), identity.Stage{
			Caller: web.CallerOf(r).Name, Table: ident, Location: access.Staged,
		})
		if err != nil {
			return nil, err
		}
		query = "?" + paramStaged + "=" + token
	}
	switch access.Delegation {
	case catalog.VendedCredentials:
		if name := access.Credential.RefreshedAt; access.Refresh && name != "" {
			config = withMember(config, name, pathOfTable(r, ident)+"/credentials"+query)
		}
	case catalog.RemoteSigning:
		endpoint := pathOfTable(r, ident) + "/sign" + query
		// PyIceberg signs so with this implementation alone.
		for _, member := range [][2]string{
			{configSigning, "true"}, {configSignerEndpoint, endpoint}, {configSignerNew, endpoint},
			{configSigner, "S3V4RestSigner"}, {configFileIO, "pyiceberg.io.fsspec.FsspecFileIO"},
		} {
			config = withMember(config, member[0], member[1])
		}
	default:
		if access.Reason != "" {
			config = withMember(config, configReason, "none: "+access.Reason)
		}
	}
	return config, nil
}

// paramStaged is the query parameter with the token of a table that is about to be made.
const paramStaged = "staged"

// Stages makes tokens for tables that are about to be made; *identity.Stages does.
type Stages interface {
	Token(ctx context.Context, stage identity.Stage) (string, error)
	Location(ctx context.Context, token, caller string, table moorage.Identifier) (string, error)
}

// stagedAt returns the location of a table that is about to be made, which the token in r has;
// empty: there is no token.
func (s *server) stagedAt(r *http.Request, ident moorage.Identifier) (string, error) {
	token, given, err := web.QueryOf(r).Text(paramStaged)
	if err != nil || !given {
		return "", err
	}
	return s.config.Stages.Location(r.Context(), token, web.CallerOf(r).Name, ident)
}

// withMember returns a JSON object with one member more.
func withMember(object []byte, name, value string) []byte {
	object = append(jsontext.AppendQuoted(appendOpen(object[:0], object), name), ':')
	return append(jsontext.AppendQuoted(object, value), '}')
}

// pathOfTable returns the path of a table, relative to the catalog's address. So a client finds it
// whatever that address is.
func pathOfTable(r *http.Request, ident moorage.Identifier) string {
	head, rest, _ := strings.Cut(strings.TrimPrefix(r.URL.EscapedPath(), "/"), "/namespaces/")
	namespace, _, _ := strings.Cut(rest, "/")
	return head + "/namespaces/" + namespace + "/tables/" + url.PathEscape(ident.Name)
}

// appendConfig appends config, a JSON object without space, with the parts of a credential; nil:
// there is none.
func appendConfig(dst, config, credential []byte) []byte {
	if credential == nil {
		return append(dst, config...)
	}
	return append(append(appendOpen(dst, config), credential...), '}')
}

// appendOpen appends a JSON object without space and without its end, so that a member can follow.
func appendOpen(dst, object []byte) []byte {
	first := len(object) == len("{}")
	dst = append(dst, object[:len(object)-1]...)
	if first {
		return dst
	}
	return append(dst, ',')
}

// appendCredential appends the list of the one credential of an answer. Java and Trino refuse two.
// Source: REST specification, StorageCredential.
func appendCredential(dst []byte, prefix string, config, credential []byte) []byte {
	dst = jsontext.AppendQuoted(append(dst, `[{"prefix":`...), prefix)
	return append(appendConfig(append(dst, `,"config":`...), config, credential), `}]`...)
}

type credentialsAnswer struct {
	StorageCredentials json.RawMessage `json:"storage-credentials"`
}

// loadCredentials answers new credentials for a table. The parameter planId is for plans, which the
// server makes none of.
func (s *server) loadCredentials(w http.ResponseWriter, r *http.Request) error {
	ident, err := pathIdentifier(r, paramTable)
	if err != nil {
		return err
	}
	staged, err := s.stagedAt(r, ident)
	if err != nil {
		return err
	}
	through, err := referencedBy(r, ident.Warehouse)
	if err != nil {
		return err
	}
	access, err := s.as(r).LoadCredentials(r.Context(), ident, staged, through...)
	if err != nil {
		return err
	}
	config, err := s.withAccess(r, ident, []byte("{}"), access)
	if err != nil {
		return err
	}
	w.Header()["Cache-Control"] = headerPrivate
	return s.AnswerJSON(w, r, credentialsAnswer{appendCredential(nil, access.Prefix, config, access.Encoded)})
}

// signAnswer is what a client is told of a signature. Source: REST specification, RemoteSignResult.
type signAnswer struct {
	URI     string              `json:"uri"`
	Headers map[string][]string `json:"headers"`
}

// signHeadersMax bounds the headers of a request that is to be signed.
const signHeadersMax = 200

// signRequest signs one request of an engine to the storage of a table.
func (s *server) signRequest(w http.ResponseWriter, r *http.Request) error {
	ident, err := pathIdentifier(r, paramTable)
	if err != nil {
		return err
	}
	through, err := referencedBy(r, ident.Warehouse)
	if err != nil {
		return err
	}
	f, err := s.ReadFields(w, r, "sign request")
	var request catalog.SignRequest
	if err == nil {
		request, err = signRequestIn(f)
	}
	if err != nil {
		// Who may not ask at all hears that first.
		on := moorage.Identifier{Warehouse: ident.Warehouse}
		return cmp.Or(s.as(r).Refuse(r.Context(), verb.Sign, on, err), err)
	}
	staged, err := s.stagedAt(r, ident)
	if err != nil {
		return err
	}
	signature, err := s.as(r).Sign(r.Context(), ident, staged, request, through...)
	if err != nil {
		return err
	}
	// Java's clients keep what may be kept by method, region and URI, for all who use the process.
	w.Header()["Cache-Control"] = []string{"no-cache"}
	return s.AnswerJSON(w, r, signAnswer{request.URI, signature.Headers})
}

// signRequestIn reads a request that is to be signed. Source: REST specification,
// RemoteSignRequest.
func signRequestIn(f *web.Fields) (catalog.SignRequest, error) {
	for _, name := range []string{"region", "uri", "method", "headers"} {
		f.Require(name)
	}
	request := catalog.SignRequest{
		Region: f.Text("region"), URI: f.Text("uri"), Method: f.Text("method"), Headers: headersIn(f),
	}
	if f.Has("body") {
		request.Body = []byte(f.Text("body"))
	}
	if provider := f.Text("provider"); provider != "" && provider != "s3" {
		f.Fail("unknown provider %q", provider)
	}
	return request, f.Failure
}

// headersIn reads the headers of a request that is to be signed: lists of texts by name.
func headersIn(f *web.Fields) map[string][]string {
	headers := make(map[string][]string)
	object := f.Typed("headers", jsontext.Object)
	if f.Failure != nil {
		return headers
	}
	if err := json.Unmarshal(object.Bytes(), &headers); err != nil || len(headers) > signHeadersMax {
		f.Fail("headers must be lists of texts by name, at most %d", signHeadersMax)
	}
	return headers
}
