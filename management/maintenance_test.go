package management

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"testing"

	"moorage"
	"moorage/catalog"
	"moorage/catalog/gate"
	"moorage/maintenance/due"
	"moorage/maintenance/jobs"
	"moorage/maintenance/policy"
	"moorage/management/client"
	"moorage/metadata"
	"moorage/registry"
)

// fakeCare answers in the way of fake, and records its calls.
type fakeCare struct{ *fake }

func (f fakeCare) Find(context.Context, gate.Verb, moorage.Identifier) (catalog.Scope, error) {
	return catalog.Scope{Name: registry.ScopeServer}, f.call("Find")
}

func (f fakeCare) Change(context.Context, gate.Verb, moorage.Identifier,
	func(context.Context, catalog.Scope) (catalog.Beside, error)) error {
	return f.call("Change")
}

func (f fakeCare) Put(_ context.Context, _ policy.Scopes, ident moorage.Identifier, asked policy.Asked, match policy.Match) error {
	if !acceptsSaid(asked.Type, match) {
		return moorage.Errorf(moorage.KindPreconditionFailed, "it has changed")
	}
	f.asked(string(asked.Type), string(asked.Status), ident.String())
	return f.call("Put")
}

func (f fakeCare) asked(texts ...string) { _ = f.call(strings.Join(texts, " ")) }

func (f fakeCare) Delete(_ context.Context, _ policy.Scopes, _ moorage.Identifier, t policy.Type, match policy.Match) error {
	if !acceptsSaid(t, match) {
		return moorage.Errorf(moorage.KindPreconditionFailed, "it has changed")
	}
	return f.call("Delete")
}

var said = map[policy.Type]policy.Said{policy.SnapshotManagement: {
	Job: policy.Job{Status: policy.Enabled, Settings: policy.Settings{policy.MaxSnapshotAgeHours: "7", policy.Files: "keep"}}, By: "ann",
}}

// acceptsSaid reports whether match accepts the policy in said, or that there is none.
func acceptsSaid(t policy.Type, match policy.Match) bool {
	if present, ok := said[t]; ok {
		return match(&present)
	}
	return match(nil)
}

func (f fakeCare) Of(context.Context, catalog.Scope) (map[policy.Type]policy.Said, error) {
	return said, f.call("Of")
}

func (f fakeCare) List(_ context.Context, page moorage.Page) ([]policy.ScopeSaid, string, error) {
	f.asked(page.After)
	return []policy.ScopeSaid{{Scope: registry.ScopeServer, Said: said}}, "", f.call("ListPolicies")
}

func (f fakeCare) NoDeletions(moorage.Identifier) catalog.Requires {
	return func(context.Context, registry.ID) ([]registry.Condition, error) { return nil, nil }
}

func (f fakeCare) Status(context.Context, policy.Scopes, moorage.Identifier) (due.Status, error) {
	rules := policy.Effective([]policy.Policy{{
		Source: policy.Source{Level: policy.LevelWarehouse, Name: "main"},
		Jobs:   map[policy.Type]policy.Job{policy.SnapshotManagement: said[policy.SnapshotManagement].Job},
	}}, nil)
	status := due.Status{
		Said: said, Pauses: []registry.Pause{{Scope: registry.ScopeServer, Reason: "why"}}, Runs: []registry.Run{{Kind: "snapshots"}},
	}
	for _, t := range policy.Types() {
		status.Kinds = append(status.Kinds, due.KindStatus{Rule: rules[t]})
	}
	return status, f.call("Status")
}

func (f fakeCare) Run(context.Context, policy.Scopes, moorage.Identifier, policy.Kind) error {
	return f.call("Run")
}

func (f fakeCare) Begin(context.Context, policy.Scopes, moorage.Identifier, due.JobRequest) (jobs.Began, error) {
	return jobs.Began{Snapshots: 3}, f.call("Begin")
}

