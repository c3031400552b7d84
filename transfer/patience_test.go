package transfer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"moorage/management/client"
)

// TestAnswersAboutNoObject: an answer that any object could get ends the run with an error. The
// next run with the journal goes on, and the result is that of a run that nothing disturbed.
func TestAnswersAboutNoObject(t *testing.T) {
	t.Parallel()
	whole := newFake("new")
	mustCarry(t, &Run{Source: lake(6), Target: whole, Jobs: 1}, "")
	for _, code := range []int{401, 407, 408, 425, 429, 502, 503, 504} {
		for _, call := range []string{"load", "check", "register"} {
			source, target := lake(6), newFake("new")
			journal := filepath.Join(t.TempDir(), "journal")
			calls := 0
			refuse := func(name string) error {
				if strings.HasPrefix(name, call) {
					if calls++; calls > 3 {
						return &client.Error{Code: code, Message: "no"}
					}
				}
				return nil
			}
			source.before, target.before = refuse, refuse
			_, _, err := carry(t.Context(), &Run{Source: source, Target: target, Jobs: 1}, journal)
			if answer, ok := errors.AsType[*client.Error](err); !ok || answer.Code != code {
				t.Errorf("%d of %s: the run ended with %v", code, call, err)
			}
			source.before, target.before = nil, nil
			plan, _ := mustCarry(t, &Run{Source: source, Target: target, Jobs: 1}, journal)
			if target.state() != whole.state() || len(plan) != 6 {
				t.Errorf("%d of %s: the next run made\n%s", code, call, target.state())
			}
		}
	}
}

// TestAnswersAboutAnObject: an answer about one object becomes its status, and the others arrive.
func TestAnswersAboutAnObject(t *testing.T) {
	t.Parallel()
	for call, want := range map[string]string{"load a.t0": "unreadable", "check a.t0": "refused", "register a.t0": "refused"} {
		for _, code := range []int{400, 403, 404, 409, 410, 422, 500} {
			source, target := lake(2), newFake("new")
			refuse := func(name string) error {
				if name == call {
					return &client.Error{Code: code, Message: "no"}
				}
				return nil
			}
			if source.before = refuse; call != "load a.t0" {
				source.before, target.before = nil, refuse
			}
			plan, _, err := carry(t.Context(), &Run{Source: source, Target: target, Jobs: 1}, "")
			if code == 500 && want == "refused" { // the target fails
				if err == nil {
					t.Errorf("%s: a target that fails refused the object: %s", call, statuses(plan))
				}
				continue
			}
			if got := statuses(plan); err != nil || got != "a.t0 "+want+", b.c.t1 new" {
				t.Errorf("%s, %d: planned %s, %v", call, code, got, err)
			}
		}
	}
}

// answering is a REST catalog in memory. It counts the requests, without that for the
// configuration.
type answering struct {
	config string // the answer about the configuration
	calls  int
	answer func(call int, r *http.Request) *http.Response
}

func (a *answering) RoundTrip(r *http.Request) (*http.Response, error) {
	if strings.HasSuffix(r.URL.Path, "/config") {
		return answerOf(200, cmp.Or(a.config, `{"endpoints":[]}`)), nil
	}
	a.calls++
	if response := a.answer(a.calls, r); response != nil {
		return response, nil
	}
	return nil, io.ErrUnexpectedEOF
}

func answerOf(code int, body string, header ...string) *http.Response {
	response := &http.Response{
		StatusCode: code, Status: http.StatusText(code), Header: make(http.Header), Body: io.NopCloser(strings.NewReader(body)),
	}
	for i := 0; i < len(header); i += 2 {
		response.Header.Set(header[i], header[i+1])
	}
	return response
}

