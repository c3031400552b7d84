package fakecloud

import (
	"bytes"
	"context"
	"encoding/json"
	"encoding/pem"
	"encoding/xml"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/sas"
)

// Lake simulates an account with a hierarchical namespace, over HTTPS. The emulator behind it keeps
// the blobs, but supports neither folders nor signatures for a folder. Lake adds both to the blob
// API, as documented by Azure:
//
//   - folders are entries; they appear with their first file, and cannot be deleted before their
//     last
//   - an identity gets a token (AzureToken), and with the token a user delegation key
//   - signatures for a directory are verified, and their permissions are enforced
//
// It is safe for concurrent use.
type Lake struct {
	// Endpoint is the URL of the account's blob service.
	Endpoint string
	// Behind is the emulator that stores the blobs.
	Behind *AzureServer

	front, tokens *httptest.Server
	emulated      *url.URL
	allowed       string // the query parameters with which the emulator allows every request
	client        *http.Client
}

var sharedLake = sync.OnceValues(startLake)

// StartLake returns the double of this process. It starts the double if no test has done so. The
// double ends with the process.
func StartLake(tb testing.TB) *Lake {
	tb.Helper()
	lake, err := sharedLake()
	if err != nil {
		tb.Fatalf("fakecloud: azure: %v", err)
	}
	return lake
}

func startLake() (*Lake, error) {
	behind, err := sharedAzure()
	if err != nil {
		return nil, err
	}
	emulated, err := url.Parse(behind.Endpoint)
	if err != nil {
		return nil, err
	}
	query, err := sas.AccountSignatureValues{
		Version: azureVersion, ExpiryTime: time.Now().Add(24 * time.Hour).UTC(),
		Permissions: "rwdlacup", ResourceTypes: "sco",
	}.SignWithSharedKey(behind.key)
	if err != nil {
		return nil, err
	}
	lake := &Lake{Behind: behind, emulated: emulated, allowed: query.Encode(), client: &http.Client{}}
	lake.front = httptest.NewTLSServer(lake)
	lake.tokens = httptest.NewServer(http.HandlerFunc(serveToken))
	lake.Endpoint = lake.front.URL + "/" + AzureAccount
	return lake, nil
}

// Environment returns environment variables. They give a process an identity for the account, as
// Azure's services do, and make it trust the double's certificate. The environment is valid until
// tb ends.
func (l *Lake) Environment(tb testing.TB) map[string]string {
	tb.Helper()
	trusted := filepath.Join(tb.TempDir(), "lake.pem")
	block := &pem.Block{Type: "CERTIFICATE", Bytes: l.front.Certificate().Raw}
	if err := os.WriteFile(trusted, pem.EncodeToMemory(block), 0o600); err != nil {
		tb.Fatal(err)
	}
	return map[string]string{
		"IDENTITY_ENDPOINT": l.tokens.URL + "/token", "IDENTITY_HEADER": identityHeader, "SSL_CERT_FILE": trusted,
	}
}

// The credentials of Lake's only identity.
const (
	AzureToken     = "a token of the identity of tests"
	identityHeader = "a process of tests"
	tokenLife      = time.Hour
)

