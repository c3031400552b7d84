package client

import (
	"encoding/json"
	"fmt"
	"time"
)

// MirrorRequest is a request to turn a table or view into a mirror, or to move a mirror to another
// metadata file.
type MirrorRequest struct {
	// Source names the catalog that the mirror follows, such as its address. It is empty if
	// Writable.
	Source           string `json:"source,omitempty"`
	MetadataLocation string `json:"metadata-location"`
	// Writable makes an ordinary table or view instead of a mirror. It is refused if a policy for
	// maintenance that deletes files would be in force on it.
	Writable bool `json:"writable,omitempty"`
}

// MirrorEnd is a request to end a mirror whose metadata file is MetadataLocation.
type MirrorEnd struct {
	MetadataLocation string `json:"metadata-location"`
}

// Mirror reports whether a table or view is a mirror.
type Mirror struct {
	Source string `json:"source,omitempty"` // the catalog that it follows; empty if it is no mirror
}

// RegisterCheck asks what would happen if a metadata file were registered.
type RegisterCheck struct {
	MetadataLocation string `json:"metadata-location"`
	// NewNamespace is true if the namespace does not exist yet and will be created first. The
	// server then checks the warehouse instead.
	NewNamespace bool `json:"new-namespace,omitempty"`
}

// RegisterChecked is the answer to a RegisterCheck.
type RegisterChecked struct {
	// Fitness is new, same, moved, changed-here, uuid-taken, name-taken, location-outside,
	// location-nested or unreadable.
	Fitness string `json:"fitness"`
	Why     string `json:"why,omitempty"`    // a sentence
	Mirror  string `json:"mirror,omitempty"` // the source of the present table or view of the name
	// Facts is nil if the file cannot be read, and if Fitness is uuid-taken or name-taken.
	Facts *Facts `json:"facts,omitempty"`
}

// Facts are the members of a metadata file that a comparison of two catalogs uses.
type Facts struct {
	UUID     string `json:"uuid"`
	Location string `json:"location"` // of the files
	Format   int    `json:"format-version"`
	// Snapshot is the current snapshot of a table, or the current version of a view. It is 0 if
	// there is no current snapshot or version.
	Snapshot int64            `json:"current-snapshot-id"`
	Schema   int64            `json:"current-schema-id"` // of a view: 0
	Sequence int64            `json:"last-sequence-number"`
	Refs     map[string]int64 `json:"refs,omitempty"` // snapshot by name
}

// FactsOf returns the facts in a metadata document of a table or a view.
//
// Errors: the document is not a JSON object of that form.
func FactsOf(document json.RawMessage) (Facts, error) {
	var read struct {
		Table    string `json:"table-uuid"`
		View     string `json:"view-uuid"`
		Location string `json:"location"`
		Format   int    `json:"format-version"`
		Snapshot *int64 `json:"current-snapshot-id"`
		Version  int64  `json:"current-version-id"`
		Schema   int64  `json:"current-schema-id"`
		Sequence int64  `json:"last-sequence-number"`
		Refs     map[string]struct {
			Snapshot int64 `json:"snapshot-id"`
		} `json:"refs"`
	}
	if err := json.Unmarshal(document, &read); err != nil {
		return Facts{}, fmt.Errorf("read the metadata: %w", err)
	}
	facts := Facts{
		UUID: read.Table + read.View, Location: read.Location, Format: read.Format, Snapshot: read.Version,
		Schema: read.Schema, Sequence: read.Sequence,
	}
	if read.Snapshot != nil && *read.Snapshot > 0 { // -1 also means none
		facts.Snapshot = *read.Snapshot
	}
	for name, ref := range read.Refs {
		if facts.Refs == nil {
			facts.Refs = make(map[string]int64, len(read.Refs))
		}
		facts.Refs[name] = ref.Snapshot
	}
	if facts.Snapshot != 0 && facts.Refs == nil && read.View == "" { // a writer of format 1
		facts.Refs = map[string]int64{"main": facts.Snapshot}
	}
	return facts, nil
}

// MetadataFile is a metadata file below a folder.
type MetadataFile struct {
	Location string    `json:"location"`
	Bytes    int64     `json:"bytes"`
	Modified time.Time `json:"modified"`
}

// MetadataFilesPage is a page of metadata files.
type MetadataFilesPage struct {
	Files []MetadataFile `json:"files"`
	NextPage
}
