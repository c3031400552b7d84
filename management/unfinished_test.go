package management

import (
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"testing"

	"moorage/management/client"

	"moorage"
)

func TestUnfinished(t *testing.T) {
	t.Parallel()
	for _, row := range []struct{ method, path, call, want string }{
		{"GET", "/management/v1/transactions", "Unfinished", `{"transactions":[{"id":"a1000000000000000000000000000000","state":"pending","warehouse":"w",` +
			`"tables":[{"warehouse":"w","namespace":["a"],"name":"t"}],"files":["f1","f2"],"published":[],"began":"2026-11-21T10:00:00Z",` +
			`"deadline":"2026-11-21T10:01:00Z","principal":"ann","blocker":{"since":"2026-11-21T10:00:00Z","attempts":50,"last-error":"no disk"}}],"next-page-token":null}`},
		{"GET", "/management/v1/blocked-purges", "Blocked", `{"purges":[{"id":"b2","table":{"warehouse":"","namespace":[],"name":""},` +
			`"blocker":{"since":"0001-01-01T00:00:00Z","attempts":0,"last-error":""},"unreadable":"damaged"}],"next-page-token":null}`},
		{"GET", "/management/v1/tasks", "Blocked", `{"tasks":[{"id":"b2","table":{"warehouse":"","namespace":[],"name":""},` +
			`"blocker":{"since":"0001-01-01T00:00:00Z","attempts":0,"last-error":""},"unreadable":"damaged"}],"next-page-token":null}`},
		{"GET", "/management/v1/waiting-purges", "Waiting", `{"purges":[{"id":"b3","table":{"warehouse":"w","namespace":["a"],"name":"t"},` +
			`"begins":"2026-11-28T10:00:00Z","bytes":4711}],"next-page-token":null}`},
		{"POST", "/management/v1/transactions/a1/retry", "Retry a1", `{"kind":"transaction","ended":false,"reason":"no disk"}`},
		{"POST", "/management/v1/transactions/a1/abort", "Abort a1", `{"kind":"transaction","was":"pending","forgotten":true,"left":["f1"]}`},
		{"POST", "/management/v1/tasks/a1/retry", "Retry a1", `{"kind":"transaction","ended":false,"reason":"no disk"}`},
		{"POST", "/management/v1/tasks/a1/abort", "Abort a1", `{"kind":"transaction","was":"pending","forgotten":true,"left":["f1"]}`},
		{"POST", "/management/v1/unfinished/a1/retry", "Retry a1", `{"kind":"transaction","ended":false,"reason":"no disk"}`},
		{"POST", "/management/v1/unfinished/a1/abort", "Abort a1", `{"kind":"transaction","was":"pending","forgotten":true,"left":["f1"]}`},
	} {
		t.Run(row.path, func(t *testing.T) {
			t.Parallel()
			f := &fake{}
			w := send(newServer(t, Config{Operator: operatorOf(f)}), row.method, row.path, "")
			if w.Code != http.StatusOK || w.Body.String() != row.want || !slices.Equal(f.calls, []string{row.call}) {
				t.Errorf("%d %s after %q, want %s after %q", w.Code, w.Body, f.calls, row.want, row.call)
			}
			f.fail = moorage.Errorf(moorage.KindUnprocessable, "Neither pending nor given up")
			wantFailure(t, send(newServer(t, Config{Operator: operatorOf(f)}), row.method, row.path, ""), http.StatusUnprocessableEntity, "UnprocessableEntityException")
			other := map[string]string{"GET": "POST", "POST": "GET"}[row.method]
			if w := send(newServer(t, Config{Operator: operatorOf(f)}), other, row.path, ""); w.Header().Get("Allow") != row.method {
				t.Errorf("%s: Allow is %q", other, w.Header().Get("Allow"))
			}
		})
	}
}

// The lists of the management path are paged as those of the specification are.
func TestUnfinishedPages(t *testing.T) {
	t.Parallel()
	for _, path := range []string{"/management/v1/transactions", "/management/v1/blocked-purges", "/management/v1/tasks", "/management/v1/waiting-purges"} {
		t.Run(path, func(t *testing.T) {
			t.Parallel()
			f := &fake{next: "a1"}
			h := newServer(t, Config{Operator: operatorOf(f)})
			w := send(h, "GET", path+"?pageToken=&pageSize=7", "")
			var answer struct {
				Token string `json:"next-page-token"`
			}
			if err := json.Unmarshal(w.Body.Bytes(), &answer); err != nil || answer.Token == "" {
				t.Fatalf("%s (%v)", w.Body, err)
			}
			send(h, "GET", path+"?pageSize=7&pageToken="+url.QueryEscape(answer.Token), "")
			send(h, "GET", path, "")
			send(h, "GET", path+"?pageToken=&pageSize=9999", "")
			want := []client.Page{{Limit: 7}, {After: "a1", Limit: 7}, {Limit: 100}, {Limit: 1000}}
			if path == "/management/v1/blocked-purges" {
				want[2].Limit = 0 // all at once
			}
			if !slices.Equal(f.pages, want) {
				t.Errorf("asked for %+v, want %+v", f.pages, want)
			}
			wantFailure(t, send(h, "GET", path+"?pageToken=x", ""), http.StatusBadRequest, "BadRequestException")
			other := "/management/v1/tasks"
			if path == other {
				other = "/management/v1/transactions"
			}
			wantFailure(t, send(h, "GET", other+"?pageToken="+url.QueryEscape(answer.Token), ""), http.StatusBadRequest, "BadRequestException")
		})
	}
}
