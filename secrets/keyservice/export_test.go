package keyservice

import "time"

// Patience is the timeout of calls in tests, and of their attempts. Only a call that hangs takes
// longer. On a busy machine, a healthy service may need longer than the timeouts of a server.
const Patience = 2 * time.Minute

// SetTimeouts sets the timeouts of an attempt and of a call. It must be called before the source is
// used.
func (s *Amazon) SetTimeouts(attempt, call time.Duration) { s.service.setTimeouts(attempt, call) }

// SetTimeouts is like that of Amazon. It does not change TokenTimeout.
func (s *Google) SetTimeouts(attempt, call time.Duration) { s.service.setTimeouts(attempt, call) }

// AttemptTimeout is the timeout of an attempt of a server.
const AttemptTimeout = attemptTimeout

// TokenTimeout returns the timeout of a request for a token.
func (s *Google) TokenTimeout() time.Duration { return s.tokens.http.Timeout }

// SetTokenTimeout sets TokenTimeout. It must be called before the source is used.
func (s *Google) SetTokenTimeout(timeout time.Duration) { s.tokens.http.Timeout = timeout }

// SetTimeouts is like that of Amazon.
func (s *Vault) SetTimeouts(attempt, call time.Duration) { s.service.setTimeouts(attempt, call) }

func (c *Client) setTimeouts(attempt, call time.Duration) {
	c.attemptTimeout, c.callTimeout = attempt, call
}
