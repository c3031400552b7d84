package registry

import (
	"maps"
	"slices"
	"strconv"

	"github.com/cespare/xxhash/v2"
)

// Summary describes one version of a table or view. It comes from the version's metadata document,
// so a list of tables need not read documents, and maintenance is planned from it. If a number is
// missing in the document, it is -1, and a missing text is empty.
type Summary struct {
	Format    int64 `json:"format"` // format version
	Snapshots int64 `json:"snapshots"`
	Refs      int64 `json:"refs"`
	Columns   int64 `json:"columns"`  // top-level columns of the current schema
	Versions  int64 `json:"versions"` // of a view
	At        int64 `json:"at"`       // when the version was made, in milliseconds since 1970
	FirstMS   int64 `json:"first"`    // time of the first snapshot in the document
	Seq       int64 `json:"seq"`      // last sequence number
	// Rows, Files, Deletes and Bytes are totals in the summary of main's head. Its id is Snapshot.
	Rows      int64  `json:"rows"`
	Files     int64  `json:"files"`
	Deletes   int64  `json:"deletes"`
	Bytes     int64  `json:"bytes"`
	Snapshot  int64  `json:"snapshot"`
	Operation string `json:"operation,omitempty"` // of main's head
	// Engine is the name and version of the engine that made main's head, or the current version of
	// a view; 40 bytes at most.
	Engine string `json:"engine,omitempty"`
	// Rules is a hash of the table's own maintenance properties. It is empty if the table has no
	// such properties.
	Rules   string `json:"rules,omitempty"`
	Comment string `json:"comment,omitempty"` // 120 bytes at most
}

// Last describes the change that wrote the present version of a record. So an object shows who
// changed it last, and that change's Before leads to the previous change.
//
// A node of version 0.1.0 does not know Last. When it changes the record, it keeps the old Last. So
// For is a hash of all members that such a node could change. If the hash differs, Last is ignored:
// see LastIn.
type Last struct {
	For     uint64   `json:"for"`
	Change  ID       `json:"change"`
	By      string   `json:"by,omitempty"`      // the principal of the change
	Summary *Summary `json:"summary,omitempty"` // describes the present version of a table or view
}

// IsZero reports whether the change that wrote the record is unknown.
func (l Last) IsZero() bool { return l.Change.IsZero() }

// matching returns l, or zero if the record's hash differs from l.For.
func (l Last) matching(hash uint64) Last {
	if l.For != hash {
		return Last{}
	}
	return l
}

// hashOf returns a hash of texts.
func hashOf(state State, texts ...string) uint64 {
	hash := xxhash.New()
	_, _ = hash.Write([]byte{byte(state)})
	for _, text := range texts {
		_, _ = hash.WriteString(text)
		_, _ = hash.Write([]byte{0})
	}
	return hash.Sum64()
}

func (p Pointer) hash(state State) uint64 {
	return hashOf(state, append(slices.Clip(p.Namespace), p.Name, p.MetadataLocation)...)
}

func (n Namespace) hash(state State) uint64 {
	return hashOf(state, append(sorted(n.Properties), n.Since.UTC().String())...)
}

func (w Warehouse) hash(state State) uint64 {
	return hashOf(state, slices.Concat(sorted(w.Properties), sorted(w.Storage), w.AllowedLocations, w.Delegation,
		[]string{w.Location, w.Since.UTC().String(), strconv.FormatUint(w.Secret.Version, 10)})...)
}

// sorted returns the names and values of properties, sorted by name.
func sorted(properties map[string]string) []string {
	var texts []string
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		texts = append(texts, name, properties[name])
	}
	return texts
}

// LastIn returns the Last of p, or zero if it is unknown. state is the state of p's record.
func (p Pointer) LastIn(state State) Last { return p.Last.matching(p.hash(state)) }

// LastIn returns the Last of n, or zero if it is unknown. state is the state of n's record.
func (n Namespace) LastIn(state State) Last { return n.Last.matching(n.hash(state)) }

// LastIn returns the Last of w, or zero if it is unknown. state is the state of w's record.
func (w Warehouse) LastIn(state State) Last { return w.Last.matching(w.hash(state)) }

// Written returns the Last for p, which is written by change with this state. All other members of
// p must have their new values. summary describes the version of p.
func (p Pointer) Written(state State, change Change, summary *Summary) Last {
	return Last{For: p.hash(state), Change: change.ID, By: change.Principal, Summary: summary}
}

// Written returns the Last for n, which is written by change with this state. All other members of
// n must have their new values.
func (n Namespace) Written(state State, change Change) Last {
	return Last{For: n.hash(state), Change: change.ID, By: change.Principal}
}

// Written returns the Last for w, which is written by change with this state. All other members of
// w must have their new values.
func (w Warehouse) Written(state State, change Change) Last {
	return Last{For: w.hash(state), Change: change.ID, By: change.Principal}
}
