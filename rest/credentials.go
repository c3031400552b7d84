package rest

import (
	"cmp"
	"encoding/json"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"moorage"
	"moorage/catalog"
	"moorage/catalog/verb"
	"moorage/internal/jsontext"
	"moorage/internal/web"
)

// headerDelegation is what a client asks for in a load. It names some of catalog.Delegations.
const headerDelegation = "X-Iceberg-Access-Delegation"

// Names of what clients are told of their access. Java reads one name for the endpoint of
// signatures up to 1.10 and the other from 1.11 on.
const (
	configRefresh        = "client.refresh-credentials-endpoint"
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

// configWith returns config with what access adds, apart from the parts of a credential, which are
// secret.
func configWith(r *http.Request, ident moorage.Identifier, config map[string]string,
	access catalog.Delegated) map[string]string {
	if access.Delegation == "" && access.Reason == "" {
		return config
	}
	config = maps.Clone(config)
	if config == nil {
		config = make(map[string]string)
	}
	path := pathOfTable(r, ident)
	switch access.Delegation {
	case catalog.VendedCredentials:
		if access.Refresh {
			config[configRefresh] = path + "/credentials"
		}
	case catalog.RemoteSigning:
		config[configSigning] = "true"
		config[configSignerEndpoint], config[configSignerNew] = path+"/sign", path+"/sign"
		// PyIceberg signs so with this implementation alone.
		config[configSigner], config[configFileIO] = "S3V4RestSigner", "pyiceberg.io.fsspec.FsspecFileIO"
	default:
		config[configReason] = "none: " + access.Reason
	}
	return config
}

// pathOfTable returns the path of a table, relative to the catalog's address. So a client finds it
// whatever that address is.
func pathOfTable(r *http.Request, ident moorage.Identifier) string {
	head, rest, _ := strings.Cut(strings.TrimPrefix(r.URL.EscapedPath(), "/"), "/namespaces/")
	namespace, _, _ := strings.Cut(rest, "/")
	return head + "/namespaces/" + namespace + "/tables/" + url.PathEscape(ident.Name)
}

// storageCredential is a credential in an answer. Source: REST specification, StorageCredential.
type storageCredential struct {
	Prefix string            `json:"prefix"`
	Config map[string]string `json:"config"`
}

// credentialOf returns the one credential of an answer. Java and Trino refuse two.
func credentialOf(access catalog.Delegated, config map[string]string) storageCredential {
	whole := maps.Clone(config)
	if whole == nil {
		whole = make(map[string]string)
	}
	maps.Copy(whole, access.Credential.Config)
	return storageCredential{access.Prefix, whole}
}

// encodeCredential returns the members of an answer that hold a credential, config among them,
// which some clients read alone.
func encodeCredential(access catalog.Delegated, config map[string]string) (whole, credentials []byte, err error) {
	credential := credentialOf(access, config)
	if whole, err = json.Marshal(credential.Config); err != nil {
		return nil, nil, moorage.E("rest.encodeCredential", "", moorage.KindInternal, err)
	}
	prefix, err := json.Marshal(credential.Prefix)
	if err != nil {
		return nil, nil, moorage.E("rest.encodeCredential", "", moorage.KindInternal, err)
	}
	credentials = make([]byte, 0, len(whole)+len(prefix)+len(`[{"prefix":,"config":}]`))
	credentials = append(append(append(credentials, `[{"prefix":`...), prefix...), `,"config":`...)
	return whole, append(append(credentials, whole...), `}]`...), nil
}

type credentialsAnswer struct {
	StorageCredentials []storageCredential `json:"storage-credentials"`
}

// loadCredentials answers new credentials for a table. The parameter planId is for plans, which the
// server makes none of.
func (s *server) loadCredentials(w http.ResponseWriter, r *http.Request) error {
	ident, err := pathIdentifier(r, paramTable)
	if err != nil {
		return err
	}
	access, err := catalog.FilesOf(s.as(r)).LoadCredentials(r.Context(), ident)
	if err != nil {
		return err
	}
	w.Header()["Cache-Control"] = headerPrivate
	config := configWith(r, ident, nil, access)
	return s.AnswerJSON(w, r, credentialsAnswer{[]storageCredential{credentialOf(access, config)}})
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
	signature, err := catalog.FilesOf(s.as(r)).Sign(r.Context(), ident, request)
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
