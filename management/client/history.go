package client

import "time"

// History is a page of the history of a table, a view or a namespace.
type History struct {
	Object HistoryObject `json:"object"`
	// Versions are the changes of the object, the latest first. For a table, they end with metadata
	// files from its metadata log whose changes are no longer kept. Such an entry has only a time,
	// a location and a version.
	Versions []Event `json:"versions"`
	// Complete is true if the page includes the creation of the object, and no page left out a
	// change.
	Complete bool `json:"complete"`
	NextPage
}

// HistoryObject is the object of a History, in its present state.
type HistoryObject struct {
	ID               string   `json:"id"`
	Kind             string   `json:"kind"`
	Warehouse        string   `json:"warehouse"`
	Namespace        []string `json:"namespace"`
	Name             string   `json:"name,omitempty"` // of a table or view
	UUID             string   `json:"uuid,omitempty"`
	State            string   `json:"state"`
	MetadataLocation string   `json:"metadata-location,omitempty"`
	// Dropped is nil if the object is live.
	Dropped *HistoryDrop `json:"dropped,omitempty"`
}

// HistoryDrop describes how an object was dropped, or how it ended for good.
type HistoryDrop struct {
	At     time.Time `json:"at"`
	By     string    `json:"by,omitempty"`
	Change string    `json:"change,omitempty"`
	// EndsAt is the time until which the object can come back. It is nil if the object cannot come
	// back.
	EndsAt *time.Time `json:"ends-at,omitempty"`
	Purge  string     `json:"purge"` // none, waiting or begun
	// How is the way in which the object ended for good: purge, unregister, window, forget,
	// takeover or drop.
	Ended   time.Time `json:"ended,omitzero"`
	How     string    `json:"how,omitempty"`
	EndedBy string    `json:"ended-by,omitempty"`
}

// StateLive is the state of an object that is not dropped.
const StateLive = "live"
