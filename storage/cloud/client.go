package cloud

import (
	"context"
	"errors"
	"io"
	"net/http"
	"sync"
	"time"
)

// ErrStalled ends a request whose server stalls.
var ErrStalled = errors.New("the server took or sent nothing for too long")

// Doer sends requests. *http.Client implements it.
type Doer interface {
	Do(request *http.Request) (*http.Response, error)
}

// Client is an HTTP client that aborts a request if no byte of a body moves for Stall. A storage
// may accept a connection and then neither receive nor send a byte. Go's HTTP client has timeouts
// that would end such a request, but they also limit the time for a large file.
//
// Stall applies to the request's body, and to each read of the answer's body. Doer must limit the
// wait for a connection, and the wait from the last byte of a request to the header of its answer.
// Client is safe for concurrent use if Doer is.
type Client struct {
	Doer  Doer
	Stall time.Duration
}

// Do sends a request. The caller closes the body of the answer.
func (c Client) Do(request *http.Request) (*http.Response, error) {
	ctx, stop := context.WithCancelCause(request.Context())
	request = request.WithContext(ctx)
	watch := newWatch(c.Stall, func() { stop(ErrStalled) })
	if request.Body != nil && request.Body != http.NoBody {
		request.Body = sending{request.Body, watch}
	}
	answer, err := c.Doer.Do(request)
	watch.end()
	if err != nil {
		if cause := context.Cause(ctx); errors.Is(cause, ErrStalled) {
			err = cause
		}
		stop(nil)
		return nil, err
	}
	answer.Body = &answered{ReadCloser: answer.Body, ctx: func() error { return context.Cause(ctx) }, stop: stop,
		stall: c.Stall}
	return answer, nil
}

// watch calls stalled if its method moved is not called again within the duration stall. It is safe
// for concurrent use.
type watch struct {
	stall time.Duration

	// mu guards the fields below. No other lock is taken while it is held.
	mu    sync.Mutex
	timer *time.Timer
	ended bool
}

func newWatch(stall time.Duration, stalled func()) *watch {
	w := &watch{stall: stall, timer: time.AfterFunc(stall, stalled)}
	w.timer.Stop() // no byte has moved yet; connecting comes first, and has its own timeout
	return w
}

func (w *watch) moved() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.ended {
		w.timer.Reset(w.stall)
	}
}

func (w *watch) end() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ended = true
	w.timer.Stop()
}

// sending is the body of a request. A Read means that the server has received the bytes of the Read
// before it.
type sending struct {
	io.ReadCloser
	watch *watch
}

// Read reads the next bytes to send.
func (s sending) Read(into []byte) (int, error) {
	n, err := s.ReadCloser.Read(into)
	if err == nil {
		s.watch.moved()
	} else { // all bytes are sent; Doer limits the wait for the answer's header
		s.watch.end()
	}
	return n, err
}

// answered is the body of an answer. It is not safe for concurrent use.
type answered struct {
	io.ReadCloser
	ctx   func() error // why the request ended early, if it did
	stop  context.CancelCauseFunc
	stall time.Duration
}

// Read reads from the answer. It fails if the server sends nothing for the permitted time.
func (a *answered) Read(into []byte) (int, error) {
	timer := time.AfterFunc(a.stall, func() { a.stop(ErrStalled) })
	defer timer.Stop()
	n, err := a.ReadCloser.Read(into)
	if cause := a.ctx(); err != nil && !errors.Is(err, io.EOF) && cause != nil {
		err = cause
	}
	return n, err
}

// Close closes the answer.
func (a *answered) Close() error {
	defer a.stop(nil)
	return a.ReadCloser.Close()
}
