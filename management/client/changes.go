package client

import "time"

// ChangesPage is a page of the feed of changes.
type ChangesPage struct {
	Events []Event `json:"events"`
	// Next is the position to pass as the parameter after of the next request.
	Next string `json:"next"`
	// First is the position before the first change that the server still has.
	First string `json:"first"`
	AtEnd bool   `json:"at-end"`
}

// Event describes the effect of a change on one object.
type Event struct {
	ID        string    `json:"id,omitempty"`
	Position  string    `json:"position,omitempty"` // not in a History
	Time      time.Time `json:"time,omitzero"`
	Operation string    `json:"operation,omitempty"`
	Count     int       `json:"count,omitempty"` // events of the same change in the answer
	Kind      string    `json:"kind,omitempty"`
	Warehouse string    `json:"warehouse,omitempty"`
	Namespace []string  `json:"namespace,omitempty"`
	Name      string    `json:"name,omitempty"`
	// Previous is the name before a rename.
	Previous *EventName `json:"previous,omitempty"`
	ObjectID string     `json:"object-id,omitempty"`
	UUID     string     `json:"uuid,omitempty"`

	Caller    string `json:"caller,omitempty"`
	Client    string `json:"client,omitempty"`
	RequestID string `json:"request-id,omitempty"`
	TraceID   string `json:"trace-id,omitempty"`
	Verb      string `json:"verb,omitempty"`
	// Purge is true if the drop requested a purge. Actions are the updates of a commit.
	Purge   bool     `json:"purge,omitempty"`
	Actions []string `json:"actions,omitempty"`

	MetadataLocation         string        `json:"metadata-location,omitempty"`
	PreviousMetadataLocation string        `json:"previous-metadata-location,omitempty"`
	Summary                  *EventSummary `json:"summary,omitempty"`
	// Delta is what the change added to the counts of a table.
	Delta   *EventDelta   `json:"delta,omitempty"`
	Members []EventMember `json:"members,omitempty"`
	// Version is the name of the metadata file that the change made. It is set only in a History.
	Version string `json:"version,omitempty"`
}

// EventDelta is what a change added to the counts of a table. A number is negative if the change
// removed something, and missing if it is not known.
type EventDelta struct {
	Rows      *int64 `json:"rows,omitempty"`
	Files     *int64 `json:"files,omitempty"`
	Bytes     *int64 `json:"bytes,omitempty"`
	Snapshots *int64 `json:"snapshots,omitempty"`
}

// EventName is the name of a table or view in its warehouse.
type EventName struct {
	Namespace []string `json:"namespace"`
	Name      string   `json:"name"`
}

// EventSummary describes the version of a table or view after a change. Numbers that are not known
// are missing.
type EventSummary struct {
	Operation string `json:"operation,omitempty"` // of the head of branch main
	Engine    string `json:"engine,omitempty"`    // which made the head
	Snapshot  *int64 `json:"snapshot,omitempty"`  // id of the head
	Snapshots *int64 `json:"snapshots,omitempty"`
	Refs      *int64 `json:"refs,omitempty"`
	Rows      *int64 `json:"rows,omitempty"`
	Files     *int64 `json:"files,omitempty"`
	Deletes   *int64 `json:"deletes,omitempty"`
	Bytes     *int64 `json:"bytes,omitempty"`
}

// EventMember is one of several commits that share a version.
type EventMember struct {
	Caller    string    `json:"caller,omitempty"`
	Client    string    `json:"client,omitempty"`
	RequestID string    `json:"request-id,omitempty"`
	TraceID   string    `json:"trace-id,omitempty"`
	Time      time.Time `json:"time"`
	Snapshot  int64     `json:"snapshot,omitempty"`
}
