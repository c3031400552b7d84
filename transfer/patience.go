package transfer

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync"
	"time"

	"moorage/management/client"
)

// ErrUnreadable means that a catalog has an object, and cannot give its metadata. Other objects are
// not affected.
var ErrUnreadable = errors.New("the catalog cannot read it")

// DeniedError is the answer of a catalog that refuses all requests of the caller.
type DeniedError struct {
	Catalog string // its address
	Answer  string
}

// Error implements error.
func (e *DeniedError) Error() string {
	return fmt.Sprintf("%s refuses this caller: %s. Give it another token or credential and repeat the command: "+
		"with --state it goes on where it was", e.Catalog, e.Answer)
}

// aboutObject returns the answer of a catalog, if it is about the object of the request. It returns
// nil if a request for another object could get the same answer: the catalog does not know the
// caller, is busy, or fails.
func aboutObject(err error) *client.Error {
	answer, ok := errors.AsType[*client.Error](err)
	if !ok || answer.Code < 400 || answer.Code >= 500 {
		return nil
	}
	switch answer.Code {
	case http.StatusUnauthorized, http.StatusProxyAuthRequired, http.StatusRequestTimeout, http.StatusTooEarly,
		http.StatusTooManyRequests:
		return nil
	}
	return answer
}

// whyUnreadable returns why a source does not give an object, if that says nothing about other
// objects. Otherwise it returns an empty text. Catalogs answer 500 if they cannot read a file.
func whyUnreadable(err error) string {
	answer, ok := errors.AsType[*client.Error](err)
	if errors.Is(err, ErrUnreadable) || aboutObject(err) != nil || ok && answer.Code == http.StatusInternalServerError {
		return err.Error()
	}
	return ""
}

// Bounds of repetition. A catalog that limits its callers is waited for during some minutes.
const (
	retriesMax    = 8 // of a catalog that is busy, or does not answer
	failuresMax   = 3 // of a catalog that fails: it may fail for this object always
	pauseFirst    = 200 * time.Millisecond
	pauseMax      = 30 * time.Second
	pauseAskedMax = 2 * time.Minute // a catalog that asks for a longer pause ends the run
)

// Patience repeats requests that a catalog did not carry out. It is safe for concurrent use.
type Patience struct {
	mu     sync.Mutex // guards jitter; leaf
	jitter *rand.Rand // nil for pauses of exact length
}

// NewPatience returns a Patience whose pauses differ by jitter.
func NewPatience(jitter *rand.Rand) *Patience { return &Patience{jitter: jitter} }

// ask calls do until it succeeds, or a repetition is of no use. A request that reads is repeated
// after each failure of the catalog, and a change if it certainly did not happen. The pauses grow,
// and are as long as the catalog asks for with Retry-After.
func (p *Patience) ask(ctx context.Context, reads bool, do func() error) error {
	for try := 0; ; try++ {
		err := do()
		answer, answered := errors.AsType[*client.Error](err)
		var again bool
		switch {
		case err == nil || ctx.Err() != nil || try == retriesMax:
		case !answered:
			_, denied := errors.AsType[*DeniedError](err)
			again = reads && !denied && !errors.Is(err, ErrUnreadable)
		case answer.RetryAfter > pauseAskedMax:
		default:
			again = answer.Code == http.StatusTooManyRequests || answer.Code == http.StatusServiceUnavailable ||
				reads && answer.Code >= http.StatusInternalServerError && try < failuresMax
		}
		if !again {
			return err
		}
		pause := min(pauseFirst<<try, pauseMax)
		if answered {
			pause = max(pause, answer.RetryAfter)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(p.about(pause)):
		}
	}
}

// about returns pause with up to a quarter more, so that jobs do not all come back at one moment.
func (p *Patience) about(pause time.Duration) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.jitter == nil {
		return pause
	}
	return pause + time.Duration(p.jitter.Int64N(int64(pause)/4+1))
}
