package management

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"moorage"
	"moorage/catalog/history"
	"moorage/registry"
)

// fakeHistory has one event. It records the query in notes, unless notes is nil.
type fakeHistory struct {
	notes *[]history.Query
	fail  error
}

func (f fakeHistory) Read(_ context.Context, _ moorage.Caller, q history.Query) (history.Page, error) {
	if f.notes != nil {
		*f.notes = append(*f.notes, q)
	}
	at := time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC)
	before := moorage.Identifier{Warehouse: "w", Namespace: moorage.Namespace{"a"}, Name: "old"}
	return history.Page{
		Events: []history.Event{{
			ID: "c1.0", Position: "3f9a21bc.7", Time: at, Operation: history.OpRenameTable, Verb: "rename-table", Count: 1,
			Kind: registry.ItemTable, Ident: moorage.Identifier{Warehouse: "w", Namespace: moorage.Namespace{"a"}, Name: "t"},
			Previous: &before, ObjectID: registry.ID{1}, UUID: "u", Caller: "key:etl", Client: "Spark", RequestID: "r",
			MetadataLocation: "m2", PreviousMetadataLocation: "m1",
			Actions: []string{"add-snapshot"},
			Summary: &registry.Summary{Snapshots: 2, Refs: 1, Operation: "append", Rows: 7, Files: 3, Deletes: -1, Bytes: 9, Snapshot: 5},
			Members: []registry.Member{{Principal: "key:etl", Time: at, Snapshot: 5}},
		}},
		Next: "3f9a21bc.7", First: "3f9a21bc.0", AtEnd: true,
	}, f.fail
}

// Of returns a dropped table with a change and an older version. For any object other than the
// table "t" it returns an error.
func (f fakeHistory) Of(_ context.Context, _ moorage.Caller, asked history.Asked) (history.History, error) {
	at := time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC)
	if asked.ID.IsZero() && asked.Ident.Name != "t" {
		return history.History{}, moorage.Errorf(moorage.KindNoSuchTable, "Table does not exist: %s", asked.Ident)
	}
	ident := moorage.Identifier{Warehouse: "w", Namespace: moorage.Namespace{"a"}, Name: "t"}
	rows := int64(-3)
	return history.History{
		Object: history.Object{
			ID: registry.ID{1}, Kind: registry.ItemTable, Ident: ident, UUID: "u", State: history.ObjectDropped,
			MetadataLocation: "m2", Purge: history.PurgeWaiting, EndsAt: at.Add(time.Hour),
			Dropped: registry.Dropped{At: at, By: "bob", Change: registry.ID{2}},
		},
		Versions: []history.Event{
			{
				ID: "c1.0", Time: at, Operation: history.OpUpdateTable, Count: 1, Kind: registry.ItemTable, Ident: ident,
				Version: "now", Delta: &history.Delta{Rows: &rows},
			},
			{Time: at, Kind: registry.ItemTable, Ident: ident, MetadataLocation: "m1", Version: "now~1"},
		},
		IsComplete: asked.After == "", Next: "\x00f" + asked.Ident.Name,
	}, f.fail
}

// A history in the form of the API, and the objects that its parameters can name.
func TestHistory(t *testing.T) {
	t.Parallel()
	h := newServer(t, Config{Recovery: &fake{}, Purges: &fake{}, History: fakeHistory{}})
	const named = "/history?warehouse=w&namespace=a"
	w := send(h, "GET", base+named+"&table=t", "")
	body := w.Body.String()
	const want = `{"object":{"id":"01000000000000000000000000000000","kind":"table","warehouse":"w","namespace":["a"],` +
		`"name":"t","uuid":"u","state":"dropped","metadata-location":"m2","dropped":{"at":"2026-11-21T10:00:00Z",` +
		`"by":"bob","change":"02000000000000000000000000000000","ends-at":"2026-11-21T11:00:00Z","purge":"waiting"}},` +
		`"versions":[{"id":"c1.0","time":"2026-11-21T10:00:00Z","operation":"update-table","count":1,"kind":"table",` +
		`"warehouse":"w","namespace":["a"],"name":"t","delta":{"rows":-3},"version":"now"},` +
		`{"time":"2026-11-21T10:00:00Z","kind":"table","warehouse":"w","namespace":["a"],"name":"t","metadata-location":"m1",` +
		`"version":"now~1"}],"complete":true,"next-page-token":"`
	if w.Code != http.StatusOK || !strings.HasPrefix(body, want) {
		t.Errorf("%d %s, want %s", w.Code, body, want)
	}
	token := strings.TrimSuffix(strings.TrimPrefix(body, want), `"}`)
	if w := send(h, "GET", base+named+"&table=t&pageToken="+token, ""); w.Code != http.StatusOK ||
		!strings.Contains(w.Body.String(), `"complete":false`) {
		t.Errorf("the next page: %d %s", w.Code, w.Body)
	}
	if w := send(h, "GET", base+"/history?id=01000000000000000000000000000000", ""); w.Code != http.StatusOK {
		t.Errorf("by id: %d %s", w.Code, w.Body)
	}
	for _, query := range []string{
		"", "?warehouse=w", "?object=server", "?warehouse=w&table=t", named[len("/history"):] + "&table=t&view=v", "?id=1",
		named[len("/history"):] + "&function=f", named[len("/history"):] + "&table=t&pageToken=x",
		"?warehouse=w&namespace=b&table=t&pageToken=" + token,
	} {
		wantFailure(t, send(h, "GET", base+"/history"+query, ""), 400, "BadRequestException")
	}
	wantFailure(t, send(h, "GET", base+named+"&table=none", ""), 404, "NoSuchTableException")
}