func (a *answering) open(t *testing.T) *REST {
	t.Helper()
	c, err := OpenREST(t.Context(), Access{URI: "http://old", Token: "t", HTTP: &http.Client{Transport: a}, Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

const loadedTable = `{"metadata-location":"f","metadata":{"format-version":2,"table-uuid":"u","location":"l"}}`

// TestPatience: a request that a catalog did not carry out is repeated after the pause that the
// catalog asks for. A change is not repeated if it may have happened.
func TestPatience(t *testing.T) {
	t.Parallel()
	table := Object{Namespace: []string{"a"}, Name: "t", MetadataLocation: "f"}
	for name, tt := range map[string]struct {
		answers []*http.Response // before the last one, which is good; nil for no answer
		change  bool
		calls   int
		atLeast time.Duration
		fails   bool
	}{
		"busy":                   {answers: []*http.Response{answerOf(429, "", "Retry-After", "7"), answerOf(503, "", "Retry-After", "9")}, calls: 3, atLeast: 16 * time.Second},
		"busy, until a date":     {answers: []*http.Response{answerOf(503, "", "Retry-After", "Thu, 01 Jan 2026 00:01:00 GMT", "Date", "Thu, 01 Jan 2026 00:00:30 GMT")}, calls: 2, atLeast: 30 * time.Second},
		"busy, and no pause":     {answers: []*http.Response{answerOf(429, ""), answerOf(429, "")}, calls: 3, atLeast: 600 * time.Millisecond},
		"busy for an hour":       {answers: []*http.Response{answerOf(429, "", "Retry-After", "3600")}, calls: 1, fails: true},
		"no answer":              {answers: []*http.Response{nil, nil}, calls: 3},
		"it fails":               {answers: []*http.Response{answerOf(500, "")}, calls: 2},
		"it fails always":        {answers: repeated(500), calls: failuresMax + 1, fails: true},
		"it is busy always":      {answers: repeated(503), calls: retriesMax + 1, fails: true, atLeast: 50 * time.Second},
		"change, busy":           {answers: []*http.Response{answerOf(503, "", "Retry-After", "2"), answerOf(429, "")}, change: true, calls: 3, atLeast: 2 * time.Second},
		"change, it fails":       {answers: []*http.Response{answerOf(500, "")}, change: true, calls: 1, fails: true},
		"change, without answer": {answers: []*http.Response{nil}, change: true, calls: 1, fails: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				a := &answering{answer: func(call int, _ *http.Request) *http.Response {
					if call <= len(tt.answers) {
						return tt.answers[call-1]
					}
					return answerOf(200, loadedTable)
				}}
				c := a.open(t)
				began := time.Now()
				var err error
				if tt.change {
					err = c.Register(t.Context(), table, "")
				} else {
					_, err = c.Load(t.Context(), table)
				}
				if took := time.Since(began); (err != nil) != tt.fails || a.calls != tt.calls || took < tt.atLeast {
					t.Errorf("%d requests took %s and ended with %v; want %d, at least %s", a.calls, took, err, tt.calls, tt.atLeast)
				}
			})
		})
	}
}

// repeated returns more answers than there are repetitions.
func repeated(code int) (all []*http.Response) {
	for range 10 {
		all = append(all, answerOf(code, ""))
	}
	return all
}

// TestDenied: a catalog that refuses the caller ends the run. A 403 for one table does not.
func TestDenied(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		table, list int
		denied      bool
	}{
		"the token has ended":      {401, 401, true},
		"it has ended, with a 403": {403, 403, true},
		"then it ends":             {403, 401, true},
		"one table":                {403, 200, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := &answering{answer: func(_ int, r *http.Request) *http.Response {
				if strings.HasSuffix(r.URL.Path, "/namespaces") {
					return answerOf(tt.list, `{"namespaces":[]}`)
				}
				return answerOf(tt.table, `{"error":{"message":"go away","code":1,"type":"x"}}`)
			}}
			_, err := a.open(t).Load(t.Context(), Object{Namespace: []string{"a"}, Name: "t"})
			denied, ok := errors.AsType[*DeniedError](err)
			if ok != tt.denied || ok && !strings.Contains(denied.Error(), "http://old refuses this caller") {
				t.Errorf("the error is %v", err)
			}
			if about := aboutObject(err) != nil; about == tt.denied {
				t.Errorf("%v is about the object: %t", err, about)
			}
		})
	}
}

// TestRESTPrefix: the prefix that a catalog configures is used as clients use it: as it is. Nessie
// escapes it, that of Unity Catalog has a slash, and that of S3 Tables an escaped one.
func TestRESTPrefix(t *testing.T) {
	t.Parallel()
	for prefix, want := range map[string]string{
		"": "/v1/", "main%7Clake": "/v1/main%7Clake/", "main|lake": "/v1/main%7Clake/", "catalogs/unity": "/v1/catalogs/unity/",
		"a b": "/v1/a%20b/", "100%": "/v1/100%25/", "arn%3Abucket%2Flake": "/v1/arn%3Abucket%2Flake/",
	} {
		var path string
		a := &answering{config: `{"overrides":{"prefix":"` + prefix + `"}}`, answer: func(_ int, r *http.Request) *http.Response {
			path = r.URL.EscapedPath()
			return answerOf(200, loadedTable)
		}}
		if _, err := a.open(t).Load(t.Context(), Object{Namespace: []string{"a"}, Name: "t"}); err != nil || path != want+"namespaces/a/tables/t" {
			t.Errorf("%q: the path is %s, %v", prefix, path, err)
		}
	}
}

