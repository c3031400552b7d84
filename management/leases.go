package management

import (
	"context"
	"net/http"
	"strconv"
	"time"

	"moorage"
	"moorage/catalog/gate"
	"moorage/internal/jsontext"
	"moorage/internal/web"
	"moorage/maintenance/leases"
	"moorage/management/client"
)

// Leases has the methods of *leases.Leases.
type Leases interface {
	Take(ctx context.Context, caller moorage.Caller, request leases.Request) (leases.Granted, error)
	Renew(ctx context.Context, caller moorage.Caller, ids []leases.ID) ([]leases.Granted, []leases.ID, error)
	Release(ctx context.Context, caller moorage.Caller, id leases.ID, others leases.Others) error
	ReleaseHolder(ctx context.Context, caller moorage.Caller, holder string) (int, error)
	List(ctx context.Context, filter leases.Filter, after string, limit int) ([]leases.Granted, string, error)
}

// FindTable returns the pointer of a table, and its table-uuid, if the caller may take a lease on
// the table.
type FindTable func(ctx context.Context, caller moorage.Caller, ident moorage.Identifier) (
	table leases.Table, uuid string, err error)

// takeLease grants a lease on a table. Only the body names the table, so takeLease checks the gate
// after it has read the body.
func (s *server) takeLease(r *http.Request, body []byte) (answer any, err error) {
	ident, request, unread := readLease(body)
	caller := web.CallerOf(r)
	about := gate.Request{Caller: caller, Verb: gate.TakeLease, On: []moorage.Identifier{ident}}
	err = gate.Pass(r.Context(), s.config.Gate, about, func() error {
		if unread != nil {
			return unread
		}
		var uuid string
		if request.Pointer, uuid, err = s.config.FindTable(r.Context(), caller, ident); err != nil {
			return err
		}
		granted, err := s.config.Leases.Take(r.Context(), caller, request)
		if err != nil {
			return err
		}
		lease := leaseOf(granted)
		lease.TableUUID = uuid
		answer = lease
		return nil
	})
	return answer, err
}

// readLease parses a request for a lease.
func readLease(body []byte) (ident moorage.Identifier, request leases.Request, err error) {
	f, err := web.ParseFields(body, "lease request")
	if err != nil {
		return ident, request, err
	}
	for _, name := range []string{"warehouse", "namespace", "name", "holder"} {
		f.Require(name)
	}
	ident = moorage.Identifier{Warehouse: f.Text("warehouse"), Namespace: f.Texts("namespace"), Name: f.Text("name")}
	request = leases.Request{
		Scope: f.Text("scope"), Holder: f.Text("holder"),
		TTL: secondsIn(f, "ttl-seconds"), Wait: secondsIn(f, "wait-seconds"),
	}
	if !f.Has("scope") {
		request.Scope = leases.ScopeAll
	}
	if f.Failure != nil {
		return moorage.Identifier{}, request, f.Failure
	}
	return ident, request, ident.Validate()
}

// secondsMax prevents an overflow when a client's number of seconds becomes a duration. Every
// allowed duration is shorter.
const secondsMax = 1 << 30

// secondsIn returns the member called name, or 0 if it is missing.
func secondsIn(f *web.Fields, name string) time.Duration {
	text := f.Typed(name, jsontext.Number).Bytes()
	if len(text) == 0 {
		return 0
	}
	seconds, err := strconv.ParseInt(string(text), 10, 64)
	if err != nil || seconds < 0 || seconds > secondsMax {
		f.Fail("member %q must be a whole number of seconds", name)
		return 0
	}
	return time.Duration(seconds) * time.Second
}

// renewLeases renews leases. The answer lists the leases that were lost.
func (s *server) renewLeases(r *http.Request, body []byte) (any, error) {
	f, err := web.ParseFields(body, "renewal")
	if err != nil {
		return nil, err
	}
	f.Require("leases")
	texts := f.Texts("leases")
	if f.Failure != nil {
		return nil, f.Failure
	}
	ids := make([]leases.ID, len(texts))
	for i, text := range texts {
		if ids[i], err = leases.ParseID(text); err != nil {
			return nil, err
		}
	}
	held, lost, err := s.config.Leases.Renew(r.Context(), web.CallerOf(r), ids)
	if err != nil {
		return nil, err
	}
	renewal := client.Renewal{Renewed: leasesOf(held), Lost: make([]string, len(lost))}
	for i, id := range lost {
		renewal.Lost[i] = id.String()
	}
	return renewal, nil
}

// releaseLease ends one lease.
func (s *server) releaseLease(r *http.Request, _ []byte) (any, error) {
	text, err := web.PathParam(r, "lease")
	if err != nil {
		return nil, err
	}
	id, err := leases.ParseID(text)
	if err != nil {
		return nil, err
	}
	caller := web.CallerOf(r)
	err = s.config.Leases.Release(r.Context(), caller, id, leases.OwnLeases)
	if moorage.KindOf(err) == moorage.KindForbidden && operates(r.Context(), s.config.Gate, caller) {
		err = s.config.Leases.Release(r.Context(), caller, id, leases.AnybodysLeases)
	}
	return client.Released{Released: 1}, err
}

// operates reports whether a caller may see and end other callers' leases, which takes the
// privilege operate.
func operates(ctx context.Context, authorizer gate.Authorizer, caller moorage.Caller) bool {
	return authorizer.Authorize(ctx, gate.Request{Caller: caller, Verb: gate.ListLeases}) == nil
}

// releaseLeases ends all leases of a holder.
func (s *server) releaseLeases(r *http.Request, _ []byte) (any, error) {
	holder := r.URL.Query().Get("holder")
	if holder == "" {
		return nil, moorage.Errorf(moorage.KindBadRequest, "The parameter holder is missing: whose leases are to end?")
	}
	released, err := s.config.Leases.ReleaseHolder(r.Context(), web.CallerOf(r), holder)
	return client.Released{Released: released}, err
}

// listLeases answers with a page of the leases, filtered by warehouse, holder and table if the
// request names them.
func (s *server) listLeases(w http.ResponseWriter, r *http.Request) error {
	asked := r.URL.Query()
	filter := leases.Filter{Warehouse: asked.Get("warehouse"), Holder: asked.Get("holder")}
	if id := asked.Get("table-id"); id != "" {
		if err := filter.Table.UnmarshalText([]byte(id)); err != nil {
			return moorage.Errorf(moorage.KindBadRequest, "Invalid table-id: %w", err)
		}
		if filter.Table.IsZero() { // a filter without a table lists all leases
			return moorage.Errorf(moorage.KindBadRequest, "Invalid table-id: no table has the id %s", id)
		}
	}
	find := func(ctx context.Context, page moorage.Page) ([]client.Lease, string, error) {
		held, next, err := s.config.Leases.List(ctx, filter, page.After, page.Limit)
		return leasesOf(held), next, err
	}
	return list(s, "leases", pageSizes, find, leasesPage)(w, r)
}

func leasesPage(found []client.Lease, next *string) any {
	return client.LeasesPage{Leases: found, NextPage: client.NextPage{NextPageToken: next}}
}

func leasesOf(held []leases.Granted) []client.Lease {
	all := make([]client.Lease, len(held))
	for i, granted := range held {
		all[i] = leaseOf(granted)
	}
	return all
}

func leaseOf(granted leases.Granted) client.Lease {
	return client.Lease{
		Lease: granted.ID.String(), Token: granted.Token, Scope: granted.Scope, Holder: granted.Holder,
		Principal: granted.Caller, Since: granted.Since, Expires: granted.Expires,
	}
}
