package management

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"moorage"
	"moorage/check"
	"moorage/maintenance/due"
	"moorage/maintenance/jobs"
	"moorage/maintenance/purge"
	"moorage/management/client"
	"moorage/recovery"
	"moorage/registry"
	"moorage/txlog"
)

// The answers of the doctor's operations, and the calls that they make.
func TestDoctor(t *testing.T) {
	t.Parallel()
	const transaction = `{"id":"a1000000000000000000000000000000","level":"bad","what":"transaction in warehouse w",` +
		`"fact":"pending, began 2026-11-21T10:00:00Z by ann, its coordinator has until 2026-11-21T10:01:00Z; 1 table: a.t; up to 2 files written, 0 published; given up after 50 attempts, last: no disk",` +
		`"remedy":"Repair the cause, then: moorage doctor retry a1000000000000000000000000000000, or end the transaction: moorage doctor abort a1000000000000000000000000000000",` +
		`"files":["f1","f2"],"until":"2026-11-21T10:01:00Z"}`
	const others = `{"id":"b2","level":"bad","what":"task, probably a purge","fact":"its record cannot be read: damaged","remedy":"The servers leave it alone. moorage doctor --deep names its table. Stop the servers and run moorage doctor forget, which removes the record and leaves the files"},` +
		`{"id":"b3","level":"ok","what":"purge of a.t in warehouse w","fact":"waits: 4.7 kB, begins 2026-11-28T10:00:00Z","remedy":"To begin it now: moorage doctor retry b3"},` +
		`{"level":"bad","what":"snapshots of table w.a.t","fact":"blocked since 0001-01-01T00:00:00Z: ","remedy":"Repair the cause, then: moorage maintain run snapshots w.a.t --by-policy"}`
	const store = `{"level":"ok","what":"store","fact":"1 warehouse, 2 namespaces, 3 tables, 4 views: no problems"}`
	listed := []string{"Unfinished", "Blocked", "Waiting", "Blockers", "List"}
	for _, row := range []struct {
		method, path string
		calls        []string
		want         string
	}{
		{"GET", "/doctor", listed, `{"findings":[` + transaction + "," + others + `],"next-page-token":null}`},
		{"GET", "/doctor?deep=false", listed, `{"findings":[` + transaction + "," + others + `],"next-page-token":null}`},
		{"GET", "/doctor?deep=true", append(slices.Clone(listed), "Check"), `{"findings":[` + transaction + "," + others + "," + store + `],"next-page-token":null}`},
		{"POST", "/doctor/a1/retry", []string{"Retry a1"}, `{"kind":"transaction","ended":false,"reason":"no disk"}`},
		{"POST", "/doctor/a1/abort", []string{"Abort a1"}, `{"kind":"transaction","was":"pending","forgotten":true,"left":["f1"]}`},
	} {
		t.Run(row.method+row.path, func(t *testing.T) {
			t.Parallel()
			f := &fake{}
			w := send(newServer(t, Config{Recovery: f, Purges: f}), row.method, base+row.path, "")
			if w.Code != http.StatusOK || w.Body.String() != row.want || !slices.Equal(f.calls, row.calls) {
				t.Errorf("%d %s after %q, want %s after %q", w.Code, w.Body, f.calls, row.want, row.calls)
			}
			f.fail = moorage.Errorf(moorage.KindUnprocessable, "Neither pending nor given up")
			wantFailure(t, send(newServer(t, Config{Recovery: f, Purges: f}), row.method, base+row.path, ""), http.StatusUnprocessableEntity, "UnprocessableEntityException")
			other := map[string]string{"GET": "POST", "POST": "GET"}[row.method]
			if w := send(newServer(t, Config{Recovery: f, Purges: f}), other, base+row.path, ""); w.Header().Get("Allow") != row.method {
				t.Errorf("%s: Allow is %q", other, w.Header().Get("Allow"))
			}
		})
	}
	wantFailure(t, send(newServer(t, Config{Recovery: &fake{}, Purges: &fake{}}), "GET", base+"/doctor?deep=perhaps", ""), 400, "BadRequestException")
}