func (f fakeCare) Plan(_ context.Context, _ policy.Scopes, _ moorage.Identifier, kind policy.Kind, asked due.JobRequest, sample int) (jobs.DryRun, error) {
	f.asked("Plan", string(kind), fmt.Sprint(asked.Snapshots != nil, asked.Orphans != nil, sample))
	run := jobs.DryRun{Reach: "full", Files: 2, Sample: []jobs.Listed{{Path: "file:///a"}}, Kept: []registry.KeptOf{{Reason: "outside", Files: 1}}}
	run.Expiry = metadata.Expiry{Refs: []string{"old"}, Snapshots: []metadata.Snapshot{{ID: 1, TimestampMS: 1000}}, Kept: []metadata.KeptSnapshot{{ID: 2, Why: "head"}}}
	return run, f.call("Plan")
}

func (f fakeCare) Leftovers(_ context.Context, _ policy.Scopes, warehouse string, asked jobs.LeftoverSettings, sample int) (jobs.DryRun, error) {
	f.asked("Leftovers", warehouse, asked.OlderThan.String(), fmt.Sprint(asked.Unsafe, sample))
	return jobs.DryRun{Reach: "full", Files: 1, More: true, LeftOut: []string{"file:///w/b"}}, f.call("Leftovers")
}

func (f fakeCare) Pause(context.Context, policy.Scopes, moorage.Identifier, string, string) error {
	return f.call("Pause")
}

func (f fakeCare) Resume(context.Context, policy.Scopes, moorage.Identifier) error {
	return f.call("Resume")
}

func (f fakeCare) Rescan(context.Context, policy.Scopes, moorage.Identifier) error {
	return f.call("Rescan")
}

func (f fakeCare) Preview(_ context.Context, _ policy.Scopes, ident moorage.Identifier, asked policy.Asked, after string, limit int) ([]due.Preview, string, error) {
	f.asked("Preview", string(asked.Type), string(asked.Status), ident.String(), fmt.Sprint(after, limit))
	table := moorage.Identifier{Warehouse: "w", Namespace: moorage.Namespace{"a"}, Name: "t"}
	run := jobs.DryRun{Files: 5, Bytes: 7, Blocked: "why"}
	run.Expiry = metadata.Expiry{Refs: []string{"old"}, Snapshots: make([]metadata.Snapshot, 3)}
	return []due.Preview{{Table: table, Run: run}, {Table: table, Nothing: "no"}, {Table: table, Due: true, Files: -1}}, f.next, f.call("Preview")
}

func (f fakeCare) Blockers(context.Context, string, int) ([]due.Blocker, string, error) {
	return []due.Blocker{{Kind: "snapshots", Table: moorage.Identifier{Warehouse: "w", Namespace: moorage.Namespace{"a"}, Name: "t"}}}, f.next, f.call("Blockers")
}

type fakeJobs struct{ *fake }

func (f fakeJobs) List(context.Context, registry.ID, string, int) ([]jobs.Under, string, error) {
	return []jobs.Under{{State: registry.StateWaiting}}, f.next, f.call("List")
}

func (f fakeJobs) Cancel(context.Context, registry.ID, string) error { return f.call("Cancel") }
func (f fakeJobs) Pause(context.Context, registry.ID, string, string) error {
	return f.call("PauseJob")
}
func (f fakeJobs) Resume(context.Context, registry.ID) error     { return f.call("ResumeJob") }
func (f fakeJobs) Adopt(context.Context, string) (string, error) { return "other", f.call("Adopt") }
func (f fakeJobs) Files(_ context.Context, _ registry.ID, skip, limit int) ([]jobs.Listed, error) {
	files := []jobs.Listed{{Path: "file:///a"}, {Path: "file:///b"}, {Path: "file:///c"}}
	return files[min(skip, 3):min(skip+limit, 3)], f.call("Files")
}

func (f fakeJobs) Retry(_ context.Context, _ registry.ID, how jobs.Retrying) error {
	return f.call(fmt.Sprint("Retry ", how.Confirmed))
}
func (f fakeJobs) Quarantine(context.Context, registry.ID, string, string) error {
	return f.call("Quarantine")
}

