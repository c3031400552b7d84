// Package client calls the operations of package management on a running server. The server uses
// its types too.
//
// It reads only bounded responses, and sends changes with an Idempotency-Key. It must not know how
// the server carries out the operations.
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
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"moorage"
)

// Report is a check.Report.
type Report struct {
	Warehouses int      `json:"warehouses"`
	Namespaces int      `json:"namespaces"`
	Tables     int      `json:"tables"`
	Views      int      `json:"views"`
	Problems   []string `json:"problems"` // never null
	// Unread has a sentence for each storage whose files could not be checked. Never null.
	Unread []string `json:"unread"`
}

// Page selects a part of a list.
type Page struct {
	After string // the next token of the previous page; empty for the first page
	Limit int    // maximum number of elements; 0 for the server's default
}

// Transaction is a transaction with work left to do.
type Transaction struct {
	ID        string               `json:"id"`    // the commit id
	State     string               `json:"state"` // pending, committed or aborted
	Warehouse string               `json:"warehouse"`
	Tables    []moorage.Identifier `json:"tables"`
	Files     []string             `json:"files"`     // all that it has written or may still write
	Published []string             `json:"published"` // files that stay; the others are deleted in the end
	Began     time.Time            `json:"began"`
	Deadline  time.Time            `json:"deadline"` // any node may abort it afterwards
	Principal string               `json:"principal"`
	RequestID string               `json:"request-id,omitempty"`
	Blocker   *Blocker             `json:"blocker"` // null unless the servers gave up
	// Unreadable is the reason why its record cannot be read. Only ID and State are known then.
	Unreadable string `json:"unreadable,omitempty"`
}

// Blocker has the reason why the servers gave up.
type Blocker struct {
	Since     time.Time `json:"since"`
	Attempts  int       `json:"attempts"`
	LastError string    `json:"last-error"`
	// Unreadable is the reason why its record cannot be read. No other field is known then.
	Unreadable string `json:"unreadable,omitempty"`
}

// Task is a blocked purge, or a task that cannot be read.
type Task struct {
	ID      string             `json:"id"`
	Table   moorage.Identifier `json:"table"`   // without a name if its record cannot be read
	Blocker Blocker            `json:"blocker"` // its Since is when the table was dropped
	// Unreadable is the reason why the record of the task cannot be read. Only ID is known then.
	Unreadable string `json:"unreadable,omitempty"`
}

// WaitingPurge is a dropped table that can be restored until its purge begins.
type WaitingPurge struct {
	ID     string             `json:"id"`     // of the task
	Table  moorage.Identifier `json:"table"`  // without a name if its record cannot be read
	Begins time.Time          `json:"begins"` // by the clock of the store
	Bytes  int64              `json:"bytes"`  // of its files, from the table's metadata
}

// WaitingPurgesPage is a page of waiting purges.
type WaitingPurgesPage struct {
	Purges        []WaitingPurge `json:"purges"`
	NextPageToken *string        `json:"next-page-token"` // null on the last page
}

// Retried is the result of a retry.
type Retried struct {
	Kind   string `json:"kind"`             // transaction or purge
	Ended  bool   `json:"ended"`            // nothing is left to do; else the servers continue to retry
	Reason string `json:"reason,omitempty"` // why it did not end at once, if that was tried
}

// Aborted is the result of an abort.
type Aborted struct {
	Kind string `json:"kind"` // transaction
	Was  string `json:"was"`  // the state before the abort
	// Forgotten reports that its record is gone. Otherwise the servers first delete its files.
	Forgotten bool     `json:"forgotten"`
	Left      []string `json:"left"` // files that may exist and will never be deleted; not null
}

// TransactionsPage is a page of the transactions with work left to do.
type TransactionsPage struct {
	Transactions  []Transaction `json:"transactions"`
	NextPageToken *string       `json:"next-page-token"` // null on the last page
}

// TasksPage is a page of the tasks that are blocked or cannot be read.
type TasksPage struct {
	Tasks         []Task  `json:"tasks"`
	NextPageToken *string `json:"next-page-token"` // null on the last page
}

// PurgesPage is a TasksPage for older clients.
type PurgesPage struct {
	Purges        []Task  `json:"purges"`
	NextPageToken *string `json:"next-page-token"` // null on the last page
}

// Backup is a finished copy of the store.
type Backup struct {
	Folder  string `json:"folder"` // on the server's machine, absolute
	Records int    `json:"records"`
}

// Error is an error response of a server.
type Error struct {
	URI       string `json:"-"`    // of the server
	Status    string `json:"-"`    // "404 Not Found"
	Code      int    `json:"code"` // 404
	Type      string `json:"type"`
	Message   string `json:"message"`
	RequestID string `json:"request-id"`
	Help      string `json:"help"`
}

// Error implements error.
func (e *Error) Error() string { return e.URI + " answered " + e.Status + ": " + e.Message }

// Client calls one server. It is safe for concurrent use. Its methods return *Error for an error
// response of the server.
type Client struct {
	uri   string
	token string
	http  *http.Client
}

// New returns a client of the server at uri, such as http://127.0.0.1:8181. token identifies the
// caller: an API key or a token of an issuer. Empty for requests without credentials.
func New(uri, token string) *Client {
	return &Client{uri: strings.TrimSuffix(uri, "/"), token: token, http: http.DefaultClient}
}

