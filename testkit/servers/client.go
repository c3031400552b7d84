package servers

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"
)

// idleConnectionsMax is more than the number of concurrent clients.
const idleConnectionsMax = 64

// Outcome is a client's knowledge about the effect of its request.
type Outcome uint8

// The outcomes.
const (
	Acknowledged Outcome = iota
	Refused              // the request has not happened and never will
	Unknown              // the answer did not arrive, or states that the outcome is unknown
)

// Answer is a response, or the lack of one.
type Answer struct {
	Outcome Outcome
	Status  int         // 0 if there was no response
	Header  http.Header // nil if there was no response
	Text    string      // the body, or the reason why there was no response
	Err     error       // the reason why there was no response
	Table   Loaded      // set if the answer contains a table
}

// Loaded is a version of a table, read from an answer or a metadata file.
type Loaded struct {
	Location string   `json:"metadata-location"`
	Metadata Document `json:"metadata"`
}

// Document is the part of a metadata document that tests use.
type Document struct {
	UUID         string            `json:"table-uuid"`
	Location     string            `json:"location"`
	LastSequence int64             `json:"last-sequence-number"`
	Current      *int64            `json:"current-snapshot-id"`
	Properties   map[string]string `json:"properties"`
	Snapshots    []struct {
		ID     int64  `json:"snapshot-id"`
		Parent *int64 `json:"parent-snapshot-id"`
	} `json:"snapshots"`
	Log []struct {
		File string `json:"metadata-file"`
	} `json:"metadata-log"`
}

// Head returns the snapshot id of main, or 0 if there is none.
func (d Document) Head() int64 {
	if d.Current == nil || *d.Current < 0 {
		return 0
	}
	return *d.Current
}

// Client sends requests to one server. It is safe for concurrent use.
type Client struct {
	uri   string
	http  *http.Client
	token string // empty for an anonymous client
}

// NewClient returns a client of the server at uri. timeout is the limit for a request with its
// whole answer.
func NewClient(uri string, timeout time.Duration) *Client {
	return &Client{uri: uri, http: &http.Client{
		Transport: &http.Transport{MaxIdleConnsPerHost: idleConnectionsMax},
		Timeout:   timeout,
	}}
}

// As returns a client of the same server, over the same connections, that sends token with each
// request.
func (c *Client) As(token string) *Client {
	as := *c
	as.token = token
	return &as
}

// URI returns the address of the server.
func (c *Client) URI() string { return c.uri }

// CloseIdle closes idle connections.
func (c *Client) CloseIdle() { c.http.CloseIdleConnections() }

// Object is a JSON object to send.
type Object = map[string]any

// Unfinished is a transaction with work left to do.
type Unfinished struct {
	ID       string    `json:"id"`
	What     string    `json:"what"`
	Fact     string    `json:"fact"`
	Files    []string  `json:"files"`
	Deadline time.Time `json:"until"`
}

// Unfinished returns the transactions with work left to do.
func (c *Client) Unfinished(ctx context.Context) ([]Unfinished, error) {
	a := c.send(ctx, "", http.MethodGet, "/management/v1/doctor?pageSize=1000", nil)
	var body struct {
		Findings []Unfinished `json:"findings"`
		Next     *string      `json:"next-page-token"`
	}
	if a.Outcome != Acknowledged {
		return nil, fmt.Errorf("list transactions: %d %s", a.Status, a.Text)
	}
	err := json.Unmarshal([]byte(a.Text), &body)
	if err == nil && body.Next != nil {
		err = fmt.Errorf("there are more than %d findings", len(body.Findings))
	}
	isOther := func(u Unfinished) bool { return !strings.HasPrefix(u.What, "transaction") }
	return slices.DeleteFunc(body.Findings, isOther), err
}

// Metrics returns the lines of the server's metrics that begin with prefix.
func (c *Client) Metrics(ctx context.Context, prefix string) ([]string, error) {
	a := c.send(ctx, "", http.MethodGet, "/metrics", nil)
	if a.Outcome != Acknowledged {
		return nil, fmt.Errorf("read the metrics: %d %s", a.Status, a.Text)
	}
	var found []string
	for line := range strings.Lines(a.Text) {
		if strings.HasPrefix(line, prefix) {
			found = append(found, strings.TrimSpace(line))
		}
	}
	return found, nil
}

// Ready returns an error with the reason if the server cannot do its work now.
func (c *Client) Ready(ctx context.Context) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, c.uri+"/readyz", nil)
	if err != nil {
		return err
	}
	response, err := c.http.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	content, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("%d %s", response.StatusCode, content)
	}
	return err
}

// Send sends one request. path is relative to /v1/.
func (c *Client) Send(ctx context.Context, method, path string, body any) Answer {
	return c.SendOnce(ctx, "", method, path, body)
}

// SendOnce is like Send. Unless key is empty, the request has it as its Idempotency-Key. A request
// that is sent several times with the same key happens only once.
func (c *Client) SendOnce(ctx context.Context, key, method, path string, body any) Answer {
	return c.send(ctx, key, method, "/v1/"+path, body)
}

// Manage is like Send, for paths relative to /management/v1/.
func (c *Client) Manage(ctx context.Context, method, path string, body any) Answer {
	return c.send(ctx, "", method, "/management/v1/"+path, body)
}

