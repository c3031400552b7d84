package moorage

import (
	"context"
	"time"
)

type contextKey uint8

const (
	requestIDKey contextKey = iota
	arrivalKey
	callerKey
	traceIDKey
)

// WithRequestID returns a context with the id of its request.
func WithRequestID(ctx context.Context, id string) context.Context {
	return context.WithValue(ctx, requestIDKey, id)
}

// RequestID returns the id of the request of ctx, or "" if ctx has no id.
func RequestID(ctx context.Context) string {
	id, _ := ctx.Value(requestIDKey).(string)
	return id
}

// WithTraceID returns a context with the id of the trace that its request belongs to.
func WithTraceID(ctx context.Context, id string) context.Context {
	return context.WithValue(ctx, traceIDKey, id)
}

// TraceID returns the id of the trace of ctx: 32 hexadecimal digits, or "" if its request is not
// traced.
func TraceID(ctx context.Context) string {
	id, _ := ctx.Value(traceIDKey).(string)
	return id
}

// WithCaller returns the context of a request from caller. Only the HTTP packages read the caller
// from the context; other packages get it as an argument.
func WithCaller(ctx context.Context, caller Caller) context.Context {
	return context.WithValue(ctx, callerKey, caller)
}

// CallerOf returns the caller of the request of ctx. found is false if the request was not
// authenticated.
func CallerOf(ctx context.Context) (caller Caller, found bool) {
	caller, found = ctx.Value(callerKey).(Caller)
	return caller, found
}

// Arrival is another node's information about a request that it forwarded to this one.
type Arrival struct {
	From   string // the address of the node that forwarded the request
	Caller Caller // the caller that sent the request to that node
	// Key is the idempotency key that the other node gave to a request without a client's key.
	// Otherwise it is empty.
	Key string
}

// WithArrival returns a context of a request that another node forwarded.
func WithArrival(ctx context.Context, arrival Arrival) context.Context {
	return context.WithValue(ctx, arrivalKey, arrival)
}

// ArrivalOf returns the other node's information about the request of ctx. found is false if no
// node forwarded the request.
func ArrivalOf(ctx context.Context) (arrival Arrival, found bool) {
	arrival, found = ctx.Value(arrivalKey).(Arrival)
	return arrival, found
}

// Detached returns a context for work that must continue when the client of ctx disconnects. It has
// the values of ctx and ends after timeout.
func Detached(ctx context.Context, timeout time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), timeout)
}