// The findings of all sources form one list of pages. A token continues in the source in which the
// page ended.
func TestPagesOfFindings(t *testing.T) {
	t.Parallel()
	f := &fake{next: "a1"}
	h := newServer(t, Config{Recovery: f, Purges: f})
	page := func(query string) (ids []string, next string) {
		t.Helper()
		w := send(h, "GET", base+"/doctor?"+query, "")
		var answer client.FindingsPage
		if err := json.Unmarshal(w.Body.Bytes(), &answer); err != nil || w.Code != 200 {
			t.Fatalf("%d %s (%v)", w.Code, w.Body, err)
		}
		for _, found := range answer.Findings {
			ids = append(ids, found.ID)
		}
		return ids, url.QueryEscape(answer.Next())
	}
	ids, token := page("pageToken=&pageSize=2") // the fake has another transaction on every page
	if len(ids) != 2 || token == "" {
		t.Fatalf("the first page has %q, and leads to %q", ids, token)
	}
	f.next = ""
	ids, next := page("pageSize=2&pageToken=" + token)
	if len(ids) != 2 || !strings.HasPrefix(ids[0], "a1") || ids[1] != "b2" {
		t.Errorf("the second page has %q", ids)
	}
	if ids, next = page("pageSize=2&pageToken=" + next); len(ids) != 2 || ids[0] != "b3" || next != "" {
		t.Errorf("the last page has %q, and leads to %q", ids, next)
	}
	want := []moorage.Page{{Limit: 2}, {After: "a1", Limit: 1}, {After: "a1", Limit: 2}, {Limit: 1}, {Limit: 2}}
	if !slices.Equal(f.pages, want) {
		t.Errorf("asked for %+v, want %+v", f.pages, want)
	}
	wantFailure(t, send(h, "GET", base+"/doctor?pageToken=x", ""), http.StatusBadRequest, "BadRequestException")
	wantFailure(t, send(h, "GET", base+"/doctor?deep=true&pageToken="+token, ""), http.StatusBadRequest, "BadRequestException")
	wantFailure(t, send(h, "GET", base+"/roles?pageToken="+token, ""), http.StatusBadRequest, "BadRequestException")
}

// A page has 100 findings by default, and at most 1,000.
func TestSizesOfPagesOfFindings(t *testing.T) {
	t.Parallel()
	for query, want := range map[string]int{"": 100, "?pageSize=7": 7, "?pageSize=1000": 1000, "?pageSize=1001": 1000} {
		f := &fake{}
		w := send(newServer(t, Config{Recovery: f, Purges: f}), "GET", base+"/doctor"+query, "")
		if w.Code != http.StatusOK || len(f.pages) == 0 || f.pages[0].Limit != want {
			t.Errorf("%q: %d, asked for %+v, want a page of %d", query, w.Code, f.pages, want)
		}
	}
}

// The findings of each source, with the remedies.
func TestFindings(t *testing.T) {
	t.Parallel()
	began := time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC)
	table := moorage.Identifier{Warehouse: "w", Namespace: moorage.Namespace{"a"}, Name: "t"}
	entry := txlog.Entry{State: registry.StateAborted, Transaction: txlog.Transaction{ID: registry.ID{1}, Warehouse: "w", Began: began}}
	for name, tt := range map[string]struct {
		got  client.Finding
		want string
	}{
		"a transaction in progress":    {transactionFinding(recovery.Unfinished{Entry: entry}), "ok transaction in warehouse w: aborted, began 2026-11-21T10:00:00Z; 0 tables: ; up to 0 files written, 0 published|"},
		"a reason that cannot be read": {transactionFinding(recovery.Unfinished{Entry: entry, Blocker: &recovery.Blocker{Unreadable: errors.New("damaged")}}), "given up; the record with the reason cannot be read: damaged|Repair"},
		"a purge that was given up":    {blockedFinding(purge.Blocked{ID: "p", Table: table, Attempts: 50, LastError: "no bucket\nno key\nno disk\nno net\nno luck"}), "bad purge of a.t in warehouse w: given up after 50 attempts, last: no bucket; no key; no disk; and 2 more|Repair the cause, then: moorage doctor retry p"},
		"a purge of an unknown table":  {blockedFinding(purge.Blocked{ID: "p"}), "bad purge of a table whose record cannot be read: given up"},
		"a blocked job":                {blockerFinding(due.Blocker{Table: table, Kind: "orphans", Due: registry.Due{Since: began, Reason: "no disk"}}, "j"), "bad orphans of table w.a.t: blocked since 2026-11-21T10:00:00Z: no disk|Repair the cause, then: moorage doctor retry j, or end the job: moorage doctor abort j"},
		"a table with an odd name":     {blockerFinding(due.Blocker{Table: moorage.Identifier{Warehouse: "w", Namespace: table.Namespace, Name: "it's;x"}, Kind: "orphans", Due: registry.Due{Since: began}}, ""), `|Repair the cause, then: moorage maintain run orphans 'w.a.it'\''s;x' --by-policy`},
		"a quarantined job":            {blockerFinding(due.Blocker{Table: table, Kind: "orphans", Due: registry.Due{Since: began, By: "ann", Reason: "quarantined by ann: to look"}}, "j"), "warn orphans of table w.a.t: quarantined by ann: to look; since 2026-11-21T10:00:00Z, until an operator retries or cancels the job|Look at it, then: moorage maintain job retry j, or end the job: moorage maintain job cancel j"},
		"a purge of unknown size":      {waitingFinding(purge.Waiting{ID: "p", Table: table, Begins: began}), "ok purge of a.t in warehouse w: waits: begins 2026-11-21T10:00:00Z|To begin it now: moorage doctor retry p"},
	} {
		got := fmt.Sprintf("%s %s: %s|%s", tt.got.Level, tt.got.What, tt.got.Fact, tt.got.Remedy)
		if !strings.Contains(got, tt.want) {
			t.Errorf("%s: %s, want %s", name, got, tt.want)
		}
	}
	unreadable := entry
	unreadable.Unreadable = errors.New("damaged")
	if got := transactionFinding(recovery.Unfinished{Entry: unreadable}); got.Level != client.LevelBad || !strings.Contains(got.Remedy, "doctor forget") {
		t.Errorf("an unreadable transaction: %+v", got)
	}
}

