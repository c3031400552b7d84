package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"time"

	"moorage"
	"moorage/metadata"
	"moorage/testkit/histories"
	"moorage/testkit/servers"
)

// caller makes the calls of one client over HTTP. It switches to another server when one does not
// answer, and occasionally at random. It is not safe for concurrent use.
type caller struct {
	cluster  *cluster
	recorder *histories.Recorder
	random   *rand.Rand
	node     int
	stays    bool // never switches servers
}

// stay is the average number of calls that a caller makes to a server before it switches.
const stay = 20

// ask makes a call.
func (c *caller) ask(ctx context.Context, call histories.Call) histories.Answer {
	if !c.stays && c.random.IntN(stay) == 0 {
		c.node = c.random.IntN(len(c.cluster.nodes))
	}
	got := send(ctx, c.cluster.nodes[c.node].client.Load(), call)
	answer, err := translate(call, got)
	if err != nil {
		c.recorder.Fail(fmt.Errorf("node %d: %s: %w", c.node, histories.Event{Call: call, Answer: answer}, err))
	}
	if answer.Err != nil && got.Status == 0 && !c.stays {
		c.node = (c.node + 1) % len(c.cluster.nodes)
	}
	return answer
}

// namespaceOf returns the namespace for a group of names.
func namespaceOf(group int) string { return fmt.Sprintf("g%d", group) }

// send makes the request for a call.
func send(ctx context.Context, client *servers.Client, call histories.Call) servers.Answer {
	namespace, name := namespaceOf(call.Group), histories.TableName(call.Name)
	table := servers.TablePath(namespace, name)
	switch call.Action {
	case histories.Load:
		return client.Load(ctx, namespace, name)
	case histories.Exists:
		return client.Send(ctx, http.MethodHead, table, nil)
	case histories.List:
		return client.Send(ctx, http.MethodGet, servers.TablesPath(namespace), nil)
	case histories.Refresh:
		return client.Send(ctx, http.MethodPost, table, servers.Object{"requirements": []any{}, "updates": []any{}})
	case histories.Set, histories.SetPinned, histories.Append:
		requirements, updates := call.Commit(time.Now().UnixMilli(), "file:///manifests")
		return client.Send(ctx, http.MethodPost, table, servers.Object{
			"requirements": json.RawMessage(requirements), "updates": json.RawMessage(updates),
		})
	case histories.Create:
		return client.Create(ctx, namespace, name, map[string]string{histories.PropClient(call.Client): call.ID})
	case histories.Drop:
		return client.Drop(ctx, namespace, name, false)
	case histories.Rename:
		return client.Rename(ctx, namespace, name, histories.TableName(call.To))
	case histories.CreateNS:
		return client.CreateNamespace(ctx, namespace)
	case histories.DropNS:
		return client.Send(ctx, http.MethodDelete, "namespaces/"+namespace, nil)
	}
	return servers.Answer{Outcome: servers.Refused, Text: "no request stands for " + string(call.Action)}
}

// kinds maps the exceptions that clients may get to their kinds.
func kinds() map[string]moorage.Kind {
	return map[string]moorage.Kind{
		"NoSuchTableException":        moorage.KindNoSuchTable,
		"NoSuchNamespaceException":    moorage.KindNoSuchNamespace,
		"AlreadyExistsException":      moorage.KindAlreadyExists,
		"NamespaceNotEmptyException":  moorage.KindNamespaceNotEmpty,
		"CommitFailedException":       moorage.KindCommitFailed,
		"ServiceUnavailableException": moorage.KindUnavailable,
		"CommitStateUnknownException": moorage.KindCommitUnknown,
	}
}

// translate converts a response to a histories.Answer. It returns an error for a response that no
// server may give.
func translate(call histories.Call, got servers.Answer) (histories.Answer, error) {
	refusal := func(kind moorage.Kind) histories.Answer {
		return histories.Answer{Err: moorage.Errorf(kind, "%d %s", got.Status, got.Text)}
	}
	switch {
	case got.Status == 0:
		var operation *net.OpError
		if errors.As(got.Err, &operation) && operation.Op == "dial" {
			return refusal(moorage.KindUnavailable), nil // nothing was sent
		}
		return refusal(moorage.KindCommitUnknown), nil
	case got.Outcome == servers.Acknowledged:
		answer, err := found(call, got.Text)
		if err != nil {
			return refusal(moorage.KindCommitUnknown), err
		}
		return answer, nil
	case call.Action == histories.Exists && got.Status == http.StatusNotFound:
		return refusal(moorage.KindNoSuchTable), nil // HEAD has no body with the details
	case call.Action == histories.Exists && got.Status == http.StatusServiceUnavailable:
		return refusal(moorage.KindUnavailable), checkAdvice(got)
	}
	var body struct {
		Error struct {
			Type string `json:"type"`
			Code int    `json:"code"`
		} `json:"error"`
	}
	if err := json.Unmarshal([]byte(got.Text), &body); err != nil {
		return refusal(moorage.KindCommitUnknown), fmt.Errorf("read the error: %w", err)
	}
	kind, known := kinds()[body.Error.Type]
	if !known {
		return refusal(moorage.KindCommitUnknown), fmt.Errorf("the exception %q", body.Error.Type)
	}
	return refusal(kind), checkAdvice(got)
}

// checkAdvice returns an error unless exactly the responses with status 503 have the header
// Retry-After. Clients retry such requests.
func checkAdvice(got servers.Answer) error {
	if advises := got.Header.Get("Retry-After") != ""; advises != (got.Status == http.StatusServiceUnavailable) {
		return fmt.Errorf("status %d, Retry-After: %q", got.Status, got.Header.Get("Retry-After"))
	}
	return nil
}

// found decodes the response to a call that succeeded.
func found(call histories.Call, text string) (histories.Answer, error) {
	var body struct {
		Location    string          `json:"metadata-location"`
		Metadata    json.RawMessage `json:"metadata"`
		Identifiers []struct {
			Name string `json:"name"`
		} `json:"identifiers"`
	}
	var answer histories.Answer
	if text == "" {
		return answer, nil
	}
	if err := json.Unmarshal([]byte(text), &body); err != nil {
		return answer, fmt.Errorf("read the answer: %w", err)
	}
	for _, identifier := range body.Identifiers {
		answer.Listed[identifier.Name[1]-'0'] = true
	}
	if call.Action == histories.List || call.Action == histories.CreateNS {
		return answer, nil
	}
	document, err := metadata.Parse(body.Metadata)
	if err != nil {
		return answer, fmt.Errorf("read the metadata: %w", err)
	}
	return histories.Found(body.Location, document), nil
}
