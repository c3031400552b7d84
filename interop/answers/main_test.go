package main

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"moorage/testkit/answers"
)

// The client gets the server's response, and the file has one line per violation.
func TestLook(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../management/openapi.yaml")
	if err != nil {
		t.Fatal(err)
	}
	management, err := answers.Management(text)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "faults")
	file, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	j := judge{judges: []*answers.Judge{management}, faults: file}
	for body, want := range map[string]int{`{"findings":[],"next-page-token":null}`: 0, `{"findings":{}}`: 1} {
		response := &http.Response{
			Request: httptest.NewRequest("GET", "/management/v1/doctor", nil), StatusCode: http.StatusOK,
			Header: http.Header{"Content-Type": {"application/json"}}, Body: http.NoBody,
		}
		recorder := httptest.NewRecorder()
		_, _ = recorder.WriteString(body)
		response.Body = recorder.Result().Body
		if err := j.look(response); err != nil {
			t.Fatal(err)
		}
		written, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Count(string(written), "GET /management/v1/doctor answers 200"); got != want {
			t.Errorf("%s: %d faults, want %d", body, got, want)
		}
		if err := os.Truncate(path, 0); err != nil {
			t.Fatal(err)
		}
	}
}
