package rest

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"moorage/catalog/vending"
	"moorage/testkit/answers"

	"go.yaml.in/yaml/v3"
)

// fact is a line of testdata/openapi.tsv, which has the facts about an operation in the
// specification's OpenAPI file.
type fact struct {
	operation, method, path string
	statuses                []string // in byte order
	schema                  string   // schema of the 200 answer, or "-" if it has none
}

func facts(t *testing.T) []fact {
	t.Helper()
	text, err := os.ReadFile("../testdata/openapi.tsv")
	if err != nil {
		t.Fatal(err)
	}
	var facts []fact
	for line := range strings.Lines(string(text)) {
		columns := strings.Split(strings.TrimSpace(line), "\t")
		if strings.HasPrefix(line, "#") {
			continue
		}
		if len(columns) != 5 {
			t.Fatalf("%d columns: %q", len(columns), line)
		}
		facts = append(facts, fact{columns[0], columns[1], columns[2], strings.Fields(columns[3]), columns[4]})
	}
	return facts
}

func factOf(t *testing.T, operation string) fact {
	t.Helper()
	for _, f := range facts(t) {
		if f.operation == operation {
			return f
		}
	}
	t.Fatalf("the specification has no operation %q", operation)
	return fact{}
}

// operationCount is the number of operations of the specification that are served.
const operationCount = 28

// The routes, and the endpoints in the configuration, are spelled as in the specification.
func TestRoutesAreTheSpecifications(t *testing.T) {
	t.Parallel()
	fake := &fakeCatalog{}
	s := NewServer(TestConfig{Catalog: fake})
	var want, offered []string
	for _, op := range s.operations() {
		f := factOf(t, op.id)
		if op.method != f.method || op.path != f.path {
			t.Errorf("%s is %s %s, want %s %s", op.id, op.method, op.path, f.method, f.path)
		}
		if op.offer != "" {
			offered = append(offered, f.method+" "+f.path)
			continue
		}
		want = append(want, f.method+" "+f.path)
	}
	if got := len(want) + len(offered); got != operationCount {
		t.Errorf("%d operations, want %d", got, operationCount)
	}
	var answer configAnswer
	body := send(s, "GET", "/v1/config", "").Body
	if err := json.Unmarshal(body.Bytes(), &answer); err != nil {
		t.Fatalf("%v: %s", err, body)
	}
	if !slices.Equal(answer.Endpoints, want) {
		t.Errorf("endpoints are %q, want %q", answer.Endpoints, want)
	}
	// If a warehouse offers a delegation, the configuration advertises the operations for it.
	fake.delegation = vending.Delegations()
	if err := json.Unmarshal(send(s, "GET", "/v1/config?warehouse=w", "").Body.Bytes(), &answer); err != nil {
		t.Fatal(err)
	}
	if want = append(want, offered...); !slices.Equal(answer.Endpoints, want) {
		t.Errorf("endpoints are %q, want %q", answer.Endpoints, want)
	}
}

// Operations of the specification that are not served do not answer by accident.
func TestOtherOperationsAreNotRouted(t *testing.T) {
	t.Parallel()
	s := NewServer(TestConfig{Catalog: &fakeCatalog{}})
	served := map[string]bool{}
	for _, op := range s.operations() {
		served[op.id] = true
	}
	for _, f := range facts(t) {
		if served[f.operation] || f.operation == "getToken" { // always routed: TestNoTokens
			continue
		}
		path := strings.NewReplacer("{", "", "}", "").Replace(f.path)
		for _, path := range []string{path, strings.Replace(path, "/prefix", "", 1)} {
			if w := send(s, f.method, path, ""); w.Code != 404 {
				t.Errorf("%s %s answers %d", f.method, path, w.Code)
			}
		}
	}
}

// openAPI returns the specification's OpenAPI file, or nil if that is not available. In CI, it
// fails the test instead.
func openAPI(t *testing.T) map[string]any {
	t.Helper()
	text := answers.File(t)
	if text == nil {
		return nil
	}
	var file map[string]any
	if err := yaml.Unmarshal(text, &file); err != nil {
		t.Fatal(err)
	}
	return file
}

// dig follows path through nested objects. It resolves references on the way, but not at the end.
func dig(file map[string]any, from any, path ...string) any {
	for {
		object, ok := from.(map[string]any)
		if !ok {
			return nil
		}
		if reference, ok := object["$ref"].(string); ok {
			from = dig(file, file, strings.Split(strings.TrimPrefix(reference, "#/"), "/")...)
			continue
		}
		if len(path) == 0 {
			return object
		}
		next := object[path[0]]
		if len(path) == 1 {
			return next
		}
		from, path = next, path[1:]
	}
}

// The facts in testdata/openapi.tsv agree with the OpenAPI file.
func TestFactsAreTheOpenAPIFiles(t *testing.T) {
	t.Parallel()
	file := openAPI(t)
	if file == nil {
		return
	}
	want := map[string]string{}
	for path, item := range file["paths"].(map[string]any) {
		for method, op := range item.(map[string]any) {
			object, ok := op.(map[string]any)
			if !ok || object["operationId"] == nil {
				continue
			}
			statuses, schema := []string{}, "-"
			responses := stringKeys(object["responses"])
			for status := range responses {
				statuses = append(statuses, status)
			}
			slices.Sort(statuses)
			if answer, ok := dig(file, responses["200"], "content", "application/json", "schema").(map[string]any); ok {
				reference := answer["$ref"].(string)
				schema = reference[strings.LastIndex(reference, "/")+1:]
			}
			operation := object["operationId"].(string)
			want[operation] = fmt.Sprint(fact{operation, strings.ToUpper(method), path, statuses, schema})
		}
	}
	got := map[string]string{}
	for _, f := range facts(t) {
		got[f.operation] = fmt.Sprint(f)
	}
	if len(got) != 35 || !maps.Equal(got, want) {
		for _, operation := range slices.Sorted(maps.Keys(want)) {
			if got[operation] != want[operation] {
				t.Errorf("have %s\nwant %s", got[operation], want[operation])
			}
		}
		t.Errorf("%d facts, the file has %d operations", len(got), len(want))
	}
}

// stringKeys returns object with its keys as strings, because statuses are numbers in the file.
func stringKeys(object any) map[string]any {
	switch object := object.(type) {
	case map[string]any:
		return object
	case map[any]any:
		keyed := make(map[string]any, len(object))
		for key, value := range object {
			keyed[fmt.Sprint(key)] = value
		}
		return keyed
	}
	return nil
}

// The answers of operations have the statuses and the shapes in the specification.
func TestAnswersAreTheSpecifications(t *testing.T) {
	t.Parallel()
	fake := &fakeCatalog{table: sampleTable(t, 3), view: sampleView(t, 3), names: []string{"x", "y"}}
	h := answers.Watched(t, NewServer(TestConfig{Catalog: fake}))
	for _, s := range samples() {
		f := factOf(t, s.operation)
		path := s.path
		if strings.HasPrefix(s.operation, "list") {
			path += "?pageToken=&pageSize=2"
			fake.next = "y"
		}
		w := send(h, s.method, path, s.body)
		if success := strconv.Itoa(w.Code); w.Code > 299 || !slices.Contains(f.statuses, success) {
			t.Errorf("%s answers %s, want one of %v", s.operation, success, f.statuses)
		}
		if w.Code == 204 && w.Body.Len() > 0 {
			t.Errorf("%s answers 204 with a body", s.operation)
		}
		for _, path := range []string{"/v1/nowhere", "/v1/namespaces/%00"} {
			send(h, "GET", path, "")
		}
	}
}
