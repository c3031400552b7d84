package servers

import (
	"fmt"
	"net/http"
	"strings"
	"time"
)

// ViewEvent records a client's knowledge about a call on a view.
type ViewEvent struct {
	Name    string
	Query   string // query of the version that the call makes, unique to the call; "" if it makes no version
	Creates bool   // the call makes the first version of a view
	Drops   bool
	Absent  bool // the call was refused because there is no view
	Outcome Outcome
	Seen    View          // the view in the answer to an acknowledged call; empty for a drop
	From    time.Duration // when the call was first sent, since a moment common to all events
	To      time.Duration // when the answer arrived
}

// String describes the event.
func (e ViewEvent) String() string {
	verb := "load of"
	switch {
	case e.Drops:
		verb = "drop of"
	case e.Query != "":
		verb = e.Query + " for"
	}
	outcome := []string{"acknowledged", "refused", "unknown"}[e.Outcome]
	return fmt.Sprintf("%s %s, %s to %s, %s", verb, e.Name, e.From, e.To, outcome)
}

// Take records the answer to the call. It returns an error if no server may give that answer,
// whatever other clients do.
func (e *ViewEvent) Take(a Answer) error {
	e.Outcome = a.Outcome
	switch {
	case a.Outcome == Acknowledged && !e.Drops:
		var err error
		if e.Seen, err = a.View(); err != nil {
			return fmt.Errorf("%s: %w", e, err)
		}
		return nil
	case a.Status == http.StatusNotFound:
		e.Absent = true
		if !e.Creates && strings.Contains(a.Text, "NoSuchViewException") {
			return nil
		}
	case a.Outcome == Acknowledged, a.Status == http.StatusConflict && e.Query != "", Undecided(a):
		return nil
	}
	return fmt.Errorf("%s: %d %s", e, a.Status, a.Text)
}

// Undecided reports whether the outcome of a request with a key is still unknown after an answer.
func Undecided(a Answer) bool {
	return a.Outcome == Unknown || a.Status == http.StatusServiceUnavailable
}