// Trusting returns a client that trusts servers whose certificates authorities signed. If
// authorities is nil, it trusts the system's authorities.
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

// Check makes the server check its store.
func (c *Client) Check(ctx context.Context) (report Report, err error) {
	err = c.ask(ctx, http.MethodGet, "/check", nil, &report)
	return report, err
}

// Backup makes the server, which must run on this machine, copy its store to a new folder called
// name.
func (c *Client) Backup(ctx context.Context, name string) (made Backup, err error) {
	err = c.ask(ctx, http.MethodPost, "/backup", map[string]string{"name": name}, &made)
	return made, err
}

// UnfinishedTransactions returns a page of the transactions with work left to do. The next page
// begins after next, which is empty on the last page.
func (c *Client) UnfinishedTransactions(ctx context.Context, page Page) ([]Transaction, string, error) {
	var answer TransactionsPage
	err := c.ask(ctx, http.MethodGet, "/transactions"+query(page), nil, &answer)
	return answer.Transactions, valueOf(answer.NextPageToken), err
}

// BlockedPurges returns a page of the blocked purges, and of the tasks that cannot be read. The
// next page begins after next, which is empty on the last page.
func (c *Client) BlockedPurges(ctx context.Context, page Page) ([]Task, string, error) {
	var answer TasksPage
	err := c.ask(ctx, http.MethodGet, "/tasks"+query(page), nil, &answer)
	return answer.Tasks, valueOf(answer.NextPageToken), err
}

// WaitingPurges returns a page of the purges that wait for their time, the next one first. The next
// page begins after next, which is empty on the last page.
func (c *Client) WaitingPurges(ctx context.Context, page Page) ([]WaitingPurge, string, error) {
	var answer WaitingPurgesPage
	err := c.ask(ctx, http.MethodGet, "/waiting-purges"+query(page), nil, &answer)
	return answer.Purges, valueOf(answer.NextPageToken), err
}

// Retry makes the server retry a blocked transaction or purge.
func (c *Client) Retry(ctx context.Context, id string) (retried Retried, err error) {
	err = c.ask(ctx, http.MethodPost, "/tasks/"+url.PathEscape(id)+"/retry", nil, &retried)
	return retried, err
}

// Abort makes the server end a transaction.
func (c *Client) Abort(ctx context.Context, id string) (aborted Aborted, err error) {
	err = c.ask(ctx, http.MethodPost, "/transactions/"+url.PathEscape(id)+"/abort", nil, &aborted)
	return aborted, err
}

func query(page Page) string {
	values := url.Values{"pageToken": {page.After}}
	if page.Limit > 0 {
		values.Set("pageSize", strconv.Itoa(page.Limit))
	}
	return "?" + values.Encode()
}

func valueOf(token *string) string {
	if token == nil {
		return ""
	}
	return *token
}

// answerBytesMax bounds how much of a response is read.
const answerBytesMax = 64 << 20

// ask sends a request, with body as JSON if it is not nil, and decodes the response into answer.
func (c *Client) ask(ctx context.Context, method, path string, body, answer any) error {
	var content io.Reader
	if body != nil {
		encoded, err := json.Marshal(body)
		if err != nil {
			return err
		}
		content = bytes.NewReader(encoded)
	}
	request, err := http.NewRequestWithContext(ctx, method, c.uri+"/management/v1"+path, content)
	if err != nil {
		return fmt.Errorf("ask %s: %w", c.uri, err)
	}
	if body != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	if c.token != "" {
		request.Header.Set("Authorization", "Bearer "+c.token)
	}
	if method != http.MethodGet {
		// net/http repeats a request with a key if the connection turns out to be closed.
		request.Header.Set("Idempotency-Key", uuid.NewString())
	}
	response, err := c.http.Do(request)
	if err != nil {
		if refused, ok := errors.AsType[*url.Error](err); ok {
			err = refused.Err // without the address of the request
		}
		if untrusted, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
			return fmt.Errorf("the certificate of the server at %s is not trusted: %w; "+
				"name the file of its authority with --ca", c.uri, untrusted.Err)
		}
		return fmt.Errorf("no server answers at %s: %w; is it running?", c.uri, err)
	}
	defer response.Body.Close()
	switch {
	case response.StatusCode == http.StatusNoContent:
		return nil
	case response.StatusCode != http.StatusOK:
		return c.refusal(response)
	}
	if err := json.NewDecoder(io.LimitReader(response.Body, answerBytesMax)).Decode(answer); err != nil {
		return fmt.Errorf("read the answer of %s: %w", c.uri, err)
	}
	return nil
}

// refusalBytesMax bounds how much of an error response is read.
const refusalBytesMax = 8 << 10

// refusal returns the error in a response. If the response does not come from Moorage, the message
// is its text.
func (c *Client) refusal(response *http.Response) error {
	text, _ := io.ReadAll(io.LimitReader(response.Body, refusalBytesMax))
	var ours struct{ Error Error }
	if json.Unmarshal(text, &ours) != nil || ours.Error.Message == "" {
		ours.Error = Error{Code: response.StatusCode, Message: strings.TrimSpace(string(text))}
	}
	ours.Error.URI, ours.Error.Status = c.uri, response.Status
	return &ours.Error
}
