package torture

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"time"
)

// outcome is what a client knows of a request that it made.
type outcome uint8

const (
	acknowledged outcome = iota
	refused              // it certainly has not happened and will not
	unknown              // the answer did not come, or says so
)

// answer is a response, or that none came.
type answer struct {
	outcome outcome
	status  int
	text    string
	table   loaded // of answers that hold one
}

// loaded is a version of a table, as answers and metadata files hold it.
type loaded struct {
	Location string   `json:"metadata-location"`
	Metadata document `json:"metadata"`
}

// document is a metadata document, as far as the tests look at it.
type document struct {
	UUID         string            `json:"table-uuid"`
	Location     string            `json:"location"`
	LastSequence int64             `json:"last-sequence-number"`
	Head         *int64            `json:"current-snapshot-id"`
	Properties   map[string]string `json:"properties"`
	Snapshots    []struct {
		ID     int64  `json:"snapshot-id"`
		Parent *int64 `json:"parent-snapshot-id"`
	} `json:"snapshots"`
	Log []struct {
		File string `json:"metadata-file"`
	} `json:"metadata-log"`
}

// head returns the head of main, 0 if there is none.
func (d document) head() int64 {
	if d.Head == nil || *d.Head < 0 {
		return 0
	}
	return *d.Head
}

// client talks to one server. It is safe for concurrent use.
type client struct {
	uri  string
	http *http.Client
}

func newClient(uri string) *client {
	return &client{uri, &http.Client{
		Transport: &http.Transport{MaxIdleConnsPerHost: writersCount},
		Timeout:   time.Minute,
	}}
}

// object is a JSON object to send.
type object = map[string]any

// send makes one request.
func (c *client) send(ctx context.Context, method, path string, body any) answer {
	var encoded []byte
	if body != nil {
		var err error
		if encoded, err = json.Marshal(body); err != nil {
			return answer{outcome: refused, text: err.Error()}
		}
	}
	request, err := http.NewRequestWithContext(ctx, method, c.uri+"/v1/"+path, bytes.NewReader(encoded))
	if err != nil {
		return answer{outcome: refused, text: err.Error()}
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := c.http.Do(request)
	if err != nil {
		return answer{outcome: unknown, text: err.Error()}
	}
	defer response.Body.Close()
	content, err := io.ReadAll(response.Body)
	if err != nil {
		return answer{outcome: unknown, text: err.Error()}
	}
	a := answer{status: response.StatusCode, text: string(content)}
	switch {
	case a.status < 300:
		a.outcome = acknowledged
		if bytes.HasPrefix(content, []byte(`{"metadata`)) || bytes.Contains(content, []byte(`"table-uuid"`)) {
			if err := json.Unmarshal(content, &a.table); err != nil {
				a.outcome, a.text = unknown, err.Error()
			}
		}
	case a.status < 500 || a.status == http.StatusServiceUnavailable:
		a.outcome = refused
	default:
		a.outcome = unknown
	}
	return a
}

func tablesPath(namespace string) string { return "namespaces/" + namespace + "/tables" }

func tablePath(namespace, name string) string { return tablesPath(namespace) + "/" + name }

func (c *client) createNamespace(ctx context.Context, name string) answer {
	return c.send(ctx, http.MethodPost, "namespaces", object{"namespace": []string{name}})
}

func (c *client) create(ctx context.Context, namespace, name string, properties map[string]string) answer {
	return c.send(ctx, http.MethodPost, tablesPath(namespace), object{
		"name": name, "properties": properties,
		"schema": object{"type": "struct", "schema-id": 0, "fields": []object{
			{"id": 1, "name": "id", "required": false, "type": "long"},
		}},
	})
}

func (c *client) load(ctx context.Context, namespace, name string) answer {
	return c.send(ctx, http.MethodGet, tablePath(namespace, name), nil)
}

func (c *client) drop(ctx context.Context, namespace, name string, purge bool) answer {
	return c.send(ctx, http.MethodDelete, fmt.Sprintf("%s?purgeRequested=%t", tablePath(namespace, name), purge), nil)
}

func (c *client) rename(ctx context.Context, namespace, from, to string) answer {
	ident := func(name string) object { return object{"namespace": []string{namespace}, "name": name} }
	return c.send(ctx, http.MethodPost, "tables/rename", object{"source": ident(from), "destination": ident(to)})
}

// set sets properties, whatever the table is by then.
func (c *client) set(ctx context.Context, namespace, name string, properties map[string]string) answer {
	return c.send(ctx, http.MethodPost, tablePath(namespace, name), object{
		"requirements": []object{},
		"updates":      []object{{"action": "set-properties", "updates": properties}},
	})
}

// append adds a snapshot on top of base, if that is still the last.
func (c *client) append(ctx context.Context, namespace, name string, base document, snapshot int64, properties map[string]string) answer {
	added := object{
		"snapshot-id": snapshot, "sequence-number": base.LastSequence + 1, "timestamp-ms": time.Now().UnixMilli(),
		"manifest-list": fmt.Sprintf("%s/metadata/snap-%d.avro", base.Location, snapshot),
		"summary":       object{"operation": "append"}, "schema-id": 0,
	}
	required := object{"type": "assert-ref-snapshot-id", "ref": "main", "snapshot-id": nil}
	if head := base.head(); head != 0 {
		added["parent-snapshot-id"], required["snapshot-id"] = head, head
	}
	return c.send(ctx, http.MethodPost, tablePath(namespace, name), object{
		"requirements": []object{{"type": "assert-table-uuid", "uuid": base.UUID}, required},
		"updates": []object{
			{"action": "add-snapshot", "snapshot": added},
			{"action": "set-snapshot-ref", "ref-name": "main", "type": "branch", "snapshot-id": snapshot},
			{"action": "set-properties", "updates": properties},
		},
	})
}

// list returns the names of the tables in a namespace, ordered.
func (c *client) list(ctx context.Context, namespace string) ([]string, error) {
	a := c.send(ctx, http.MethodGet, tablesPath(namespace), nil)
	if a.outcome != acknowledged {
		return nil, fmt.Errorf("list %s: %d %s", namespace, a.status, a.text)
	}
	var body struct {
		Identifiers []struct {
			Name string `json:"name"`
		} `json:"identifiers"`
	}
	if err := json.Unmarshal([]byte(a.text), &body); err != nil {
		return nil, fmt.Errorf("list %s: %w", namespace, err)
	}
	names := make([]string, 0, len(body.Identifiers))
	for _, identifier := range body.Identifiers {
		names = append(names, identifier.Name)
	}
	slices.Sort(names)
	return names, nil
}
