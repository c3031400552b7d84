// Package client calls the operations of package management, and defines the types of their bodies.
// The server uses the same types.
//
// It reads only bounded responses, and sends changes with an Idempotency-Key. It must not import
// the code that carries out the operations.
package client

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"
)

// BackupSpec names a new backup.
type BackupSpec struct {
	Name string `json:"name"`
}

// Backup is a finished copy of the store.
type Backup struct {
	Folder  string `json:"folder"` // on the server's machine, absolute
	Records int    `json:"records"`
}

// TypeUnknownOutcome is the Type of an Error if it is unknown whether the change happened.
const TypeUnknownOutcome = "CommitStateUnknownException"

// Error is an error response of a server.
type Error struct {
	URI       string `json:"-"`    // address of the server; empty if the process itself answered
	Status    string `json:"-"`    // "404 Not Found"
	Code      int    `json:"code"` // 404
	Type      string `json:"type"`
	Message   string `json:"message"`
	RequestID string `json:"request-id"`
	Help      string `json:"help"`
	// RetryAfter is how long the server asks to wait before the request is repeated; 0 if it does
	// not ask.
	RetryAfter time.Duration `json:"-"`
}

// Error implements error.
func (e *Error) Error() string {
	if e.URI == "" {
		return e.Message
	}
	return e.URI + " answered " + e.Status + ": " + e.Message
}

// isOurs reports whether Moorage answered. If not, a proxy or some other server answered.
func (e *Error) isOurs() bool { return e.Type != "" }

// IsMissing reports whether the object of the request does not exist.
func (e *Error) IsMissing() bool { return e.isOurs() && e.Code == http.StatusNotFound }

// IsConflict reports whether the request conflicts with the present state.
func (e *Error) IsConflict() bool {
	return e.isOurs() && (e.Code == http.StatusConflict || e.Code == http.StatusPreconditionFailed)
}

// IsOutdated reports whether the object of the request is no longer as Request.IfMatch or IfNew
// requires.
func (e *Error) IsOutdated() bool { return e.isOurs() && e.Code == http.StatusPreconditionFailed }

// Client calls one server. It is safe for concurrent use. Its methods return *Error for an error
// response of the server.
type Client struct {
	uri     string
	token   string
	http    *http.Client
	isLocal bool // the process itself answers, not a server
}

// New returns a client for the server at uri, such as http://127.0.0.1:8181. token identifies the
// caller: an API key or a token of an issuer. If token is empty, requests have no credentials.
func New(uri, token string) *Client {
	return &Client{uri: strings.TrimSuffix(uri, "/"), token: token, http: http.DefaultClient}
}

// Over returns a client for a handler in this process. transport calls the handler.
func Over(transport http.RoundTripper) *Client {
	return &Client{uri: "http://localhost", http: &http.Client{Transport: transport}, isLocal: true}
}

