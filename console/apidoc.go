package console

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"strings"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"

	"moorage"
	"moorage/management/client"
)

// apiPage is the operations of the management API.
type apiPage struct {
	uri        string
	hasKeys    bool
	operations []apiOperation
}

// apiOperation is an operation of the description of the API.
type apiOperation struct {
	method, path, id, summary, description string
	parameters                             []string
}

// apiBytesMax bounds the description of the API.
const apiBytesMax = 4 << 20

// loadAPI loads the description of the management API.
func loadAPI(ctx context.Context, v *visit) (*page, error) {
	answer, err := v.api.Send(ctx, http.MethodGet, client.RootManagement+"/openapi.yaml", nil, nil)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return nil, &client.Error{Code: answer.StatusCode,
			Message: "The description of the API is not available to you."}
	}
	content, err := io.ReadAll(io.LimitReader(answer.Body, apiBytesMax))
	if err != nil {
		return nil, err
	}
	model := apiPage{uri: v.uri, hasKeys: v.authenticates, operations: operationsIn(string(content))}
	return &page{title: "API", section: placeAPI, body: model.node()}, nil
}

// operationsIn returns the operations in openapi.yaml. It reads the layout of our own file line by
// line: a path is indented by two spaces, a method by four, and a member of an operation by six.
func operationsIn(description string) (found []apiOperation) {
	var path, folded string // folded is the member whose lines follow
	isPaths := false
	lines := bufio.NewScanner(strings.NewReader(description))
	for lines.Scan() {
		line := lines.Text()
		trimmed := strings.TrimSpace(line)
		indent := len(line) - len(strings.TrimLeft(line, " "))
		key, value, _ := strings.Cut(trimmed, ":")
		value = strings.TrimSpace(value)
		switch {
		case trimmed == "" || strings.HasPrefix(trimmed, "#"):
		case indent == 0:
			isPaths = key == "paths"
		case !isPaths:
		case indent == 2:
			path = strings.Trim(key, `"`)
		case indent == 4 && value == "" && key != "parameters":
			found, folded = append(found, apiOperation{method: strings.ToUpper(key), path: path}), ""
		case len(found) == 0 || indent < 6:
		case indent == 6:
			folded = ""
			last := &found[len(found)-1]
			switch key {
			case "operationId":
				last.id = value
			case "summary":
				last.summary = value
			case "description":
				if folded = key; !strings.HasPrefix(value, ">") {
					last.description = value
				}
			case "parameters":
				folded = key
			}
		case folded == "description":
			last := &found[len(found)-1]
			last.description = strings.TrimSpace(last.description + " " + trimmed)
		case folded == "parameters":
			if name, isName := strings.CutPrefix(trimmed, "- name: "); isName {
				last := &found[len(found)-1]
				last.parameters = append(last.parameters, name)
			}
		}
	}
	return found
}

// node returns the page.
func (m apiPage) node() g.Node {
	return g.Group{
		h.Div(h.Class("title"), h.H1(g.Text("API"))),
		h.P(h.Class("lead"), g.Text("Whatever the console does, these operations do too. Tables, views and "+
			"namespaces have the operations of the Iceberg REST specification, under "),
			mono(m.uri+client.RootIceberg), g.Text(".")),
		h.Div(h.Class("recipes"), g.Map(m.operations, func(op apiOperation) g.Node {
			look := ""
			switch op.method {
			case http.MethodGet:
			case http.MethodDelete:
				look = "bad"
			default:
				look = "warn"
			}
			return h.Details(h.Summary(badge(look, op.method), g.Text(" "), mono(op.path),
				h.Span(h.Class("faint"), text("  "+op.summary))),
				g.If(op.description != "", h.P(text(op.description))),
				g.If(len(op.parameters) > 0,
					h.P(h.Class("faint"), text("Parameters: "+strings.Join(op.parameters, ", ")))),
				listing(m.curl(op)))
		})),
	}
}

// curl returns how to try an operation.
func (m apiPage) curl(op apiOperation) []string {
	words := "curl -s"
	if op.method != http.MethodGet {
		words += " -X " + op.method
	}
	if m.hasKeys {
		words += " -H 'Authorization: Bearer KEY'"
	}
	if op.method == http.MethodPost || op.method == http.MethodPut || op.method == http.MethodPatch {
		words += " -H 'Content-Type: application/json' -d '{…}'"
	}
	return []string{words + " " + moorage.ShellWord(m.uri+op.path)}
}