// The parameters of the feed, and an event in the form of the API.
func TestChanges(t *testing.T) {
	t.Parallel()
	const want = `{"events":[{"id":"c1.0","position":"3f9a21bc.7","time":"2026-11-21T10:00:00Z","operation":"rename-table",` +
		`"count":1,"kind":"table","warehouse":"w","namespace":["a"],"name":"t","previous":{"namespace":["a"],"name":"old"},` +
		`"object-id":"01000000000000000000000000000000","uuid":"u","caller":"key:etl","client":"Spark","request-id":"r",` +
		`"verb":"rename-table","actions":["add-snapshot"],"metadata-location":"m2","previous-metadata-location":"m1",` +
		`"summary":{"operation":"append","snapshot":5,"snapshots":2,"refs":1,"rows":7,"files":3,"bytes":9},` +
		`"members":[{"caller":"key:etl","time":"2026-11-21T10:00:00Z","snapshot":5}]}],` +
		`"next":"3f9a21bc.7","first":"3f9a21bc.0","at-end":true}`
	var notes []history.Query
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	h := newServer(t, Config{
		Recovery: &fake{}, Purges: &fake{}, History: fakeHistory{notes: &notes}, Now: func() time.Time { return now },
	})
	w := send(h, "GET", base+"/changes?after=3f9a21bc.1&limit=5&wait=10s&warehouse=w&namespace=a%1Fb&name=t&kind=table,view"+
		"&operation=drop-table&caller=key:etl,corp:ann", "")
	if w.Code != http.StatusOK || w.Body.String() != want {
		t.Errorf("%d %s, want %s", w.Code, w.Body, want)
	}
	q := notes[0]
	if q.After != "3f9a21bc.1" || q.Limit != 5 || q.Wait != 10*time.Second || q.Filter.Warehouse != "w" ||
		strings.Join(q.Filter.Namespace, "/") != "a/b" || q.Filter.Name != "t" || len(q.Filter.Kinds) != 2 ||
		len(q.Filter.Operations) != 1 || len(q.Filter.Callers) != 2 {
		t.Errorf("asked for %+v", q)
	}
	for query, from := range map[string]time.Time{"since=2h": now.Add(-2 * time.Hour), "since=2026-11-21T11:00:00Z": now.Add(-time.Hour)} {
		notes = nil
		if w := send(h, "GET", base+"/changes?"+query, ""); w.Code != http.StatusOK || !notes[0].From.Equal(from) {
			t.Errorf("%s: %d, from %s", query, w.Code, notes[0].From)
		}
	}
	notes = nil
	if w := send(h, "GET", base+"/changes?tail=3&within=50ms", ""); w.Code != http.StatusOK || notes[0].Tail != 3 ||
		notes[0].Within != 50*time.Millisecond {
		t.Errorf("within: %d, asked for %+v", w.Code, notes)
	}
	for _, query := range []string{
		"tail=0", "tail=1001", "limit=x", "wait=61s", "wait=-1s", "wait=x", "tail=1&within=0s", "tail=1&within=3s",
		"tail=1&within=x", "since=yesterday", "since=-2h", "tail=1&after=end", "since=2h&after=first",
		"colour=red", "tail=1&tail=2",
	} {
		wantFailure(t, send(h, "GET", base+"/changes?"+query, ""), 400, "BadRequestException")
	}
	gone := newServer(t, Config{
		Recovery: &fake{}, Purges: &fake{}, History: fakeHistory{fail: moorage.Errorf(moorage.KindGone, "Changes are deleted")},
	})
	wantFailure(t, send(gone, "GET", base+"/changes", ""), 410, "ChangesGoneException")
}
