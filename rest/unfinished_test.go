package rest

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"moorage"
	"moorage/catalog"
)

func (f *fakeCatalog) UnfinishedTransactions(_ context.Context, page catalog.Page) ([]catalog.UnfinishedTransaction, string, error) {
	f.pages = append(f.pages, page)
	began := time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC)
	return []catalog.UnfinishedTransaction{{
		ID: "a1", State: "pending", Warehouse: "w", Tables: []moorage.Identifier{{Warehouse: "w", Namespace: moorage.Namespace{"a"}, Name: "t"}},
		Files: []string{"f1", "f2"}, Published: []string{}, Began: began, Deadline: began.Add(time.Minute), Principal: "ann",
		Blocker: &catalog.Blocker{Since: began, Attempts: 50, LastError: "no disk"},
	}}, f.next, f.call("UnfinishedTransactions")
}

func (f *fakeCatalog) BlockedPurges(_ context.Context, page catalog.Page) ([]catalog.BlockedPurge, string, error) {
	f.pages = append(f.pages, page)
	return []catalog.BlockedPurge{{ID: "b2", Table: moorage.Identifier{Namespace: moorage.Namespace{}}, Unreadable: "damaged"}}, f.next, f.call("BlockedPurges")
}

func (f *fakeCatalog) Retry(_ context.Context, id string) (catalog.Retried, error) {
	return catalog.Retried{Kind: "transaction", Reason: "no disk"}, f.call("Retry " + id)
}

func (f *fakeCatalog) Abort(_ context.Context, id string) (catalog.Aborted, error) {
	return catalog.Aborted{Kind: catalog.UnfinishedKindTransaction, Was: "pending", Forgotten: true, Left: []string{"f1"}}, f.call("Abort " + id)
}

func TestUnfinished(t *testing.T) {
	t.Parallel()
	for _, row := range []struct{ method, path, call, want string }{
		{"GET", "/management/v1/transactions", "UnfinishedTransactions", `{"transactions":[{"id":"a1","state":"pending","warehouse":"w",` +
			`"tables":[{"warehouse":"w","namespace":["a"],"name":"t"}],"files":["f1","f2"],"published":[],"began":"2026-11-21T10:00:00Z",` +
			`"deadline":"2026-11-21T10:01:00Z","principal":"ann","blocker":{"since":"2026-11-21T10:00:00Z","attempts":50,"last-error":"no disk"}}],"next-page-token":null}`},
		{"GET", "/management/v1/blocked-purges", "BlockedPurges", `{"purges":[{"id":"b2","table":{"warehouse":"","namespace":[],"name":""},` +
			`"blocker":{"since":"0001-01-01T00:00:00Z","attempts":0,"last-error":""},"unreadable":"damaged"}],"next-page-token":null}`},
		{"POST", "/management/v1/unfinished/a1/retry", "Retry a1", `{"kind":"transaction","ended":false,"reason":"no disk"}`},
		{"POST", "/management/v1/unfinished/a1/abort", "Abort a1", `{"kind":"transaction","was":"pending","forgotten":true,"left":["f1"]}`},
	} {
		t.Run(row.path, func(t *testing.T) {
			t.Parallel()
			f := &fakeCatalog{}
			w := send(New(Config{Catalog: f}), row.method, row.path, "")
			if w.Code != http.StatusOK || w.Body.String() != row.want || !slices.Equal(f.calls, []string{row.call}) {
				t.Errorf("%d %s after %q, want %s after %q", w.Code, w.Body, f.calls, row.want, row.call)
			}
			f.fail = moorage.Errorf(moorage.KindUnprocessable, "Neither pending nor given up")
			wantFailure(t, send(New(Config{Catalog: f}), row.method, row.path, ""), http.StatusUnprocessableEntity, "UnprocessableEntityException")
			other := map[string]string{"GET": "POST", "POST": "GET"}[row.method]
			if w := send(New(Config{Catalog: f}), other, row.path, ""); w.Header().Get("Allow") != row.method {
				t.Errorf("%s: Allow is %q", other, w.Header().Get("Allow"))
			}
		})
	}
}

// The lists of the management path are paged as those of the specification are.
func TestUnfinishedPages(t *testing.T) {
	t.Parallel()
	for _, path := range []string{"/management/v1/transactions", "/management/v1/blocked-purges"} {
		t.Run(path, func(t *testing.T) {
			t.Parallel()
			f := &fakeCatalog{next: "a1"}
			h := New(Config{Catalog: f})
			w := send(h, "GET", path+"?pageToken=&pageSize=7", "")
			var answer struct {
				Token string `json:"next-page-token"`
			}
			if err := json.Unmarshal(w.Body.Bytes(), &answer); err != nil || answer.Token == "" {
				t.Fatalf("%s (%v)", w.Body, err)
			}
			send(h, "GET", path+"?pageSize=7&pageToken="+url.QueryEscape(answer.Token), "")
			want := []catalog.Page{{Limit: 7}, {After: "a1", Limit: 7}}
			if !slices.Equal(f.pages, want) {
				t.Errorf("asked for %+v, want %+v", f.pages, want)
			}
			wantFailure(t, send(h, "GET", path+"?pageToken=x", ""), http.StatusBadRequest, "BadRequestException")
			other := strings.Replace("/management/v1/transactions/management/v1/blocked-purges", path, "", 1)
			wantFailure(t, send(h, "GET", other+"?pageToken="+url.QueryEscape(answer.Token), ""), http.StatusBadRequest, "BadRequestException")
		})
	}
}
