package management

import (
	"context"
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"

	"moorage"
	"moorage/maintenance/leases"
	"moorage/maintenance/policy"
)

// fakeWork hands out one job, or none.
type fakeWork struct {
	*fake
	none bool
}

func (f fakeWork) Assign(context.Context, moorage.Caller, leases.WorkRequest) (leases.Assignment, bool, error) {
	return leases.Assignment{
		Kind: "compaction", Lease: granted, Table: moorage.Identifier{Warehouse: "w", Namespace: moorage.Namespace{"a"}, Name: "t"},
		Rule: policy.Rule{Values: map[string]policy.Value{"strategy": {Text: "binpack"}, "targetFileSizeMB": {Number: 512 << 20}}},
	}, !f.none, f.call("Claim")
}

func (f fakeWork) Progress(context.Context, moorage.Caller, leases.Table) (leases.Granted, error) {
	return granted, f.call("Progress")
}

func (f fakeWork) Finish(context.Context, moorage.Caller, leases.Table, leases.AssignmentResult) error {
	return f.call("Finish")
}

func TestWork(t *testing.T) {
	t.Parallel()
	const path, ask, job = base + "/work", `{"kinds":["compaction"],"holder":"x"}`, "/0123456789abcdef0123456789abcdef"
	config := configOf(&fake{})
	h := newServer(t, config)
	w := send(h, "POST", path, ask)
	if body := w.Body.String(); w.Code != 200 || !strings.Contains(body, `"settings":{"strategy":"binpack","targetFileSizeMB":536870912}`) {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	config.Work = fakeWork{&fake{}, true}
	if w := send(newServer(t, config), "POST", path, ask); w.Code != 204 || w.Body.Len() > 0 {
		t.Errorf("when nothing is due: %d %s", w.Code, w.Body)
	}
	for _, tt := range []struct {
		path, body string
		status     int
	}{
		{path, `{`, 400}, {path, `{}`, 400}, {path, `{"kinds":[1],"holder":"x"}`, 400}, {path, `{"kinds":["compaction"]}`, 400},
		{path, strings.Replace(ask, "}", `,"wait-seconds":-1}`, 1), 400},
		{path + "/1/progress", `{}`, 400}, {path + "/1/finish", `{"outcome":"done"}`, 400}, {path + job + "/finish", `{}`, 400},
		{path + job + "/finish", `{"outcome":"done","files":-1}`, 400}, {path + job + "/finish", `{"outcome":"done","files":"1"}`, 400},
		{path + job + "/finish", `{"outcome":"done","files":1}`, 200}, {path + job + "/progress", ``, 200},
	} {
		if w := send(h, "POST", tt.path, tt.body); w.Code != tt.status {
			t.Errorf("%s %s: %d %s, want %d", tt.path, tt.body, w.Code, w.Body, tt.status)
		}
	}
}

// waitingWork waits for work until its context ends.
type waitingWork struct {
	fakeWork
	waiting chan struct{}
}

func (f waitingWork) Assign(ctx context.Context, _ moorage.Caller, _ leases.WorkRequest) (leases.Assignment, bool, error) {
	close(f.waiting)
	<-ctx.Done()
	return leases.Assignment{}, false, nil
}

// TestWaitForWorkEnds checks that a claim with a key ends when its client disconnects, and that a
// stopping server does not wait for it.
func TestWaitForWorkEnds(t *testing.T) {
	t.Parallel()
	for name, key := range map[string][]string{"with a key": {"Idempotency-Key", someKey}, "without a key": nil} {
		for _, stops := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, the server stops %t", name, stops), func(t *testing.T) {
				t.Parallel()
				config := configOf(&fake{})
				waiting := make(chan struct{})
				config.Work = waitingWork{fakeWork{fake: &fake{}}, waiting}
				stopping := make(chan struct{})
				config.Stopping = stopping
				h := newServer(t, config)
				ctx, leave := context.WithCancel(t.Context())
				defer leave()
				request := newRequest("POST", base+"/work", `{"kinds":["compaction"],"holder":"x","wait-seconds":60}`, key...)
				answered := make(chan int)
				go func() {
					w := httptest.NewRecorder()
					h.ServeHTTP(w, request.WithContext(ctx))
					answered <- w.Code
				}()
				<-waiting
				if stops {
					close(stopping)
				} else {
					leave()
				}
				if code := <-answered; stops && code != 204 {
					t.Errorf("answered %d, want 204", code)
				}
			})
		}
	}
}
