package keyservice

import "time"

// Patience is the timeout of calls in tests, and of their attempts. Only a call that hangs takes
// longer. On a busy machine, a healthy service may need longer than the timeouts of a server.
const Patience = 2 * time.Minute

// SetTimeouts sets the timeouts of an attempt and of a call. It must be called before the source is
// used.
func (s *Amazon) SetTimeouts(attempt, call time.Duration) { s.service.setTimeouts(attempt, call) }

// SetTimeouts is like that of Amazon. The timeout of an attempt is also that of a token.
func (s *Google) SetTimeouts(attempt, call time.Duration) {
	s.service.setTimeouts(attempt, call)
	s.tokens.http = s.service.HTTP()
}

// SetTimeouts is like that of Amazon.
func (s *Vault) SetTimeouts(attempt, call time.Duration) { s.service.setTimeouts(attempt, call) }

func (c *Client) setTimeouts(attempt, call time.Duration) {
	c.attemptTimeout, c.callTimeout = attempt, call
}