func (c *Client) send(ctx context.Context, key, method, path string, body any) Answer {
	var encoded []byte
	if body != nil {
		var err error
		if encoded, err = json.Marshal(body); err != nil {
			return Answer{Outcome: Refused, Text: err.Error(), Err: err}
		}
	}
	request, err := http.NewRequestWithContext(ctx, method, c.uri+path, bytes.NewReader(encoded))
	if err != nil {
		return Answer{Outcome: Refused, Text: err.Error(), Err: err}
	}
	request.Header.Set("Content-Type", "application/json")
	if key != "" {
		request.Header.Set("Idempotency-Key", key)
	}
	if c.token != "" {
		request.Header.Set("Authorization", "Bearer "+c.token)
	}
	response, err := c.http.Do(request)
	if err != nil {
		return Answer{Outcome: Unknown, Text: err.Error(), Err: err}
	}
	defer response.Body.Close()
	content, err := io.ReadAll(response.Body)
	if err != nil {
		return Answer{Outcome: Unknown, Text: err.Error(), Err: err}
	}
	a := Answer{Status: response.StatusCode, Header: response.Header, Text: string(content)}
	switch {
	case a.Status < 300:
		a.Outcome = Acknowledged
		if bytes.HasPrefix(content, []byte(`{"metadata`)) || bytes.Contains(content, []byte(`"table-uuid"`)) {
			if err := json.Unmarshal(content, &a.Table); err != nil {
				a.Outcome, a.Text = Unknown, err.Error()
			}
		}
	case a.Status < 500 || a.Status == http.StatusServiceUnavailable:
		a.Outcome = Refused
	default:
		a.Outcome = Unknown
	}
	return a
}

// TablesPath is the path of the tables of a namespace.
func TablesPath(namespace string) string { return "namespaces/" + namespace + "/tables" }

// TablePath is the path of a table.
func TablePath(namespace, name string) string { return TablesPath(namespace) + "/" + name }

// CreateNamespace creates a namespace.
func (c *Client) CreateNamespace(ctx context.Context, name string) Answer {
	return c.Send(ctx, http.MethodPost, "namespaces", Object{"namespace": []string{name}})
}

// Create creates a table with one column.
func (c *Client) Create(ctx context.Context, namespace, name string, properties map[string]string) Answer {
	return c.Send(ctx, http.MethodPost, TablesPath(namespace), Object{
		"name": name, "properties": properties,
		"schema": Object{"type": "struct", "schema-id": 0, "fields": []Object{
			{"id": 1, "name": "id", "required": false, "type": "long"},
		}},
	})
}

// Load loads a table.
func (c *Client) Load(ctx context.Context, namespace, name string) Answer {
	return c.Send(ctx, http.MethodGet, TablePath(namespace, name), nil)
}

// Drop drops a table.
func (c *Client) Drop(ctx context.Context, namespace, name string, purge bool) Answer {
	return c.Send(ctx, http.MethodDelete, fmt.Sprintf("%s?purgeRequested=%t", TablePath(namespace, name), purge), nil)
}

// Rename renames a table within its namespace.
func (c *Client) Rename(ctx context.Context, namespace, from, to string) Answer {
	ident := func(name string) Object { return Object{"namespace": []string{namespace}, "name": name} }
	return c.Send(ctx, http.MethodPost, "tables/rename", Object{"source": ident(from), "destination": ident(to)})
}

// Set sets properties of the table that has the name when the request happens.
func (c *Client) Set(ctx context.Context, namespace, name string, properties map[string]string) Answer {
	return c.Send(ctx, http.MethodPost, TablePath(namespace, name), Object{
		"requirements": []Object{},
		"updates":      []Object{{"action": "set-properties", "updates": properties}},
	})
}

// Append adds a snapshot on top of base, if base is still the last version.
func (c *Client) Append(ctx context.Context, namespace, name string, base Document, snapshot int64,
	properties map[string]string) Answer {
	added := Object{
		"snapshot-id": snapshot, "sequence-number": base.LastSequence + 1, "timestamp-ms": time.Now().UnixMilli(),
		"manifest-list": fmt.Sprintf("%s/metadata/snap-%d.avro", base.Location, snapshot),
		"summary":       Object{"operation": "append"}, "schema-id": 0,
	}
	required := Object{"type": "assert-ref-snapshot-id", "ref": "main", "snapshot-id": nil}
	if head := base.Head(); head != 0 {
		added["parent-snapshot-id"], required["snapshot-id"] = head, head
	}
	return c.Send(ctx, http.MethodPost, TablePath(namespace, name), Object{
		"requirements": []Object{{"type": "assert-table-uuid", "uuid": base.UUID}, required},
		"updates": []Object{
			{"action": "add-snapshot", "snapshot": added},
			{"action": "set-snapshot-ref", "ref-name": "main", "type": "branch", "snapshot-id": snapshot},
			{"action": "set-properties", "updates": properties},
		},
	})
}

// List returns the sorted names of the tables in a namespace.
func (c *Client) List(ctx context.Context, namespace string) ([]string, error) {
	a := c.Send(ctx, http.MethodGet, TablesPath(namespace), nil)
	if a.Outcome != Acknowledged {
		return nil, fmt.Errorf("list %s: %d %s", namespace, a.Status, a.Text)
	}
	var body struct {
		Identifiers []struct {
			Name string `json:"name"`
		} `json:"identifiers"`
	}
	if err := json.Unmarshal([]byte(a.Text), &body); err != nil {
		return nil, fmt.Errorf("list %s: %w", namespace, err)
	}
	names := make([]string, 0, len(body.Identifiers))
	for _, identifier := range body.Identifiers {
		names = append(names, identifier.Name)
	}
	slices.Sort(names)
	return names, nil
}
