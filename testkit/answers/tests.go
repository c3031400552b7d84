package answers

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync"
	"testing"
)

// Path returns the path of the specification's OpenAPI file. The path comes from MOORAGE_OPENAPI.
// By default, the file is in the folder "shared" next to the repository.
func Path() string {
	if path := os.Getenv("MOORAGE_OPENAPI"); path != "" {
		return path
	}
	root, err := os.Getwd()
	for err == nil && root != filepath.Dir(root) {
		if _, err := os.Stat(filepath.Join(root, "go.mod")); err == nil {
			break
		}
		root = filepath.Dir(root)
	}
	return filepath.Join(root, "..", "shared", "reference", "rest-catalog-open-api.yaml")
}

// File returns the specification's OpenAPI file. If the file is not available, File returns nil, or
// fails the test in CI.
func File(t testing.TB) []byte {
	t.Helper()
	text, err := os.ReadFile(Path())
	if os.IsNotExist(err) && os.Getenv("CI") != "true" {
		t.Logf("NOT RUN: no OpenAPI file at %s; set MOORAGE_OPENAPI", Path())
		return nil
	}
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// specification is the Judge of the specification, which the tests of a process share.
var specification = sync.OnceValues(func() (*Judge, error) {
	text, err := os.ReadFile(Path())
	if err != nil {
		return nil, err
	}
	return Specification(text)
})

// Watched wraps next. The wrapper fails t if an answer of next does not match the specification's
// OpenAPI file. If the file is not available, Watched returns next itself.
func Watched(t testing.TB, next http.Handler) http.Handler {
	t.Helper()
	if File(t) == nil {
		return next
	}
	judge, err := specification()
	if err != nil {
		t.Fatal(err)
	}
	return judge.Watch(t, next)
}

// Watch wraps next. The wrapper fails t if an answer of next does not match the file.
func (j *Judge) Watch(t testing.TB, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		recorder := httptest.NewRecorder()
		next.ServeHTTP(recorder, r)
		a := Answer{
			Method: r.Method, Path: r.URL.EscapedPath(), Status: recorder.Code,
			Header: recorder.Header(), Body: recorder.Body.Bytes(),
		}
		if err := j.Fault(a); err != nil {
			t.Errorf("%s %s answers %d %.2000s: %v", a.Method, r.URL, a.Status, a.Body, err)
		}
		for name, values := range recorder.Header() {
			w.Header()[name] = values
		}
		w.WriteHeader(recorder.Code)
		_, _ = w.Write(a.Body) // the client may be gone
	})
}
