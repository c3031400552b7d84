package s3

import (
	"sync"
	"time"
)

// signFindings are the calls that are not signed for a server, by what a probe found.
type signFindings struct {
	at time.Time
	// withheld says by the name of a call why it is not signed.
	withheld map[string]string
}

// signKnowledge is what is known about the way in which a server checks signatures.
type signKnowledge struct {
	// mu guards the fields below; a leaf, never held over a request.
	mu      sync.Mutex
	found   *signFindings // nil: nothing yet
	probing chan struct{} // closed when the probe under way ends; nil: there is none
	err     error         // of the last probe
}
