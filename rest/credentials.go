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
	"moorage/catalog/gate"
	"moorage/catalog/vending"
	"moorage/identity"
	"moorage/internal/jsontext"
	"moorage/internal/web"
)

// headerDelegation lists the delegations that a client requests with a load. They are in
// vending.Delegations.
const headerDelegation = "X-Iceberg-Access-Delegation"

// Names of the settings for a client's access. Java clients up to 1.10 read the signing endpoint
// under one name, and clients from 1.11 under the other.
const (
	configSigning        = "s3.remote-signing-enabled"
	configSignerEndpoint = "s3.signer.endpoint"
	configSignerNew      = "signer.endpoint"
	configSigner         = "s3.signer"
	configFileIO         = "py-io-impl"
	configReason         = "moorage.delegation"
)

// headerPrivate is the Cache-Control that keeps a response with credentials out of caches.
var headerPrivate = []string{"private, no-store"}

// asksFor returns the delegations named in a request.
func asksFor(r *http.Request) (asked []vending.Delegation) {
	for _, line := range r.Header[headerDelegation] {
		for name := range strings.SplitSeq(line, ",") {
			delegation := vending.Delegation(strings.TrimSpace(name))
			if slices.Contains(vending.Delegations(), delegation) {
				asked = append(asked, delegation)
			}
		}
	}
	return asked
}

// withAccess returns config, a JSON object, with the settings that access adds. It leaves out the
// parts of a credential, because they are secret. It may overwrite the memory of config.
func (s *server) withAccess(r *http.Request, ident moorage.Identifier, config []byte, access vending.Delegated) (
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
	case vending.VendedCredentials:
		if name := access.Credential.RefreshedAt; access.Refresh && name != "" {
			config = withMember(config, name, pathOfTable(r, ident)+"/credentials"+query)
		}
	case vending.RemoteSigning:
		endpoint := pathOfTable(r, ident) + "/sign" + query
		// PyIceberg uses remote signing only if this FileIO is set.
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

// paramStaged is the query parameter with the token of a staged table.
const paramStaged = "staged"

// Stages issues tokens for staged tables, which clients are about to create. *identity.Stages
// implements it.
type Stages interface {
	Token(ctx context.Context, stage identity.Stage) (string, error)
	Location(ctx context.Context, token, caller string, table moorage.Identifier) (string, error)
}

// stagedAt returns the location of a staged table, from the token in r. It returns "" if there is
// no token.
func (s *server) stagedAt(r *http.Request, ident moorage.Identifier) (string, error) {
	token, given, err := web.QueryOf(r).Text(paramStaged)
	if err != nil || !given {
		return "", err
	}
	return s.config.Stages.Location(r.Context(), token, web.CallerOf(r).Name, ident)
}

// withMember returns a JSON object with one more member.
func withMember(object []byte, name, value string) []byte {
	object = append(jsontext.AppendQuoted(appendOpen(object[:0], object), name), ':')
	return append(jsontext.AppendQuoted(object, value), '}')
}

// pathOfTable returns the path of a table, relative to the catalog's address. So the path is valid
// for every client, even if clients use different addresses.
func pathOfTable(r *http.Request, ident moorage.Identifier) string {
	head, rest, _ := strings.Cut(strings.TrimPrefix(r.URL.EscapedPath(), "/"), "/namespaces/")
	namespace, _, _ := strings.Cut(rest, "/")
	return head + "/namespaces/" + namespace + "/tables/" + url.PathEscape(ident.Name)
}

// appendConfig appends config, a JSON object without spaces, with the parts of a credential.
// credential is nil if there is none.
func appendConfig(dst, config, credential []byte) []byte {
	if credential == nil {
		return append(dst, config...)
	}
	return append(append(appendOpen(dst, config), credential...), '}')
}

// appendOpen appends a JSON object without spaces and without its closing brace, so that a member
// can follow.
func appendOpen(dst, object []byte) []byte {
	first := len(object) == len("{}")
	dst = append(dst, object[:len(object)-1]...)
	if first {
		return dst
	}
	return append(dst, ',')
}

// appendCredential appends a list with the single credential of a response. Java and Trino refuse a
// response with two. Source: REST specification, StorageCredential.
func appendCredential(dst []byte, prefix string, config, credential []byte) []byte {
	dst = jsontext.AppendQuoted(append(dst, `[{"prefix":`...), prefix)
	return append(appendConfig(append(dst, `,"config":`...), config, credential), `}]`...)
}

type credentialsAnswer struct {
	StorageCredentials json.RawMessage `json:"storage-credentials"`
}

// loadCredentials answers with new credentials for a table. It ignores the parameter planId, which
// names a scan plan, because this server creates no plans.
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
	access, err := s.catalogFor(r).LoadCredentials(r.Context(), ident, staged, through...)
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

// signAnswer is the response with a signature. Source: REST specification, RemoteSignResult.
type signAnswer struct {
	URI     string              `json:"uri"`
	Headers map[string][]string `json:"headers"`
}

// signHeadersMax is the maximum number of headers of a request to sign.
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
	var request vending.SignRequest
	if err == nil {
		request, err = signRequestIn(f)
	}
	if err != nil {
		// A caller without the privilege to sign must get this refusal before any other.
		on := moorage.Identifier{Warehouse: ident.Warehouse}
		return cmp.Or(s.catalogFor(r).Refuse(r.Context(), gate.Sign, on, err), err)
	}
	staged, err := s.stagedAt(r, ident)
	if err != nil {
		return err
	}
	signature, err := s.catalogFor(r).Sign(r.Context(), ident, staged, request, through...)
	if err != nil {
		return err
	}
	// If a signature is cacheable, Java clients cache it by method, region and URI, and use it for
	// all users of their process.
	w.Header()["Cache-Control"] = []string{"no-cache"}
	return s.AnswerJSON(w, r, signAnswer{request.URI, signature.Headers})
}

// signRequestIn reads a request to sign. Source: REST specification, RemoteSignRequest.
func signRequestIn(f *web.Fields) (vending.SignRequest, error) {
	for _, name := range []string{"region", "uri", "method", "headers"} {
		f.Require(name)
	}
	request := vending.SignRequest{
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

// headersIn reads the headers of a request to sign: lists of strings by name.
func headersIn(f *web.Fields) map[string][]string {
	headers := make(map[string][]string)
	object := f.Typed("headers", jsontext.Object)
	if f.Failure != nil {
		return headers
	}
	if err := json.Unmarshal(object.Bytes(), &headers); err != nil || len(headers) > signHeadersMax {
		f.Fail("headers must map names to lists of strings, at most %d", signHeadersMax)
	}
	return headers
}
