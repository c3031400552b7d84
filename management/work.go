package management

import (
	"cmp"
	"context"
	"net/http"
	"strconv"
	"time"

	"moorage"
	"moorage/internal/jsontext"
	"moorage/internal/web"
	"moorage/maintenance/leases"
	"moorage/maintenance/policy"
	"moorage/management/client"
)

// giveBackTimeout is the time for which the server tries to release the job of a disconnected
// program.
const giveBackTimeout = 5 * time.Second

// Work has the methods of *leases.Work.
type Work interface {
	Assign(ctx context.Context, caller moorage.Caller, request leases.WorkRequest) (leases.Assignment, bool, error)
	Progress(ctx context.Context, caller moorage.Caller, job leases.Table) (leases.Granted, error)
	Finish(ctx context.Context, caller moorage.Caller, job leases.Table, ended leases.AssignmentResult) error
}

// noWork is the Work of a server that hands out no jobs.
type noWork struct{}

var errNoWork = moorage.Errorf(moorage.KindUnsupported, "This server hands out no work")

func (noWork) Assign(context.Context, moorage.Caller, leases.WorkRequest) (leases.Assignment, bool, error) {
	return leases.Assignment{}, false, errNoWork
}

func (noWork) Progress(context.Context, moorage.Caller, leases.Table) (leases.Granted, error) {
	return leases.Granted{}, errNoWork
}

func (noWork) Finish(context.Context, moorage.Caller, leases.Table, leases.AssignmentResult) error {
	return errNoWork
}

// claimWork hands out a job, or answers 204.
func (s *server) claimWork(r *http.Request, body []byte) (any, error) {
	f, err := web.ParseFields(body, "request for work")
	if err != nil {
		return nil, err
	}
	f.Require("kinds")
	f.Require("holder")
	request := leases.WorkRequest{
		Kinds: f.Texts("kinds"), Holder: f.Text("holder"),
		TTL: secondsIn(f, "ttl-seconds"), Wait: secondsIn(f, "wait-seconds"),
	}
	if f.Failure != nil {
		return nil, f.Failure
	}
	claimed, found, err := s.config.Work.Assign(r.Context(), web.CallerOf(r), request)
	if err != nil {
		return nil, err
	}
	if !found {
		return nothing, nil
	}
	if r.Context().Err() != nil { // the program disconnected before it learned of its job
		return nil, giveBack(r, s.config.Work, claimed.Job)
	}
	piece := client.Work{
		Job: claimed.Job.String(), Kind: claimed.Kind, Lease: leaseOf(claimed.Lease),
		Warehouse: claimed.Table.Warehouse, Namespace: claimed.Table.Namespace, Name: claimed.Table.Name,
		TableUUID: claimed.TableUUID, Settings: make(map[string]any),
	}
	for name, value := range claimed.Rule.Values {
		piece.Settings[name] = settingOf(value)
	}
	return piece, nil
}

// giveBack releases the job that the server handed out to a program that has disconnected.
func giveBack(r *http.Request, handed Work, job leases.Table) error {
	ctx, cancel := moorage.Detached(r.Context(), giveBackTimeout)
	defer cancel()
	err := handed.Finish(ctx, web.CallerOf(r), job, leases.AssignmentResult{
		Outcome: leases.OutcomeReleased, Error: "its program went away before it learned of it",
	})
	return cmp.Or(err, r.Context().Err())
}

// settingOf returns the value of a setting: a string, or a number of milliseconds, bytes or
// objects.
func settingOf(value policy.Value) any {
	if value.Text != "" {
		return value.Text
	}
	return value.Number
}

// jobIn returns the id of the job in the path of a request.
func jobIn(r *http.Request) (id leases.Table, err error) {
	text, err := web.PathParam(r, "job")
	if err != nil {
		return id, err
	}
	if err := id.UnmarshalText([]byte(text)); err != nil {
		return id, moorage.Errorf(moorage.KindBadRequest, "Invalid id of a job %s: it is 32 hexadecimal digits",
			strconv.Quote(moorage.Cut(text, 50)))
	}
	return id, nil
}

// progressWork renews the lease of a job.
func (s *server) progressWork(r *http.Request, _ []byte) (any, error) {
	id, err := jobIn(r)
	if err != nil {
		return nil, err
	}
	renewed, err := s.config.Work.Progress(r.Context(), web.CallerOf(r), id)
	return leaseOf(renewed), err
}

// finishWork ends a job.
func (s *server) finishWork(r *http.Request, body []byte) (any, error) {
	id, err := jobIn(r)
	if err != nil {
		return nil, err
	}
	f, err := web.ParseFields(body, "end of a piece of work")
	if err != nil {
		return nil, err
	}
	f.Require("outcome")
	ended := leases.AssignmentResult{
		Outcome: f.Text("outcome"), Files: countIn(f, "files"), Bytes: countIn(f, "bytes"), Error: f.Text("error"),
	}
	if f.Failure != nil {
		return nil, f.Failure
	}
	if err := s.config.Work.Finish(r.Context(), web.CallerOf(r), id, ended); err != nil {
		return nil, err
	}
	return client.WorkEnd(ended), nil
}

// countIn returns the member called name, or 0 if it is missing.
func countIn(f *web.Fields, name string) int64 {
	text := f.Typed(name, jsontext.Number).Bytes()
	if len(text) == 0 {
		return 0
	}
	n, err := strconv.ParseInt(string(text), 10, 64)
	if err != nil || n < 0 {
		f.Fail("member %q must be a whole number", name)
	}
	return n
}
