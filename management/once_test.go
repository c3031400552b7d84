package management

import (
	"context"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
	"testing/synctest"

	"moorage"
	"moorage/management/client"
	"moorage/recovery"
)

const (
	someKey  = "017F22E2-79B0-7CC3-98C4-DC0C0C07398F"
	otherKey = "7d444840-9dc0-41d1-b245-5ffdce74fad2"
)

// backupOf returns a Backup that fails like f, and records its calls in f.
func backupOf(f *fake) func(context.Context, string) (client.Backup, error) {
	return func(_ context.Context, name string) (client.Backup, error) {
		return client.Backup{Folder: "/backups/" + name, Records: 7}, f.call("Backup " + name)
	}
}

// A change that is sent again with the same key happens only once, and gets the first answer.
func TestChangesHappenOnce(t *testing.T) {
	t.Parallel()
	f := &fake{}
	h := newServer(t, Config{Recovery: f, Purges: f, Backup: backupOf(f)})
	want := func(w *httptest.ResponseRecorder, code int, calls ...string) {
		t.Helper()
		if w.Code != code || !slices.Equal(f.calls, calls) {
			t.Errorf("%d %s after %q, want %d after %q", w.Code, w.Body, f.calls, code, calls)
		}
	}
	const path, body = "/management/v1/backup", `{"name":"monday"}`
	first := send(h, "POST", path, body, "Idempotency-Key", someKey)
	want(first, 200, "Backup monday")
	again := send(h, "POST", path, body, "Idempotency-Key", someKey)
	want(again, 200, "Backup monday")
	if first.Body.String() != again.Body.String() {
		t.Errorf("answered %s and then %s", first.Body, again.Body)
	}
	wantFailure(t, send(h, "POST", path, `{"name":"tuesday"}`, "Idempotency-Key", someKey), 422, "UnprocessableEntityException")
	wantFailure(t, send(h, "POST", "/management/v1/doctor/a1/abort", body, "Idempotency-Key", someKey), 422, "UnprocessableEntityException")
	wantFailure(t, send(h, "POST", path, body, "Idempotency-Key", "none"), 400, "BadRequestException")
	wantFailure(t, send(h, "POST", path, body, "If-Match", `"1"`), 400, "BadRequestException")
	want(send(h, "POST", path, body), 200, "Backup monday", "Backup monday")

	f.calls, f.fail = nil, moorage.Errorf(moorage.KindUnavailable, "no disk")
	wantFailure(t, send(h, "POST", path, body, "Idempotency-Key", otherKey), 503, "ServiceUnavailableException")
	f.fail = nil
	want(send(h, "POST", path, body, "Idempotency-Key", otherKey), 200, "Backup monday", "Backup monday")

	distant := httptest.NewRequest("POST", path, nil)
	distant.Header.Set("Idempotency-Key", someKey)
	w := httptest.NewRecorder()
	h.ServeHTTP(w, distant)
	wantFailure(t, w, 403, "ForbiddenException")
}

// holdingCatalog waits for a value from release before it aborts.
type holdingCatalog struct {
	fake
	release chan struct{}
}

func (f *holdingCatalog) Abort(ctx context.Context, id string) (recovery.Aborted, error) {
	<-f.release
	return f.fake.Abort(ctx, id)
}

// A request that is repeated while the first is in progress waits for the first, even if the client
// of the first has disconnected.
func TestChangesAtTheSameTime(t *testing.T) {
	t.Parallel()
	f := &holdingCatalog{}
	h := newServer(t, Config{Recovery: f, Purges: f})
	synctest.Test(t, func(t *testing.T) {
		f.release = make(chan struct{})
		ctx, leave := context.WithCancel(t.Context())
		codes := make(chan int, 2)
		for _, ctx := range []context.Context{ctx, t.Context()} {
			go func() {
				r := httptest.NewRequestWithContext(ctx, http.MethodPost, "/management/v1/doctor/a1/abort", nil)
				r.Header.Set("Idempotency-Key", someKey)
				w := httptest.NewRecorder()
				h.ServeHTTP(w, r)
				codes <- w.Code
			}()
			synctest.Wait()
		}
		leave()
		close(f.release)
		if a, b := <-codes, <-codes; a != 200 || b != 200 || !slices.Equal(f.calls, []string{"Abort a1"}) {
			t.Errorf("answered %d and %d after %q", a, b, f.calls)
		}
	})
}
