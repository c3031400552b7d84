package rest

import (
	"cmp"
	"context"
	"crypto/sha256"
	"net/http"
	"strings"
	"time"

	"moorage/catalog"
	"moorage/internal/web"
)

// mutation reads a request that changes something. It gets the whole body, and asks the catalog
// nothing.
type mutation func(r *http.Request, body []byte) (change, error)

// change is a mutation that was read: the call of the catalog that makes it, and how its outcome is
// answered.
type change struct {
	apply  func(ctx context.Context, c catalog.Verbs) (catalog.Outcome, error)
	answer func(w http.ResponseWriter, r *http.Request, outcome catalog.Outcome) error
}

// silently is a change that answers 204.
func silently(apply func(ctx context.Context, c catalog.Verbs) error) change {
	return change{
		func(ctx context.Context, c catalog.Verbs) (catalog.Outcome, error) {
			return catalog.Outcome{}, apply(ctx, c)
		},
		func(w http.ResponseWriter, _ *http.Request, _ catalog.Outcome) error { return web.AnswerNothing(w) },
	}
}

// answeringTable is a change that answers one version of a table.
func (s *server) answeringTable(form answerForm,
	apply func(ctx context.Context, c catalog.Verbs) (*catalog.Table, error)) change {
	return change{
		func(ctx context.Context, c catalog.Verbs) (catalog.Outcome, error) {
			table, err := apply(ctx, c)
			return catalog.Outcome{Table: table}, err
		},
		func(w http.ResponseWriter, r *http.Request, outcome catalog.Outcome) error {
			return s.answerTable(w, r, outcome.Table, form)
		},
	}
}

// mutate returns the handler of a mutation. With an Idempotency-Key it happens once, and a request
// that is sent again is answered as it was before, also if it could not even be read.
func (s *server) mutate(read mutation) web.Handler {
	return func(w http.ResponseWriter, r *http.Request) error {
		id, err := web.IdempotencyKey(r)
		if err != nil {
			return err
		}
		body, err := s.ReadBody(w, r)
		if err != nil {
			return err
		}
		asked, unread := read(r, body)
		apply := func(ctx context.Context, c catalog.Verbs) (catalog.Outcome, error) {
			if unread != nil {
				return catalog.Outcome{}, unread
			}
			return asked.apply(ctx, c)
		}
		var outcome catalog.Outcome
		if id == "" {
			outcome, err = apply(r.Context(), s.catalog)
		} else {
			outcome, err = s.catalog.Once(r.Context(), bindKey(r, id, body), apply)
		}
		if err := cmp.Or(err, unread); err != nil {
			return err
		}
		return asked.answer(w, r, outcome)
	}
}

// bindKey returns the key id with what tells the request r from others that are sent with it.
func bindKey(r *http.Request, id string, body []byte) catalog.Key {
	warehouse, _ := pathWarehouse(r) // a malformed one is part of the outcome, and stands in the path
	path := web.EscapedPath(r.URL)
	if r.URL.RawQuery != "" {
		path += "?" + r.URL.RawQuery
	}
	return catalog.Key{ID: id, Warehouse: warehouse, Method: r.Method, Path: path, Body: sha256.Sum256(body)}
}

// isoDuration spells a duration as ISO 8601 does: PT30M, PT1H0M5S.
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