// An invalid policy is refused, and changes nothing.
func TestBadPolicies(t *testing.T) {
	t.Parallel()
	const path = "/management/v1/maintenance/policies/"
	for name, tt := range map[string]struct {
		path, body string
		status     int
		kind       string
	}{
		"no such type":         {"icebergSorting?object=server", `{"status":"enabled"}`, 404, "NotFoundException"},
		"no object":            {"icebergCompaction", `{"status":"enabled"}`, 400, "BadRequestException"},
		"a view":               {"icebergCompaction?warehouse=w&namespace=a&view=v", `{"status":"enabled"}`, 400, "IllegalArgumentException"},
		"no status":            {"icebergCompaction?object=server", `{}`, 400, "BadRequestException"},
		"settings of another":  {"icebergCompaction?object=server", `{"status":"enabled","settings":{"icebergSnapshotManagement":{}}}`, 400, "BadRequestException"},
		"settings as a list":   {"icebergCompaction?object=server", `{"status":"enabled","settings":[]}`, 400, "BadRequestException"},
		"a setting as a list":  {"icebergCompaction?object=server", `{"status":"enabled","settings":{"icebergCompaction":{"minInputFiles":[]}}}`, 400, "BadRequestException"},
		"settings of no type":  {"icebergCompaction?object=server", `{"status":"enabled","settings":{"icebergCompaction":7}}`, 400, "BadRequestException"},
		"unsafe is not a bool": {"icebergCompaction?object=server", `{"status":"enabled","unsafe":1}`, 400, "BadRequestException"},
	} {
		f := &fake{}
		w := send(newServer(t, configOf(f)), "PUT", path+tt.path, tt.body)
		if wantFailure(t, w, tt.status, tt.kind); len(f.calls) > 0 {
			t.Errorf("%s: %q", name, f.calls)
		}
	}
}

// The status contains each effective value, with the level that it comes from.
func TestStatusSaysWhoSaysSo(t *testing.T) {
	t.Parallel()
	var status client.MaintenanceStatus
	w := send(newServer(t, configOf(&fake{})), "GET", "/management/v1/maintenance/status?warehouse=w", "")
	if err := json.Unmarshal(w.Body.Bytes(), &status); err != nil {
		t.Fatalf("%d %s: %v", w.Code, w.Body, err)
	}
	snapshots := status.Kinds[1]
	want := map[string]client.MaintenanceValue{
		policy.MaxSnapshotAgeHours: {Value: "7", From: "warehouse main"},
		policy.MinSnapshotsToKeep:  {Value: "1", From: "default"},
		policy.Files:               {Value: "keep", From: "warehouse main"},
	}
	for name, value := range want {
		if snapshots.Settings[name] != value {
			t.Errorf("%s is %+v, want %+v", name, snapshots.Settings[name], value)
		}
	}
	if snapshots.State != "Paused" || status.Kinds[0].State != "Disabled" || snapshots.From != "warehouse main" {
		t.Errorf("the kinds are %+v", status.Kinds)
	}
}

