package moorage

import (
	"context"
	"time"
)

type contextKey uint8

const requestIDKey contextKey = 0

// WithRequestID returns a context that carries the id of the request it serves.
func WithRequestID(ctx context.Context, id string) context.Context {
	return context.WithValue(ctx, requestIDKey, id)
}

// RequestID returns the id of the request that ctx serves, "" if there is none.
func RequestID(ctx context.Context) string {
	id, _ := ctx.Value(requestIDKey).(string)
	return id
}

// Detached returns a context for the part of an operation that must not end because its client went
// away. It has the values of ctx and ends after timeout.
func Detached(ctx context.Context, timeout time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), timeout)
}
