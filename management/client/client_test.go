package client_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"moorage"
	"moorage/internal/web"
	"moorage/maintenance/purge"
	"moorage/management"
	"moorage/management/client"
	"moorage/recovery"
)

// paged has three purges, which it answers one by one, and retries nothing.
type paged struct{ management.Recovery }

func (paged) Blocked(_ context.Context, after string, _ int) ([]purge.Blocked, string, error) {
	for i, id := range []string{"a", "b", "c"} {
		if id > after {
			return []purge.Blocked{{ID: id}}, []string{"a", "b", ""}[i], nil
		}
	}
	return nil, "", nil
}

func (paged) ListWaiting(context.Context, string, int) ([]purge.Waiting, string, error) {
	return nil, "", nil
}

func (paged) Retry(context.Context, string) (recovery.Retried, error) {
	return recovery.Retried{}, moorage.Errorf(moorage.KindNotFound, "Nothing unfinished has this id")
}

// newClient returns a client of a server, and what requests for changes it has sent.
func newClient(t *testing.T) (*client.Client, *[]*http.Request) {
	t.Helper()
	server := web.New(web.Config{})
	management.Mount(server, management.Config{Operator: management.Operator{Recovery: paged{}, Purges: paged{}}})
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

// Tokens lead from page to page to the end.
func TestPages(t *testing.T) {
	t.Parallel()
	c, _ := newClient(t)
	var found []string
	for page := (client.Page{Limit: 1}); ; {
		purges, next, err := c.BlockedPurges(t.Context(), page)
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range purges {
			found = append(found, p.ID)
		}
		if page.After = next; next == "" {
			break
		}
	}
	if got := strings.Join(found, " "); got != "a b c" {
		t.Errorf("found %q", got)
	}
}

// A failure is an Error with all that the server said, and each change has a key of its own.
func TestFailures(t *testing.T) {
	t.Parallel()
	c, changes := newClient(t)
	for range 2 {
		_, err := c.Retry(t.Context(), "a/b")
		var failure *client.Error
		if !errors.As(err, &failure) {
			t.Fatal(err)
		}
		if failure.Code != 404 || failure.Type != "NotFoundException" || failure.RequestID == "" || failure.Help == "" ||
			!strings.HasSuffix(err.Error(), " answered 404 Not Found: Nothing unfinished has this id") {
			t.Errorf("%v: %+v", err, failure)
		}
	}
	first, second := (*changes)[0].Header.Get("Idempotency-Key"), (*changes)[1].Header.Get("Idempotency-Key")
	if first == "" || first == second {
		t.Errorf("the keys are %q and %q", first, second)
	}
}

// What no server of ours answers is shown as it came.
func TestForeignFailure(t *testing.T) {
	t.Parallel()
	other := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(other.Close)
	_, err := client.New(other.URL, "").Check(t.Context())
	if want := other.URL + " answered 404 Not Found: 404 page not found"; err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
}

// A server that is not there is named, without the request that went to it.
func TestNoServer(t *testing.T) {
	t.Parallel()
	gone := httptest.NewServer(http.NotFoundHandler())
	gone.Close()
	_, err := client.New(gone.URL, "").Check(t.Context())
	if err == nil || !strings.HasPrefix(err.Error(), "no server answers at "+gone.URL+": ") ||
		!strings.HasSuffix(err.Error(), "; is it running?") || strings.Contains(err.Error(), "/management") {
		t.Errorf("%v", err)
	}
}
