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
)

// WithRequestID returns a context that carries the id of the request it serves.
func WithRequestID(ctx context.Context, id string) context.Context {
	return context.WithValue(ctx, requestIDKey, id)
}

// RequestID returns the id of the request that ctx serves, "" if there is none.
func RequestID(ctx context.Context) string {
	id, _ := ctx.Value(requestIDKey).(string)
	return id
}

// WithCaller returns a context of a request that caller sent. Only the faces read it; below them
// the caller is an argument.
func WithCaller(ctx context.Context, caller Caller) context.Context {
	return context.WithValue(ctx, callerKey, caller)
}

// CallerOf returns who sent the request that ctx serves. found is false if nobody was asked.
func CallerOf(ctx context.Context) (caller Caller, found bool) {
	caller, found = ctx.Value(callerKey).(Caller)
	return caller, found
}

// Arrival is what another node says about a request that it forwarded to this one.
type Arrival struct {
	From   string // the address of that node
	Caller Caller // who sent the request to it
	// Key is the internal idempotency key of a request that has none of the client's, else empty.
	Key string
}

// WithArrival returns a context of a request that another node forwarded.
func WithArrival(ctx context.Context, arrival Arrival) context.Context {
	return context.WithValue(ctx, arrivalKey, arrival)
}

// ArrivalOf returns what another node said about the request that ctx serves. found is false if
// none forwarded it.
func ArrivalOf(ctx context.Context) (arrival Arrival, found bool) {
	arrival, found = ctx.Value(arrivalKey).(Arrival)
	return arrival, found
}

// Detached returns a context for the part of an operation that must not end because its client went
// away. It has the values of ctx and ends after timeout.
func Detached(ctx context.Context, timeout time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), timeout)
}