// serveToken issues a token to the identity.
func serveToken(w http.ResponseWriter, r *http.Request) {
	if r.Header.Get("X-IDENTITY-HEADER") != identityHeader ||
		!strings.HasPrefix(r.URL.Query().Get("resource"), "https://storage.azure.com") {
		http.Error(w, `{"error":"invalid_request"}`, http.StatusBadRequest)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(map[string]string{ // the client may have disconnected
		"access_token": AzureToken, "token_type": "Bearer", "resource": "https://storage.azure.com",
		"expires_on": strconv.FormatInt(time.Now().Add(tokenLife).Unix(), 10),
	})
}

// call is a request to the account.
type call struct {
	*http.Request
	container string
	blob      string // may be empty
	query     url.Values
}

// ServeHTTP answers as an Azure account would.
func (l *Lake) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	// Azure reads a backslash as a slash.
	path, found := strings.CutPrefix(strings.ReplaceAll(r.URL.Path, `\`, "/"), "/"+AzureAccount+"/")
	segments := strings.Split(path, "/")
	if !found || slices.Contains(segments, "..") || slices.Contains(segments, ".") {
		failAzure(w, http.StatusBadRequest, "InvalidUri")
		return
	}
	c := call{r, segments[0], strings.Join(segments[1:], "/"), r.URL.Query()}
	isIdentity := r.Header.Get("Authorization") == "Bearer "+AzureToken
	switch {
	case !isIdentity && r.Header.Get("Authorization") != "":
		failAzure(w, http.StatusForbidden, "AuthenticationFailed")
	case !isIdentity && !c.isSigned():
		failAzure(w, http.StatusForbidden, "AuthenticationFailed")
	case !isIdentity && !c.isAllowed(l):
		failAzure(w, http.StatusForbidden, "AuthorizationPermissionMismatch")
	case isIdentity && c.query.Get("comp") == "userdelegationkey":
		serveKey(w, r)
	default:
		l.serve(w, c)
	}
}

// serve carries out an authorized request.
func (l *Lake) serve(w http.ResponseWriter, c call) {
	isFile := c.blob != "" && c.query.Get("comp") == ""
	if isFile && c.Method == http.MethodDelete {
		below, err := l.Behind.names(c.Context(), c.container, c.blob+"/")
		if err == nil && len(below) > 0 {
			failAzure(w, http.StatusConflict, "DirectoryIsNotEmpty")
			return
		}
	}
	body, err := io.ReadAll(c.Body)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	answer, err := l.forward(c.Context(), c.Method, c.container, c.blob, c.query, c.Header, body)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	defer answer.Body.Close()
	if c.Method == http.MethodPut && c.blob != "" && answer.StatusCode == http.StatusCreated {
		l.makeFolders(c)
	}
	for name, values := range answer.Header {
		w.Header()[name] = values
	}
	w.WriteHeader(answer.StatusCode)
	_, _ = io.Copy(w, answer.Body) // the client may have disconnected
}

// makeFolders creates the parent folders of a blob.
func (l *Lake) makeFolders(c call) {
	header := http.Header{
		"X-Ms-Version": {azureVersion}, "X-Ms-Blob-Type": {"BlockBlob"}, "X-Ms-Meta-Hdi_isfolder": {"true"},
		"If-None-Match": {"*"}, "X-Ms-Date": {time.Now().UTC().Format(http.TimeFormat)},
	}
	for i, character := range c.blob {
		if character != '/' {
			continue
		}
		answer, err := l.forward(c.Context(), http.MethodPut, c.container, c.blob[:i], nil, header, nil)
		if err != nil {
			panic(http.ErrAbortHandler)
		}
		_ = answer.Body.Close()
	}
}

// forward sends an authorized request to the emulator.
func (l *Lake) forward(ctx context.Context, method, container, blob string, query url.Values, header http.Header,
	body []byte,
) (*http.Response, error) {
	target := *l.emulated
	target.Path += "/" + container
	target.RawPath = ""
	if blob != "" {
		target.Path += "/" + blob
		target.RawPath = l.emulated.Path + "/" + container + "/" + url.PathEscape(blob)
	}
	kept := url.Values{}
	for name, values := range query {
		if !slices.Contains(signatureParameters(), name) {
			kept[name] = values
		}
	}
	target.RawQuery = l.allowed
	if len(kept) > 0 {
		target.RawQuery += "&" + kept.Encode()
	}
	request, err := http.NewRequestWithContext(ctx, method, target.String(), bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	request.Header = header.Clone()
	request.Header.Del("Authorization")
	return l.client.Do(request)
}

// failAzure answers with an error.
func failAzure(w http.ResponseWriter, status int, code string) {
	w.Header().Set("Content-Type", "application/xml")
	w.Header().Set("X-Ms-Error-Code", code)
	w.WriteHeader(status)
	_, _ = fmt.Fprintf(w, "<?xml version=\"1.0\"?><Error><Code>%s</Code></Error>", code)
}

// serveKey issues a user delegation key to the identity.
func serveKey(w http.ResponseWriter, r *http.Request) {
	var asked struct{ Start, Expiry string }
	if err := xml.NewDecoder(r.Body).Decode(&asked); err != nil {
		failAzure(w, http.StatusBadRequest, "InvalidXmlDocument")
		return
	}
	start, err := time.Parse(time.RFC3339, asked.Start)
	expiry, otherErr := time.Parse(time.RFC3339, asked.Expiry)
	if err != nil || otherErr != nil || start.After(time.Now()) || expiry.Sub(start) > 7*24*time.Hour {
		failAzure(w, http.StatusBadRequest, "InvalidXmlNodeValue")
		return
	}
	key := delegationKey(asked.Start, asked.Expiry)
	w.Header().Set("Content-Type", "application/xml")
	_, _ = fmt.Fprintf(w, `<?xml version="1.0"?><UserDelegationKey><SignedOid>%s</SignedOid><SignedTid>%s</SignedTid>`+
		`<SignedStart>%s</SignedStart><SignedExpiry>%s</SignedExpiry><SignedService>b</SignedService>`+
		`<SignedVersion>%s</SignedVersion><Value>%s</Value></UserDelegationKey>`,
		objectID, tenantID, asked.Start, asked.Expiry, azureVersion, key)
}
