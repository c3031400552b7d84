package client_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"

	"moorage"
	"moorage/catalog/grants"
	"moorage/internal/web"
	"moorage/management"
	"moorage/management/client"
	"moorage/testkit/loopback"
)

// paged has three roles, which it returns on pages of one role.
type paged struct{ management.Access }

func (paged) Roles(_ context.Context, page moorage.Page) ([]grants.Role, string, error) {
	for i, name := range []string{"a", "b", "c"} {
		if name > page.After {
			return []grants.Role{{Name: name}}, []string{"a", "b", ""}[i], nil
		}
	}
	return nil, "", nil
}

func (paged) DeleteRole(_ context.Context, name string) error {
	return moorage.Errorf(moorage.KindNotFound, "There is no role %s", name)
}

// newClient returns a client for a server, and the requests for changes that the client has sent.
func newClient(t *testing.T) (*client.Client, *[]*http.Request) {
	t.Helper()
	server := web.New(web.Config{})
	management.Mount(server, management.Config{Access: func(moorage.Caller) management.Access { return paged{} }})
	var changes []*http.Request
	listening := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet {
			changes = append(changes, r)
		}
		server.ServeHTTP(w, r)
	}))
	t.Cleanup(listening.Close)
	return client.New(listening.URL+"/", ""), &changes
}

var roles = client.Request{Method: http.MethodGet, Path: client.Path("roles"), Query: url.Values{"pageSize": {"1"}}}

// Pages follows the tokens from page to page, until the end or until the caller stops.
func TestPages(t *testing.T) {
	t.Parallel()
	c, _ := newClient(t)
	for enough, want := range map[string]string{"": "a b c", "b": "a b"} {
		var found []string
		err := client.Pages(t.Context(), c, roles, func(page client.RolesPage) bool {
			for _, role := range page.Roles {
				found = append(found, role.Name)
			}
			return !slices.Contains(found, enough)
		})
		if got := strings.Join(found, " "); got != want || err != nil {
			t.Errorf("found %q, %v, want %q", got, err, want)
		}
	}
}

// A failure becomes an Error with all details from the server, and each change has its own key.
func TestFailures(t *testing.T) {
	t.Parallel()
	c, changes := newClient(t)
	for range 2 {
		err := c.Do(t.Context(), client.Request{Method: http.MethodDelete, Path: client.Path("roles", "a/b")}, new(client.Done))
		var failure *client.Error
		if !errors.As(err, &failure) {
			t.Fatal(err)
		}
		if failure.Code != 404 || failure.Type != "NotFoundException" || failure.RequestID == "" || failure.Help == "" ||
			!strings.HasSuffix(err.Error(), " answered 404 Not Found: There is no role a/b") {
			t.Errorf("%v: %+v", err, failure)
		}
	}
	first, second := (*changes)[0].Header.Get("Idempotency-Key"), (*changes)[1].Header.Get("Idempotency-Key")
	if first == "" || first == second {
		t.Errorf("the keys are %q and %q", first, second)
	}
}

// The text of an answer that is not from Moorage is shown unchanged. It never means that an object
// is missing or in conflict.
func TestForeignFailure(t *testing.T) {
	t.Parallel()
	other := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(other.Close)
	err := client.New(other.URL, "").Do(t.Context(), roles, new(client.RolesPage))
	if want := other.URL + " answered 404 Not Found: 404 page not found"; err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
	for _, code := range []int{http.StatusNotFound, http.StatusConflict, http.StatusPreconditionFailed} {
		foreign, ours := client.Error{Code: code}, client.Error{Code: code, Type: "T"}
		if foreign.IsMissing() || foreign.IsConflict() || !ours.IsMissing() && !ours.IsConflict() {
			t.Errorf("%d: %+v is missing or in conflict, or %+v is not", code, foreign, ours)
		}
	}
}

// If no server answers at an address, the error contains the address, but not the request.
func TestNoServer(t *testing.T) {
	t.Parallel()
	address, err := loopback.FreeAddress()
	if err != nil {
		t.Fatal(err)
	}
	gone := "http://" + address
	err = client.New(gone, "").Do(t.Context(), roles, new(client.RolesPage))
	if err == nil || !strings.HasPrefix(err.Error(), "no server answers at "+gone+": ") ||
		!strings.HasSuffix(err.Error(), "or name one with --uri") || strings.Contains(err.Error(), "/management") {
		t.Errorf("%v", err)
	}
}

// A change whose answer is lost may have happened: the server disconnects, a proxy answers instead,
// or the answer cannot be read. For a read, the outcome is never unknown.
func TestOutcomeUnknown(t *testing.T) {
	t.Parallel()
	change := client.Request{Method: http.MethodPatch, Path: client.Path("roles", "a", "members"), Body: client.MembersChange{}}
	reading := client.Request{Method: http.MethodPost, Path: client.Path("access", "explain"), Reads: true}
	const ours = `{"error":{"message":"no","type":"ServiceUnavailableException","code":503}}`
	for name, tt := range map[string]struct {
		code      int // 0: the server disconnects
		body      string
		isUnknown bool
	}{
		"no answer":                 {0, "", true},
		"a proxy's 502":             {http.StatusBadGateway, "<html>bad gateway</html>", true},
		"a proxy's 404":             {http.StatusNotFound, "404 page not found", false},
		"a refusal of Moorage":      {http.StatusServiceUnavailable, ours, false},
		"half of an answer":         {http.StatusOK, `{"name":"a`, true},
		"an answer that is no JSON": {http.StatusOK, "hello", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				if tt.code == 0 {
					panic(http.ErrAbortHandler)
				}
				w.WriteHeader(tt.code)
				fmt.Fprint(w, tt.body)
			}))
			t.Cleanup(server.Close)
			c := client.New(server.URL, "")
			if err := c.Do(t.Context(), change, new(client.Role)); err == nil || errors.Is(err, client.ErrOutcomeUnknown) != tt.isUnknown {
				t.Errorf("a change: %v", err)
			}
			for _, asked := range []client.Request{roles, reading} {
				if err := c.Do(t.Context(), asked, new(client.RolesPage)); err == nil || errors.Is(err, client.ErrOutcomeUnknown) {
					t.Errorf("%s %s: %v", asked.Method, asked.Path, err)
				}
			}
		})
	}
	gone := client.New("http://127.0.0.1:1", "")
	if err := gone.Do(t.Context(), change, new(client.Role)); err == nil || errors.Is(err, client.ErrOutcomeUnknown) {
		t.Errorf("a change that reached no server: %v", err)
	}
}

// answering answers each request with its value as the status, and a body that contains the status.
type answering int

func (a answering) RoundTrip(r *http.Request) (*http.Response, error) {
	w := httptest.NewRecorder()
	w.WriteHeader(int(a))
	fmt.Fprintf(w, `{"error":{"message":"no %s","type":"T","code":%d}}`, r.URL.Path, int(a))
	return w.Result(), nil
}

// If the process itself answers, errors do not contain a server's address.
func TestErrorOfTheProcess(t *testing.T) {
	t.Parallel()
	err := client.Over(answering(404)).Do(t.Context(), roles, new(client.RolesPage))
	if failure, ok := errors.AsType[*client.Error](err); !ok || failure.Code != 404 || err.Error() != "no /management/v1/roles" {
		t.Errorf("%v", err)
	}
}