// Trusting returns a copy of c that trusts servers whose certificates were signed by authorities.
// If authorities is nil, it trusts the system's authorities.
func (c *Client) Trusting(authorities *x509.CertPool) *Client {
	if authorities == nil {
		return c
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.TLSClientConfig = &tls.Config{RootCAs: authorities}
	trusting := *c
	trusting.http = &http.Client{Transport: transport}
	return &trusting
}

// Request is a request for one operation of the management API.
type Request struct {
	Method string
	Path   string     // below RootManagement, escaped; see Path
	Whole  string     // the whole path, instead of Path; see IcebergPath
	Query  url.Values // query parameters; may be nil
	Body   any        // sent as JSON; nil for no body
	Reads  bool       // true for a read whose method is not GET
	// IfMatch is the ETag of the version that the change expects. If it is empty, any version will
	// do.
	IfMatch string
	IfNew   bool    // the object of a PUT must not exist
	Tag     *string // if not nil, receives the ETag of the response
	// If Date is not nil, it receives the time at which the server answered, in whole seconds. That
	// is the zero time if the process itself answered.
	Date *time.Time
}

// changes reports whether r can change something.
func (r Request) changes() bool { return r.Method != http.MethodGet && !r.Reads }

// RootManagement is the prefix of the paths of all operations of the management API.
const RootManagement = "/management/v1"

// Path returns the path of an operation. It escapes each segment.
func Path(segments ...string) string {
	path := ""
	for _, segment := range segments {
		path += "/" + url.PathEscape(segment)
	}
	return path
}

// NextPage is embedded in the pages of lists.
type NextPage struct {
	NextPageToken *string `json:"next-page-token"` // null on the last page
}

// Next returns the token of the next page, or "" on the last page.
func (p NextPage) Next() string {
	if p.NextPageToken == nil {
		return ""
	}
	return *p.NextPageToken
}

// PageMax is the maximum size of a page of most lists.
const PageMax = 1000

// Pages requests a list page by page, and calls visit with each page. If visit returns false, Pages
// stops. The request may set the page size, which is PageMax by default.
func Pages[P interface{ Next() string }](ctx context.Context, c *Client, request Request, visit func(P) bool) error {
	query := url.Values{"pageSize": {strconv.Itoa(PageMax)}, "pageToken": {""}}
	maps.Copy(query, request.Query)
	request.Query = query
	for {
		var page P
		if err := c.Do(ctx, request, &page); err != nil {
			return err
		}
		if !visit(page) || page.Next() == "" {
			return nil
		}
		query.Set("pageToken", page.Next())
	}
}

// answerBytesMax is the maximum number of bytes of a response that are read.
const answerBytesMax = 64 << 20

// userAgent is the client's name in histories and logs.
const userAgent = "moorage"

// Do sends a request and decodes the response into answer. If the response has no body, answer
// stays unchanged. Do returns an *Error for an error response. If a change was sent and no readable
// response from Moorage arrived, the error also wraps ErrOutcomeUnknown.
func (c *Client) Do(ctx context.Context, asked Request, answer any) error {
	var content io.Reader
	if asked.Body != nil {
		encoded, err := json.Marshal(asked.Body)
		if err != nil {
			return err
		}
		content = bytes.NewReader(encoded)
	}
	address := c.uri + RootManagement + asked.Path
	if asked.Whole != "" {
		address = c.uri + asked.Whole
	}
	if len(asked.Query) > 0 {
		address += "?" + asked.Query.Encode()
	}
	request, err := http.NewRequestWithContext(ctx, asked.Method, address, content)
	if err != nil {
		return fmt.Errorf("ask %s: %w", c.uri, err)
	}
	request.Header.Set("User-Agent", userAgent)
	if asked.Body != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	if c.token != "" {
		request.Header.Set("Authorization", "Bearer "+c.token)
	}
	if asked.Method != http.MethodGet {
		// If the connection turns out to be closed, net/http repeats a request only if the request
		// has a key.
		request.Header.Set("Idempotency-Key", uuid.NewString())
	}
	if asked.IfMatch != "" {
		request.Header.Set("If-Match", asked.IfMatch)
	}
	if asked.IfNew {
		request.Header.Set("If-None-Match", "*")
	}
	response, err := c.http.Do(request)
	if err != nil {
		return c.unanswered(asked, err)
	}
	defer response.Body.Close()
	if asked.Tag != nil {
		*asked.Tag = response.Header.Get("ETag")
	}
	if asked.Date != nil {
		*asked.Date, _ = http.ParseTime(response.Header.Get("Date")) // the zero time if there is no such header
	}
	switch {
	case response.StatusCode == http.StatusNoContent:
		return nil
	case response.StatusCode != http.StatusOK:
		refused := c.refusal(response)
		if asked.changes() && !refused.isOurs() && response.StatusCode >= http.StatusInternalServerError {
			return fmt.Errorf("%w; %w", refused, ErrOutcomeUnknown) // a proxy lost the answer
		}
		return refused
	}
	if answer == nil {
		return nil
	}
	err = json.NewDecoder(io.LimitReader(response.Body, answerBytesMax)).Decode(answer)
	switch {
	case err == nil:
		return nil
	case asked.changes():
		return fmt.Errorf("read the answer of %s: %w; %w", c.uri, err, ErrOutcomeUnknown)
	}
	return fmt.Errorf("read the answer of %s: %w", c.uri, err)
}

// ErrOutcomeUnknown means that a change was sent to a server and may have happened.
var ErrOutcomeUnknown = errors.New("the change may have happened or not: check before you repeat it")

// unanswered returns the error for a request that got no response.
func (c *Client) unanswered(asked Request, err error) error {
	if refused, ok := errors.AsType[*url.Error](err); ok {
		err = refused.Err // the cause, without the address of the request
	}
	if untrusted, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		return fmt.Errorf("the certificate of the server at %s is not trusted: %w; "+
			"name the file of its authority with --ca", c.uri, untrusted.Err)
	}
	if dial, ok := errors.AsType[*net.OpError](err); !asked.changes() || ok && dial.Op == "dial" {
		return fmt.Errorf("no server answers at %s: %w; start one with moorage demo or moorage serve, "+
			"or name one with --uri", c.uri, err)
	}
	return fmt.Errorf("the server at %s did not answer: %w; %w", c.uri, err, ErrOutcomeUnknown)
}

// Send sends one request unchanged, and returns the response, whatever its status is. path begins
// with a slash. The caller closes the body. If no response arrives, the error is the one that Do
// would return.
func (c *Client) Send(ctx context.Context, method, path string, headers http.Header, body io.Reader) (
	*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, method, c.uri+path, body)
	if err != nil {
		return nil, fmt.Errorf("ask %s: %w", c.uri, err)
	}
	request.Header.Set("Content-Type", "application/json")
	if c.token != "" {
		request.Header.Set("Authorization", "Bearer "+c.token)
	}
	maps.Copy(request.Header, headers)
	response, err := c.http.Do(request)
	if err != nil {
		return nil, c.unanswered(Request{Method: method}, err)
	}
	return response, nil
}

// RefusalBytesMax is the maximum number of bytes of an error response that are read.
const RefusalBytesMax = 8 << 10

// refusal returns the error in a response. If the response does not come from Moorage, the message
// is the response's text.
func (c *Client) refusal(response *http.Response) *Error {
	text, _ := io.ReadAll(io.LimitReader(response.Body, RefusalBytesMax))
	return c.RefusalOf(response, text)
}

// RefusalOf returns the error in a response. text is the body of the response.
func (c *Client) RefusalOf(response *http.Response, text []byte) *Error {
	var ours struct{ Error Error }
	if json.Unmarshal(text, &ours) != nil || ours.Error.Message == "" {
		ours.Error = Error{Code: response.StatusCode, Message: strings.TrimSpace(string(text))}
	}
	if !c.isLocal {
		ours.Error.URI = c.uri
	}
	ours.Error.Status, ours.Error.RetryAfter = response.Status, retryAfterOf(response.Header)
	return &ours.Error
}

// retryAfterOf returns the Retry-After of a response: seconds, or a time after its Date. It is 0 if
// there is none.
func retryAfterOf(header http.Header) time.Duration {
	text := header.Get("Retry-After")
	if seconds, err := strconv.ParseUint(text, 10, 31); err == nil {
		return time.Duration(seconds) * time.Second
	}
	until, err := http.ParseTime(text)
	now, undated := http.ParseTime(header.Get("Date"))
	if err != nil || undated != nil {
		return 0
	}
	return max(until.Sub(now), 0)
}
