// Package client asks a running server for the operations of package management. The server uses
// its types of answers too.
//
// It promises to read bounded answers only, and to send changes with an Idempotency-Key. It must
// not know how the server does what it asks for.
package client

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/google/uuid"

	"moorage/catalog"
)

// Report is a check.Report.
type Report struct {
	Warehouses int      `json:"warehouses"`
	Namespaces int      `json:"namespaces"`
	Tables     int      `json:"tables"`
	Views      int      `json:"views"`
	Problems   []string `json:"problems"` // never null
}

// TransactionsPage is a page of the transactions with work left to do.
type TransactionsPage struct {
	Transactions  []catalog.UnfinishedTransaction `json:"transactions"`
	NextPageToken *string                         `json:"next-page-token"` // null on the last page
}

// TasksPage is a page of the tasks that were given up or cannot be read.
type TasksPage struct {
	Tasks         []catalog.BlockedPurge `json:"tasks"`
	NextPageToken *string                `json:"next-page-token"` // null on the last page
}

// PurgesPage is a TasksPage as older clients know it.
type PurgesPage struct {
	Purges        []catalog.BlockedPurge `json:"purges"`
	NextPageToken *string                `json:"next-page-token"` // null on the last page
}

// Backup is a copy of the store that was made.
type Backup struct {
	Folder  string `json:"folder"` // on the server's machine, absolute
	Records int    `json:"records"`
}

// Error is a failure that a server answered.
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

// Client asks one server. It is safe for concurrent use. Its methods return *Error for a failure
// that the server answered.
type Client struct {
	uri  string
	http *http.Client
}

// New returns a client of the server at uri, such as http://127.0.0.1:8181.
func New(uri string) *Client {
	return &Client{uri: strings.TrimSuffix(uri, "/"), http: http.DefaultClient}
}

// Check has the server check its store.
func (c *Client) Check(ctx context.Context) (report Report, err error) {
	err = c.ask(ctx, http.MethodGet, "/check", nil, &report)
	return report, err
}

// Backup has the server, which must run on this machine, copy its store to a new folder called
// name.
func (c *Client) Backup(ctx context.Context, name string) (made Backup, err error) {
	err = c.ask(ctx, http.MethodPost, "/backup", map[string]string{"name": name}, &made)
	return made, err
}

// UnfinishedTransactions is catalog.Catalog.UnfinishedTransactions, of the server. Its tokens take
// the place of the names of pages.
func (c *Client) UnfinishedTransactions(ctx context.Context, page catalog.Page) (
	[]catalog.UnfinishedTransaction, string, error) {
	var answer TransactionsPage
	err := c.ask(ctx, http.MethodGet, "/transactions"+query(page), nil, &answer)
	return answer.Transactions, valueOf(answer.NextPageToken), err
}

// BlockedPurges is catalog.Catalog.BlockedPurges, of the server. Its tokens take the place of the
// names of pages.
func (c *Client) BlockedPurges(ctx context.Context, page catalog.Page) ([]catalog.BlockedPurge, string, error) {
	var answer TasksPage
	err := c.ask(ctx, http.MethodGet, "/tasks"+query(page), nil, &answer)
	return answer.Tasks, valueOf(answer.NextPageToken), err
}

// Retry is catalog.Catalog.Retry, of the server.
func (c *Client) Retry(ctx context.Context, id string) (retried catalog.Retried, err error) {
	err = c.ask(ctx, http.MethodPost, "/tasks/"+url.PathEscape(id)+"/retry", nil, &retried)
	return retried, err
}

// Abort is catalog.Catalog.Abort, of the server.
func (c *Client) Abort(ctx context.Context, id string) (aborted catalog.Aborted, err error) {
	err = c.ask(ctx, http.MethodPost, "/transactions/"+url.PathEscape(id)+"/abort", nil, &aborted)
	return aborted, err
}

func query(page catalog.Page) string {
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

// answerBytesMax bounds what is read of a server's answer.
const answerBytesMax = 64 << 20

// ask sends a request, with body as JSON if it is not nil, and decodes the answer into answer.
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
	if method != http.MethodGet {
		// net/http sends a request with a key again if the connection turns out to be closed.
		request.Header.Set("Idempotency-Key", uuid.NewString())
	}
	response, err := c.http.Do(request)
	if err != nil {
		return fmt.Errorf("ask the server: %w", err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return c.refusal(response)
	}
	if err := json.NewDecoder(io.LimitReader(response.Body, answerBytesMax)).Decode(answer); err != nil {
		return fmt.Errorf("read the answer of %s: %w", c.uri, err)
	}
	return nil
}

// refusalBytesMax bounds what is read of a failure.
const refusalBytesMax = 8 << 10

// refusal returns what a server said instead of an answer. If it is none of ours, the message is
// the text as it came.
func (c *Client) refusal(response *http.Response) error {
	text, _ := io.ReadAll(io.LimitReader(response.Body, refusalBytesMax))
	var ours struct{ Error Error }
	if json.Unmarshal(text, &ours) != nil || ours.Error.Message == "" {
		ours.Error = Error{Code: response.StatusCode, Message: strings.TrimSpace(string(text))}
	}
	ours.Error.URI, ours.Error.Status = c.uri, response.Status
	return &ours.Error
}
