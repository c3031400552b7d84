package client

import "time"

// The states of dropped objects, and what should happen to their files.
const (
	StateDropped = "dropped"
	StatePurging = "purging"
	StateEnded   = "ended"

	PurgeNone    = "none"
	PurgeWaiting = "waiting"
	PurgeBegun   = "begun"

	// UndropYes is the value of Dropped.Undrop for an object that can come back.
	UndropYes = "yes"
)

// Dropped is a table or view that was dropped, or an object that ended for good.
type Dropped struct {
	ID        string     `json:"id"`
	Kind      string     `json:"kind"`
	Warehouse string     `json:"warehouse"`
	Namespace []string   `json:"namespace"` // of a namespace: the namespaces around it
	Name      string     `json:"name"`      // the last one
	UUID      string     `json:"uuid,omitempty"`
	State     string     `json:"state"`
	At        time.Time  `json:"at"`                // of the drop
	By        string     `json:"by,omitempty"`      // the caller of the drop; empty if it is not known
	Change    string     `json:"change,omitempty"`  // the id of the change
	EndsAt    *time.Time `json:"ends-at,omitempty"` // when it can no longer come back
	Purge     string     `json:"purge"`

	MetadataLocation string         `json:"metadata-location,omitempty"`
	Summary          *ObjectSummary `json:"summary,omitempty"`
	// Undrop is UndropYes, or one sentence that explains why the object cannot come back.
	Undrop string `json:"undrop"`
	// Ended is the time at which the object ended for good, and EndedBy is the caller that ended
	// it.
	Ended   *time.Time `json:"ended,omitempty"`
	EndedBy string     `json:"ended-by,omitempty"`
}

// Levels returns the levels of the namespace, and then the name.
func (d Dropped) Levels() []string {
	return append(d.Namespace[:len(d.Namespace):len(d.Namespace)], d.Name)
}

// DroppedPage is a page of dropped objects.
type DroppedPage struct {
	Dropped []Dropped `json:"dropped"`
	NextPage
}

// UndropRequest names a dropped table or view, and specifies how to bring it back.
type UndropRequest struct {
	ID        string   `json:"id,omitempty"` // empty: by its last name
	Warehouse string   `json:"warehouse,omitempty"`
	Namespace []string `json:"namespace,omitempty"`
	Name      string   `json:"name,omitempty"`
	Kind      string   `json:"kind,omitempty"` // empty: a table or a view
	// As is another name for it, in the same warehouse.
	As            *Identifier `json:"as,omitempty"`
	Replace       bool        `json:"replace,omitempty"`
	MakeNamespace bool        `json:"make-namespace,omitempty"`
}

// Undropped is a table or view that is back.
type Undropped struct {
	Kind             string         `json:"kind"`
	Warehouse        string         `json:"warehouse"`
	Namespace        []string       `json:"namespace"`
	Name             string         `json:"name"`
	ID               string         `json:"id"`
	UUID             string         `json:"uuid"`
	MetadataLocation string         `json:"metadata-location"`
	Summary          *ObjectSummary `json:"summary,omitempty"`
	// Warnings lists what was not restored, in one sentence for each item.
	Warnings []string `json:"warnings"`
}