// All settings of a job that an operator begins are read, and an invalid request changes nothing.
func TestByHand(t *testing.T) {
	t.Parallel()
	const object = `"object":{"warehouse":"w","namespace":["a"],"table":"t"}`
	for name, tt := range map[string]struct {
		path, body string
		status     int
		want       string // the expected calls
	}{
		"a plan by the policies":   {"plan", `{` + object + `,"kind":"orphans","sample":7}`, 200, "Plan orphans false false 7,Plan"},
		"a plan with settings":     {"plan", `{` + object + `,"kind":"snapshots","settings":{"delay-seconds":0}}`, 200, "Plan snapshots true false 0,Plan"},
		"a plan of orphans":        {"plan", `{` + object + `,"kind":"orphans","settings":{}}`, 200, "Plan orphans false true 0,Plan"},
		"leftovers":                {"plan", `{"object":{"warehouse":"w"},"kind":"orphans","sample":3}`, 200, "Leftovers w 168h0m0s false 3,Leftovers"},
		"leftovers with settings":  {"plan", `{"object":{"warehouse":"w"},"kind":"orphans","settings":{"older-than-seconds":60,"unsafe":true}}`, 200, "Leftovers w 1m0s true 0,Leftovers"},
		"leftovers of a job":       {"plan", `{"object":{"warehouse":"w"},"kind":"orphans","settings":{"quarantine-seconds":60}}`, 400, ""},
		"an unsafe table":          {"plan", `{` + object + `,"kind":"orphans","settings":{"unsafe":true}}`, 400, ""},
		"a run by the policies":    {"run", `{` + object + `,"kind":"compaction"}`, 200, "Run"},
		"a run with settings":      {"run", `{` + object + `,"kind":"snapshots","settings":{"min-snapshots":2}}`, 200, "Begin"},
		"settings of orphans":      {"run", `{` + object + `,"kind":"snapshots","settings":{"confirm":true}}`, 400, ""},
		"settings of compaction":   {"run", `{` + object + `,"kind":"compaction","settings":{}}`, 400, ""},
		"a fraction of a second":   {"run", `{` + object + `,"kind":"snapshots","settings":{"delay-seconds":1.5}}`, 400, ""},
		"a time below zero":        {"run", `{` + object + `,"kind":"snapshots","settings":{"delay-seconds":-1}}`, 400, ""},
		"a time that is too long":  {"run", `{` + object + `,"kind":"snapshots","settings":{"delay-seconds":99999999999}}`, 400, ""},
		"a number that is a text":  {"run", `{` + object + `,"kind":"snapshots","settings":{"min-snapshots":"2"}}`, 400, ""},
		"no snapshot at all":       {"run", `{` + object + `,"kind":"snapshots","settings":{"min-snapshots":0}}`, 400, ""},
		"too large a sample":       {"plan", `{` + object + `,"kind":"orphans","sample":1001}`, 400, ""},
		"a view":                   {"plan", `{"object":{"warehouse":"w","namespace":["a"],"view":"v"},"kind":"orphans"}`, 400, ""},
		"no warehouse to adopt":    {"adopt", `{}`, 400, ""},
		"a pause without a reason": {"jobs/0123456789abcdef0123456789abcdef/pause", `{}`, 400, ""},
		"a cancel with confirm":    {"jobs/0123456789abcdef0123456789abcdef/cancel", `{"confirm":true}`, 400, ""},
		"a retry":                  {"jobs/0123456789abcdef0123456789abcdef/retry", "", 200, "Retry false"},
		"a retry with confirm":     {"jobs/0123456789abcdef0123456789abcdef/retry", `{"confirm":true}`, 200, "Retry true"},
		"a retry with a text":      {"jobs/0123456789abcdef0123456789abcdef/retry", `{"confirm":"yes"}`, 400, ""},
	} {
		f := &fake{}
		w := send(newServer(t, configOf(f)), "POST", "/management/v1/maintenance/"+tt.path, tt.body)
		if got := strings.Join(f.calls, ","); w.Code != tt.status || got != tt.want {
			t.Errorf("%s: %d %s, calls %q, want %d, %q", name, w.Code, w.Body, got, tt.status, tt.want)
		}
	}
}

// The token of a page of files is the number of files before it.
func TestPagesOfFiles(t *testing.T) {
	t.Parallel()
	server := newServer(t, configOf(&fake{}))
	var all []string
	for token := ""; ; {
		var page client.MaintenanceFilesPage
		w := send(server, "GET", "/management/v1/maintenance/jobs/"+strings.Repeat("a", 32)+"/files?pageSize=2&pageToken="+token, "")
		if err := json.Unmarshal(w.Body.Bytes(), &page); err != nil || w.Code != 200 {
			t.Fatalf("%d %s: %v", w.Code, w.Body, err)
		}
		all = append(all, page.Files...)
		if token = url.QueryEscape(page.Next()); token == "" {
			break
		}
	}
	if got := strings.Join(all, " "); got != "file:///a file:///b file:///c" {
		t.Errorf("the files are %q", got)
	}
}
