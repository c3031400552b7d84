package cluster

import (
	"net"
	"time"
)

// patience is the time limit of calls between the nodes of tests. Only a call that hangs takes
// longer. On a busy machine, a healthy peer may need more than the limits of a real node.
const patience = 2 * time.Minute

// BePatient makes r wait longer for other nodes than a real node does. It must be called before r
// is used.
func (r *Router) BePatient() {
	dialer := &net.Dialer{Timeout: patience}
	r.transport.DialContext, r.transport.TLSHandshakeTimeout = dialer.DialContext, patience
	r.transport.HTTP2.SendPingTimeout, r.transport.HTTP2.PingTimeout = patience, patience
}
