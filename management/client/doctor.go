package client

import "time"

// The levels of a Finding.
const (
	LevelOK   = "ok"
	LevelWarn = "warn" // it works, but an operator should check it
	LevelBad  = "bad"  // it does not work until an operator acts
)

// Finding is the state of one thing that the server examined.
type Finding struct {
	// ID is the id of a transaction, a purge or a job, for retry and abort. It is empty for other
	// things.
	ID    string `json:"id,omitempty"`
	Level string `json:"level"` // ok, warn or bad
	What  string `json:"what"`  // such as "purge of harbour.ships in warehouse default"
	Fact  string `json:"fact"`
	// Remedy says what the operator should do: a command, for example. It is empty if there is
	// nothing to do.
	Remedy string `json:"remedy,omitempty"`
	// Files are the metadata files that a transaction may have written. Until is the time by which
	// its coordinator must finish it. Both are absent for other things.
	Files []string  `json:"files,omitempty"`
	Until time.Time `json:"until,omitzero"`
}

// FindingsPage is a page of findings.
type FindingsPage struct {
	Findings []Finding `json:"findings"`
	NextPage
}

// The kinds of work that can be retried and aborted.
const (
	KindTransaction = "transaction"
	KindPurge       = "purge"
	KindJob         = "job"
)

// Retried is the result of a retry.
type Retried struct {
	Kind   string `json:"kind"`             // transaction, purge or job
	Ended  bool   `json:"ended"`            // nothing is left to do; otherwise the servers continue to retry
	Reason string `json:"reason,omitempty"` // why it did not end at once, if the server tried to end it
}

// Aborted is the result of an abort.
type Aborted struct {
	Kind string `json:"kind"` // transaction or job
	Was  string `json:"was"`  // the state before the abort
	// Forgotten is true if the record of the transaction or job is gone. Otherwise the servers
	// first delete its files.
	Forgotten bool     `json:"forgotten"`
	Left      []string `json:"left"` // files that may exist and will never be deleted; not null
}