// sick is a fake of a store with a problem, and with a storage that could not be checked.
type sick struct{ fake }

func (*sick) Check(context.Context) (check.Report, error) {
	return check.Report{Problems: []string{"a record is missing"}, Unread: []string{"s3://b does not answer"}}, nil
}

// Problems, unchecked storages, and the node's reports about itself become findings.
func TestProblemsAreFindings(t *testing.T) {
	t.Parallel()
	config := configOf(&fake{})
	config.Recovery = &sick{}
	config.Findings = func(context.Context) []client.Finding {
		return []client.Finding{{Level: client.LevelWarn, What: "clock", Fact: "it leapt"}}
	}
	body := send(newServer(t, config), "GET", base+"/doctor?deep=true", "").Body.String()
	for _, want := range []string{
		`{"findings":[{"level":"warn","what":"clock","fact":"it leapt"},`,
		`{"level":"bad","what":"problem","fact":"a record is missing"},{"level":"bad","what":"not checked","fact":"s3://b does not answer","remedy":"Repair the storage, and check again"},`,
		`{"level":"ok","what":"store","fact":"0 warehouses, 0 namespaces, 0 tables, 0 views: 1 problem"}],"next-page-token":null}`,
	} {
		if !strings.Contains(body, want) {
			t.Errorf("no %s in\n%s", want, body)
		}
	}
}

// A damaged record of maintenance is a finding, and does not hide other findings.
func TestDamagedMaintenance(t *testing.T) {
	t.Parallel()
	damaged := &fake{fail: moorage.Errorf(moorage.KindInternal, "decode due/x")}
	config := configOf(&fake{})
	config.Policies, config.Steering, config.Jobs = fakeCare{damaged}, fakeCare{damaged}, fakeJobs{damaged}
	body := send(newServer(t, config), "GET", base+"/doctor?deep=true", "").Body.String()
	for _, want := range []string{`"what":"maintenance","fact":"what is blocked cannot be read: `, `"remedy":"moorage doctor --deep names the record"}`, "no problems"} {
		if !strings.Contains(body, want) {
			t.Errorf("no %s in\n%s", want, body)
		}
	}
}

// Retry and abort find a job by its id, if no transaction has that id.
func TestJobsAreRetriedAndAborted(t *testing.T) {
	t.Parallel()
	id := registry.ID{0xb1}
	for action, want := range map[string]struct{ answer, call string }{
		"retry": {`{"kind":"job","ended":false}`, "Retry false"},
		"abort": {`{"kind":"job","was":"blocked","forgotten":true,"left":[]}`, "Cancel"},
	} {
		f := &fake{}
		config := configOf(f)
		config.Recovery = &withoutTransactions{}
		config.Policies, config.Steering, config.Jobs = fakeCare{f}, fakeCare{f}, oneJob{fakeJobs{f}, id}
		h := newServer(t, config)
		w := send(h, "POST", base+"/doctor/"+id.String()+"/"+action, "")
		if w.Code != 200 || w.Body.String() != want.answer || !slices.Equal(f.calls, []string{want.call}) {
			t.Errorf("%s: %d %s after %q", action, w.Code, w.Body, f.calls)
		}
		f.calls = nil
		wantFailure(t, send(h, "POST", base+"/doctor/"+registry.ID{0xb2}.String()+"/"+action, ""), 404, "NotFoundException")
		if len(f.calls) > 0 {
			t.Errorf("%s of an unknown id did %q", action, f.calls)
		}
	}
}

// withoutTransactions is a fake without unfinished transactions.
type withoutTransactions struct{ fake }

var errNothing = moorage.Errorf(moorage.KindNotFound, "Nothing unfinished has this id")

func (*withoutTransactions) Retry(context.Context, string) (recovery.Retried, error) {
	return recovery.Retried{}, errNothing
}

func (*withoutTransactions) Abort(context.Context, string) (recovery.Aborted, error) {
	return recovery.Aborted{}, errNothing
}

// oneJob is a fake with one job, which is blocked.
type oneJob struct {
	fakeJobs
	id registry.ID
}

func (o oneJob) List(context.Context, registry.ID, string, int) ([]jobs.Under, string, error) {
	return []jobs.Under{{State: registry.StateBlocked, Job: registry.Job{ID: o.id}}}, "", nil
}
