package rest

import (
	"cmp"
	"context"
	"crypto/sha256"
	"net/http"
	"strings"
	"time"

	"moorage"
	"moorage/catalog"
	"moorage/catalog/gate"
	"moorage/internal/web"
)

// mutation parses a request for a change. It gets the whole body, and does not call the catalog.
type mutation func(r *http.Request, body []byte) (change, error)

// change is a function that makes the change in a parsed request. It returns the handler that
// answers the request.
type change func(ctx context.Context, c catalog.Verbs) (answer web.Handler, err error)

// silently returns a change that calls apply and answers 204.
func silently(apply func(ctx context.Context, c catalog.Verbs) error) change {
	return func(ctx context.Context, c catalog.Verbs) (web.Handler, error) {
		return func(w http.ResponseWriter, _ *http.Request) error { return web.AnswerNothing(w) }, apply(ctx, c)
	}
}

// answeringTable returns a change that answers with one version of a table.
func (s *server) answeringTable(form answerForm,
	apply func(ctx context.Context, c catalog.Verbs) (*catalog.Table, error)) change {
	return func(ctx context.Context, c catalog.Verbs) (web.Handler, error) {
		table, err := apply(ctx, c)
		return func(w http.ResponseWriter, r *http.Request) error { return s.answerTable(w, r, table, form) }, err
	}
}

// mutate returns the handler of a mutation, the operation called id. With an Idempotency-Key, the
// change is made only once, and a retry gets the first answer. That also holds if the first answer
// refused a malformed request.
//
// commits is the path parameter with the table or view that a commit changes. Another node may
// answer the commit. For all other mutations, commits is empty.
func (s *server) mutate(id, commits string, read mutation) web.Handler {
	return func(w http.ResponseWriter, r *http.Request) error {
		keyID, err := web.IdempotencyKey(r)
		if err != nil {
			return err
		}
		body, err := s.ReadBody(w, r)
		if err != nil {
			return err
		}
		key := requestKey(r, keyID, body)
		apply, unread := read(r, body)
		if unread == nil {
			var answered bool
			if key, answered = s.forwarded(w, r, commits, body, key); answered {
				return nil
			}
		}
		lease, wrong := leaseOf(r)
		asked := s.config.Catalog.For(web.CallerOf(r), key, lease)
		if unread = cmp.Or(unread, wrong); unread != nil { // a refusal does not depend on the lease
			warehouse, _ := pathWarehouse(r)
			on := moorage.Identifier{Warehouse: warehouse}
			return cmp.Or(asked.Refuse(r.Context(), gate.OfIceberg(id)[0], on, unread), unread)
		}
		answer, err := apply(r.Context(), asked)
		if err != nil {
			return err
		}
		return answer(w, r)
	}
}

// admitting returns handle, the handler of the operation called id, for callers that see the
// warehouse. Other callers are refused before a large body is read, because all requests share the
// memory for large bodies. But a request with an Idempotency-Key may repeat one that took effect
// while its caller still saw the warehouse. Only the body shows that, so the server reads the
// bodies of such requests. For these bodies, all callers that do not see the warehouse share the
// memory of one caller.
func (s *server) admitting(id string, handle web.Handler) web.Handler {
	return func(w http.ResponseWriter, r *http.Request) error {
		warehouse, err := pathWarehouse(r)
		if err != nil || !web.HasLargeBody(r) {
			return handle(w, r)
		}
		keyID, err := web.IdempotencyKey(r)
		if err != nil {
			s.HangUp(w)
			return err
		}
		if keyID != "" {
			sees, err := s.catalogFor(r).Sees(r.Context(), gate.OfIceberg(id)[0], warehouse)
			if err == nil && !sees {
				web.MarkStranger(w)
			}
			return handle(w, r)
		}
		if err := s.catalogFor(r).Admit(r.Context(), gate.OfIceberg(id)[0], warehouse); err != nil {
			s.HangUp(w)
			return err
		}
		return handle(w, r)
	}
}

// leaseHeader names the lease that the caller must hold when the change happens.
const leaseHeader = "X-Moorage-Lease"

// leaseOf returns the lease in leaseHeader, or nil if the header is absent. An empty or repeated
// header is an error.
func leaseOf(r *http.Request) (*catalog.Lease, error) {
	values := r.Header.Values(leaseHeader)
	switch {
	case len(values) == 0:
		return nil, nil
	case len(values) > 1:
		return nil, moorage.Errorf(moorage.KindBadRequest, "Invalid %s: the header is repeated", leaseHeader)
	}
	lease, err := catalog.ParseLease(values[0])
	return &lease, err
}

// bindKey returns the key id, bound to the parts that distinguish the request r from other requests
// with the same id.
func bindKey(r *http.Request, id string, body []byte) *catalog.Key {
	warehouse, _ := pathWarehouse(r) // a malformed warehouse is part of the path, which is bound too
	path := web.EscapedPath(r.URL)
	if r.URL.RawQuery != "" {
		path += "?" + r.URL.RawQuery
	}
	return &catalog.Key{ID: id, Warehouse: warehouse, Method: r.Method, Path: path, Body: sha256.Sum256(body)}
}

// isoDuration formats a duration as ISO 8601: PT30M, PT1H0M5S.
func isoDuration(d time.Duration) string {
	text := strings.ToUpper(d.Round(time.Second).String())
	if whole, ok := strings.CutSuffix(text, "M0S"); ok {
		text = whole + "M"
	}
	if whole, ok := strings.CutSuffix(text, "H0M"); ok {
		text = whole + "H"
	}
	return "PT" + text
}
