package answers_test

import (
	"net/http"
	"os"
	"strings"
	"testing"

	"moorage/testkit/answers"
)

// small is an OpenAPI file with one list, one load and one change.
const small = `
paths:
  /v1/{prefix}/things:
    get:
      responses:
        200: {$ref: "#/components/responses/things"}
  /v1/{prefix}/things/{thing}:
    get:
      responses:
        200:
          content: {application/json: {schema: {$ref: "#/components/schemas/LoadTableResult"}}}
    delete:
      responses:
        204: {description: done}
components:
  responses:
    things: {content: {application/json: {schema: {type: array, items: {type: string}}}}}
  schemas:
    LoadTableResult: {type: object, required: [metadata], properties: {metadata: {type: string, nullable: true}}}
    LoadViewResult: {type: object, properties: {metadata: {type: object}}}
    IcebergErrorResponse: {type: object, required: [error]}
`

func TestFault(t *testing.T) {
	t.Parallel()
	judge, err := answers.Specification([]byte(small))
	if err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		method, path string
		status       int
		body         string
		want         string // part of the fault; empty for no fault
	}{
		"a list":                    {"GET", "/v1/p/things", 200, `["a"]`, ""},
		"a list without prefix":     {"GET", "/v1/things", 200, `["a"]`, ""},
		"a list of numbers":         {"GET", "/v1/things", 200, `[1]`, "string"},
		"a load":                    {"GET", "/v1/things/a", 200, `{"metadata":null}`, ""},
		"a load with labels":        {"GET", "/v1/things/a", 200, `{"metadata":"m","labels":{"object-labels":{"team":"a"}}}`, ""},
		"a load with a bad label":   {"GET", "/v1/things/a", 200, `{"metadata":"m","labels":{"object-labels":{"team":1}}}`, "string"},
		"a load without metadata":   {"GET", "/v1/things/a", 200, `{}`, "missing"},
		"no JSON":                   {"GET", "/v1/things/a", 200, `{`, "EOF"},
		"a change":                  {"DELETE", "/v1/things/a", 204, "", ""},
		"a change with a body":      {"DELETE", "/v1/things/a", 204, "x", "1 bytes"},
		"a change that is 200":      {"DELETE", "/v1/things/a", 200, `{}`, "no answer 200"},
		"a failure":                 {"GET", "/v1/things/a", 404, `{"error":{}}`, ""},
		"a failure without reason":  {"GET", "/v1/things/a", 404, `{}`, "missing"},
		"an unknown path":           {"GET", "/v1/nothing", 404, `{"error":{}}`, ""},
		"an unknown path that is":   {"GET", "/v1/nothing", 200, `{}`, "no answer 200"},
		"a path of another API":     {"GET", "/metrics", 200, "x", ""},
		"a head with a body":        {"HEAD", "/v1/things/a", 200, "x", "1 bytes"},
		"a list that is unmodified": {"GET", "/v1/things", 304, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := judge.Fault(answers.Answer{
				Method: tt.method, Path: tt.path, Status: tt.status, Body: []byte(tt.body),
				Header: http.Header{"Content-Type": {"application/json"}},
			})
			if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
				t.Errorf("got %v, want %q", err, tt.want)
			}
		})
	}
}

// In the management API's file, unknown members of objects are faults.
func TestManagement(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../management/openapi.yaml")
	if err != nil {
		t.Fatal(err)
	}
	judge, err := answers.Management(text)
	if err != nil {
		t.Fatal(err)
	}
	answer := answers.Answer{
		Method: "GET", Path: "/management/v1/doctor", Status: 200, Header: http.Header{"Content-Type": {"application/json"}},
		Body: []byte(`{"findings":[],"next-page-token":null}`),
	}
	if err := judge.Fault(answer); err != nil {
		t.Error(err)
	}
	answer.Body = []byte(`{"findings":[],"next-page-token":null,"stray":1}`)
	if err := judge.Fault(answer); err == nil {
		t.Error("a stray member is no fault")
	}
}
