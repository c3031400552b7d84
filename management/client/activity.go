package client

import "time"

// NodeAsked is a node that was asked for what it remembers.
type NodeAsked struct {
	Name string `json:"name"`
	// Since is the time from which the node remembers, which is its start.
	Since time.Time `json:"since,omitzero"`
	// Failed explains why the node did not answer. It is empty if the node answered.
	Failed string `json:"failed,omitempty"`
}

// Refusals are commits that nodes refused, the newest first.
type Refusals struct {
	Nodes    []NodeAsked `json:"nodes"` // that were asked, this one first
	Refusals []Refusal   `json:"refusals"`
}

// Refusal is a commit that a node refused.
type Refusal struct {
	Time      time.Time `json:"time"`
	Warehouse string    `json:"warehouse"`
	Namespace []string  `json:"namespace"`
	Name      string    `json:"name"`
	Caller    string    `json:"caller"`
	Client    string    `json:"client,omitempty"`
	RequestID string    `json:"request-id,omitempty"`
	Type      string    `json:"type"` // as in the answer of the commit, such as CommitFailedException
	// Reason is the text of that answer. It is left out if the request was another caller's and the
	// reason does not concern another commit.
	Reason string `json:"reason,omitempty"`
	// Ref is the branch or tag whose head the commit required. Expected is the head that the commit
	// required, and null means that the ref must not exist. Found is the actual head, and null
	// means that the ref did not exist.
	Ref      string `json:"ref,omitempty"`
	Expected *int64 `json:"expected,omitempty"`
	Found    *int64 `json:"found,omitempty"`
	// By is the caller of the previous commit. LastAt is its time, and Change is the id of its
	// change.
	By     string    `json:"by,omitempty"`
	LastAt time.Time `json:"last-at,omitzero"`
	Change string    `json:"change,omitempty"`
}

// NodeDenials are the denials that nodes remember, the newest first.
type NodeDenials struct {
	Nodes   []NodeAsked `json:"nodes"` // that were asked, this one first
	Denials []Denial    `json:"denials"`
}

// Top is the present activity of one node. Rates are per second. Times are in milliseconds.
type Top struct {
	Node      string      `json:"node"`
	Since     time.Time   `json:"since"` // when the node started
	Nodes     int         `json:"nodes"` // how many nodes this one knows, with itself
	Commits   float64     `json:"commits"`
	Conflicts float64     `json:"conflicts"`
	Loads     float64     `json:"loads"`
	CommitP99 float64     `json:"commit-p99-ms"` // 0 if there was none
	LoadP99   float64     `json:"load-p99-ms"`
	Tables    []BusyTable `json:"tables"`  // the busiest first, at most twenty
	Minutes   []Minute    `json:"minutes"` // the last sixty with something in them, the oldest first
}

// BusyTable is a table or view with many commits or loads on a node.
type BusyTable struct {
	Warehouse string   `json:"warehouse"`
	Namespace []string `json:"namespace"`
	Name      string   `json:"name"`
	Commits   float64  `json:"commits"`
	Conflicts float64  `json:"conflicts"`
	Loads     float64  `json:"loads"`
	WaitP99   float64  `json:"wait-p99-ms"` // that commits waited for others
	LastBy    string   `json:"last-by,omitempty"`
}

// Minute has the totals of one minute of a node.
type Minute struct {
	At        time.Time `json:"at"`
	Commits   uint64    `json:"commits"`
	Conflicts uint64    `json:"conflicts"`
	Loads     uint64    `json:"loads"`
	CommitP99 float64   `json:"commit-p99-ms"`
	LoadP99   float64   `json:"load-p99-ms"`
}
