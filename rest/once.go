package rest

import (
	"cmp"
	"context"
	"crypto/sha256"
	"net/http"
	"strings"
	"time"

	"github.com/google/uuid"

	"moorage"
	"moorage/catalog"
)

// mutation reads a request that changes something, of which body is the whole body. It asks the catalog nothing.
type mutation func(r *http.Request, body []byte) (change, error)

// change is a mutation that was read: the call of the catalog that makes it, and how its outcome is answered.
type change struct {
	apply  func(ctx context.Context) (catalog.Outcome, error)
	answer func(w http.ResponseWriter, r *http.Request, outcome catalog.Outcome) error
}

// silently is a change that answers 204.
func silently(apply func(ctx context.Context) error) change {
	return change{
		func(ctx context.Context) (catalog.Outcome, error) { return catalog.Outcome{}, apply(ctx) },
		func(w http.ResponseWriter, _ *http.Request, _ catalog.Outcome) error { return answerNothing(w) },
	}
}

// answeringTable is a change that answers one version of a table.
func (s *server) answeringTable(form answerForm, apply func(ctx context.Context) (*catalog.Table, error)) change {
	return change{
		func(ctx context.Context) (catalog.Outcome, error) {
			table, err := apply(ctx)
			return catalog.Outcome{Table: table}, err
		},
		func(w http.ResponseWriter, r *http.Request, outcome catalog.Outcome) error {
			return s.answerTable(w, r, outcome.Table, form)
		},
	}
}

// mutate returns the handler of a mutation. With an Idempotency-Key it happens once, and a request that is
// sent again is answered as it was before, also if it could not even be read.
func (s *server) mutate(read mutation) handler {
	return func(w http.ResponseWriter, r *http.Request) error {
		id, err := idempotencyKey(r)
		if err != nil {
			return err
		}
		body, err := s.readBody(w, r)
		if err != nil {
			return err
		}
		asked, unread := read(r, body)
		apply := func(ctx context.Context) (catalog.Outcome, error) {
			if unread != nil {
				return catalog.Outcome{}, unread
			}
			return asked.apply(ctx)
		}
		var outcome catalog.Outcome
		if id == "" {
			outcome, err = apply(r.Context())
		} else {
			outcome, err = s.catalog.Once(r.Context(), bindKey(r, id, body), apply)
		}
		if err := cmp.Or(err, unread); err != nil {
			return err
		}
		return asked.answer(w, r, outcome)
	}
}

// uuidBytes is the length of a UUID in its usual form, which package uuid reads among others.
const uuidBytes = 36

// idempotencyKey returns the key that a request was sent with, in lower case, and "" if there is none.
// Source: REST specification, Idempotency-Key; of which version the UUID is does not matter here.
func idempotencyKey(r *http.Request) (string, error) {
	given := r.Header["Idempotency-Key"]
	switch len(given) {
	case 0:
		return "", nil
	case 1:
	default:
		return "", moorage.Errorf(moorage.KindBadRequest, "There are %d Idempotency-Key headers", len(given))
	}
	id, err := uuid.Parse(given[0])
	if err != nil || len(given[0]) != uuidBytes {
		return "", moorage.Errorf(moorage.KindBadRequest, "Invalid Idempotency-Key: %q, want a UUID", given[0])
	}
	return id.String(), nil
}

// bindKey returns the key id with what tells the request r from others that are sent with it.
func bindKey(r *http.Request, id string, body []byte) catalog.Key {
	warehouse, _ := pathWarehouse(r) // that it is malformed is part of the outcome, and the path tells which it was
	path := escapedPath(r.URL)
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
