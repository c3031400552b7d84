package s3

import (
	"sync"
	"time"
)

// signFindings holds the calls that are not signed for a server, according to a probe.
type signFindings struct {
	at time.Time
	// withheld maps the name of a call to the reason why it is not signed.
	withheld map[string]string
}

// signKnowledge holds the findings about a server's checks of signatures, and the probe in
// progress.
type signKnowledge struct {
	// mu guards the fields below. While it is held, no lock is taken and no request is sent.
	mu      sync.Mutex
	found   *signFindings // nil before the first probe has ended
	probing chan struct{} // closed when the current probe ends; nil if there is none
	err     error         // of the last probe
}