// TestTokenIsDrawnAgain: a catalog that does not take a token any more gets a new one, once for
// each request. A catalog that takes none ends the run.
func TestTokenIsDrawnAgain(t *testing.T) {
	t.Parallel()
	for _, takes := range []string{"Bearer 2", "Bearer none"} {
		drawn := 0
		a := &answering{answer: func(_ int, r *http.Request) *http.Response {
			switch {
			case strings.HasSuffix(r.URL.Path, "/oauth/tokens"):
				drawn++
				return answerOf(200, fmt.Sprintf(`{"access_token":"%d"}`, drawn))
			case r.Header.Get("Authorization") != takes:
				return answerOf(401, "")
			}
			return answerOf(200, loadedTable)
		}}
		c, err := OpenREST(t.Context(), Access{URI: "http://old", Credential: "a:b", HTTP: &http.Client{Transport: a}, Now: time.Now})
		if err == nil {
			_, err = c.Load(t.Context(), Object{Namespace: []string{"a"}, Name: "t"})
		}
		_, denied := errors.AsType[*DeniedError](err)
		if isKnown := takes == "Bearer 2"; isKnown != (err == nil) || isKnown == denied || drawn != 2 {
			t.Errorf("it takes %s: %d tokens were drawn, and the load ended with %v", takes, drawn, err)
		}
	}
}

// TestNoToken: a token endpoint that fails ends the run. The object of the request is not
// unreadable.
func TestNoToken(t *testing.T) {
	t.Parallel()
	for _, code := range []int{500, 502, 503} {
		synctest.Test(t, func(t *testing.T) {
			tokens := 0
			a := &answering{answer: func(_ int, r *http.Request) *http.Response {
				if strings.HasSuffix(r.URL.Path, "/oauth/tokens") {
					if tokens++; tokens > 1 {
						return answerOf(code, "")
					}
					return answerOf(200, `{"access_token":"1","expires_in":1}`)
				}
				return answerOf(200, loadedTable)
			}}
			c, err := OpenREST(t.Context(), Access{URI: "http://old", Credential: "a:b", HTTP: &http.Client{Transport: a}, Now: time.Now})
			if err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Second) // the token ends
			_, err = c.Load(t.Context(), Object{Namespace: []string{"a"}, Name: "t"})
			if err == nil || whyUnreadable(err) != "" {
				t.Errorf("%d: the load ended with %v", code, err)
			}
		})
	}
}

// TestNoCatalog: an address at which nothing answers is an error at once.
func TestNoCatalog(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		none := roundTripper(func(*http.Request) (*http.Response, error) { return nil, io.ErrUnexpectedEOF })
		_, err := OpenREST(t.Context(), Access{URI: "http://old", HTTP: &http.Client{Transport: none}, Now: time.Now})
		if took := time.Since(began); !errors.Is(err, io.ErrUnexpectedEOF) || took > 0 {
			t.Errorf("after %s: %v", took, err)
		}
	})
}

// roundTripper is a function as an http.RoundTripper.
type roundTripper func(r *http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// TestPasswordIsHidden: no error has the password in the address of a catalog, and requests have
// it.
func TestPasswordIsHidden(t *testing.T) {
	t.Parallel()
	for _, code := range []int{0, 401, 403, 404, 500} {
		for uri, credential := range map[string]string{"http://me:pw1@old": "", "http://me:pw1@[old": "", "http://me:pw1@old/x": "a:b"} {
			catalog := roundTripper(func(r *http.Request) (*http.Response, error) {
				if _, password, _ := r.BasicAuth(); credential == "" && password != "pw1" {
					t.Errorf("the password is %q", password)
				}
				if code == 0 {
					return nil, io.ErrUnexpectedEOF
				}
				return answerOf(code, ""), nil
			})
			access := Access{URI: uri, Credential: credential, HTTP: &http.Client{Transport: catalog}, Now: time.Now}
			if _, err := OpenREST(t.Context(), access); err == nil || strings.Contains(err.Error(), "pw1") {
				t.Errorf("%s, %d: %v", uri, code, err)
			}
		}
	}
}

// TestCatalogHangs: a catalog that never answers ends the run, in the end.
func TestCatalogHangs(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		catalog := roundTripper(func(r *http.Request) (*http.Response, error) {
			if strings.HasSuffix(r.URL.Path, "/config") {
				return answerOf(200, "{}"), nil
			}
			<-r.Context().Done()
			return nil, r.Context().Err()
		})
		c, err := OpenREST(t.Context(), Access{URI: "http://old", HTTP: &http.Client{Transport: catalog}, Now: time.Now})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 24*time.Hour)
		defer cancel()
		began := time.Now()
		_, err = c.Load(ctx, Object{Namespace: []string{"a"}, Name: "t"})
		if took := time.Since(began); !errors.Is(err, context.DeadlineExceeded) || took > time.Hour {
			t.Errorf("after %s: %v", took, err)
		}
	})
}
