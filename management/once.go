package management

import (
	"context"
	"crypto/sha256"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/maypok86/otter/v2"

	"moorage"
	"moorage/internal/web"
)

// made is the result of a change with an Idempotency-Key.
type made struct {
	request [32]byte // SHA-256 of the request
	answer  any
}

// nothing is the result of a change whose response is 204, without a body.
var nothing any = struct{ none bool }{true}

// Limits of the remembered changes.
const (
	madeMax      = 1000
	madeLifetime = 30 * time.Minute // clients retry within this time
)

func newMade() *otter.Cache[string, *made] {
	return otter.Must(&otter.Options[string, *made]{
		MaximumSize:      madeMax,
		ExpiryCalculator: otter.ExpiryWriting[string, *made](madeLifetime),
	})
}

// change returns the handler of a change: do makes the change and returns the answer. A retry with
// the same Idempotency-Key gets the answer to the first request, and waits for that answer if the
// first request is still in progress. Failures are not remembered. Only this node remembers keys,
// and only while its process runs, because making such a change twice does no harm.
func (s *server) change(do func(r *http.Request, body []byte) (any, error)) web.Handler {
	return unconditional(s.changeIfMatch(do))
}

// changeIfMatch is like change, for an operation that knows If-Match and If-None-Match; see
// matches.
func (s *server) changeIfMatch(do func(r *http.Request, body []byte) (any, error)) web.Handler {
	return s.once(do, func(ctx context.Context) (context.Context, context.CancelFunc) {
		return context.WithoutCancel(ctx), func() {}
	})
}

// unconditional refuses requests that depend on the version of an object.
func unconditional(h web.Handler) web.Handler {
	return func(w http.ResponseWriter, r *http.Request) error {
		if r.Header.Get("If-Match") != "" || r.Header.Get("If-None-Match") != "" {
			return moorage.Errorf(moorage.KindBadRequest,
				"This change knows no If-Match and no If-None-Match; those of members and grants add and remove")
		}
		return h(w, r)
	}
}

// changeThatWaits is like change, for an operation that waits if the client requests it. The wait
// ends when the client disconnects and when the server stops.
func (s *server) changeThatWaits(do func(r *http.Request, body []byte) (any, error)) web.Handler {
	return unconditional(s.once(do, func(ctx context.Context) (context.Context, context.CancelFunc) {
		ctx, cancel := context.WithCancel(ctx)
		go func() {
			defer cancel()
			select {
			case <-s.config.Stopping:
			case <-ctx.Done():
			}
		}()
		return ctx, cancel
	}))
}

// once is the common part of change and changeThatWaits. lasting derives the context of a request
// with a key from the request's own context.
func (s *server) once(do func(r *http.Request, body []byte) (any, error),
	lasting func(context.Context) (context.Context, context.CancelFunc)) web.Handler {
	return func(w http.ResponseWriter, r *http.Request) error {
		key, err := web.IdempotencyKey(r)
		if err != nil {
			return err
		}
		none := r.Header.Values("If-None-Match")
		if len(none) > 0 && !slices.Equal(none, []string{"*"}) {
			return moorage.Errorf(moorage.KindBadRequest,
				"If-None-Match can only be *, for an object that must not exist: send an ETag in If-Match")
		}
		body, err := s.ReadBody(w, r)
		if err != nil {
			return err
		}
		about := slices.Concat([]string{web.EscapedPath(r.URL)}, none, []string{""}, r.Header.Values("If-Match"))
		asked := &made{request: sha256.Sum256(append([]byte(strings.Join(about, "\x00")+"\x00"), body...))}
		load := func(ctx context.Context, _ string) (_ *made, err error) {
			ctx, cancel := lasting(ctx)
			defer cancel()
			asked.answer, err = do(r.WithContext(ctx), body)
			return asked, err
		}
		var got *made
		if key == "" {
			got, err = load(r.Context(), "")
		} else {
			key = web.CallerOf(r).Name + "\x00" + key // no caller gets another caller's answer
			got, err = s.made.Get(r.Context(), key, otter.LoaderFunc[string, *made](load))
		}
		if err != nil {
			return err
		}
		if got.request != asked.request {
			return moorage.Errorf(moorage.KindUnprocessable, "The Idempotency-Key was used for another request")
		}
		if got.answer == nothing {
			return web.AnswerNothing(w)
		}
		return s.AnswerJSON(w, r, got.answer)
	}
}
