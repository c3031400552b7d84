package client

import "time"

// The kinds of objects in rows.
const (
	KindWarehouse = "warehouse"
	KindNamespace = "namespace"
	KindTable     = "table"
	KindView      = "view"
)

// Row is an object in a list. Only a caller that may describe the object gets more than its name.
type Row struct {
	Kind      string   `json:"kind"`
	Warehouse string   `json:"warehouse"`
	Namespace []string `json:"namespace"`      // of a namespace: the namespaces around it
	Name      string   `json:"name,omitempty"` // empty for a warehouse

	ID       string `json:"id,omitempty"`
	UUID     string `json:"uuid,omitempty"`    // of a table or view
	Creator  string `json:"creator,omitempty"` // empty if it is not known
	Labelled bool   `json:"labelled,omitempty"`
	// Protected is true if the object, or a container of it, is protected from drops.
	Protected bool `json:"protected,omitempty"`
	// Mirror names the catalog that the object mirrors. It is empty if the object is not a mirror.
	Mirror string `json:"mirror-of,omitempty"`
	// Change is the id of the change that made the present version, and By is its caller. They are
	// empty if an older server, which did not record them, made the version.
	Change  string         `json:"change,omitempty"`
	By      string         `json:"by,omitempty"`
	Summary *ObjectSummary `json:"summary,omitempty"`
}

// ObjectSummary describes the present version of a table or view. Members that the metadata lacks
// are left out.
type ObjectSummary struct {
	Format    int64      `json:"format"`
	At        *time.Time `json:"at,omitempty"` // when the version was made
	Columns   *int64     `json:"columns,omitempty"`
	Versions  *int64     `json:"versions,omitempty"` // of a view
	Snapshots *int64     `json:"snapshots,omitempty"`
	Rows      *int64     `json:"rows,omitempty"`
	Bytes     *int64     `json:"bytes,omitempty"`
	Files     *int64     `json:"files,omitempty"`
	Deletes   *int64     `json:"deletes,omitempty"`
	Operation string     `json:"operation,omitempty"` // of main's head
	Engine    string     `json:"engine,omitempty"`
	Comment   string     `json:"comment,omitempty"`
}

// Stats counts the contents of a warehouse. The numbers of rows, bytes and files leave out tables
// for which they are unknown.
type Stats struct {
	Tables     int64     `json:"tables"`
	Views      int64     `json:"views"`
	Namespaces int64     `json:"namespaces"`
	Dropped    int64     `json:"dropped"`
	Rows       int64     `json:"rows"`
	Bytes      int64     `json:"bytes"`
	Files      int64     `json:"files"`
	Unknown    int64     `json:"unknown"`
	AsOf       time.Time `json:"as-of"`
	Complete   bool      `json:"complete"`
}

// Levels returns the levels of the namespace, and then the name.
func (r Row) Levels() []string {
	if r.Name == "" {
		return r.Namespace
	}
	return append(r.Namespace[:len(r.Namespace):len(r.Namespace)], r.Name)
}

// ObjectsPage is a page of objects.
type ObjectsPage struct {
	Objects []Row `json:"objects"`
	NextPage
}

// Found is the answer to a search. More is true if there may be further objects.
type Found struct {
	Objects []Row `json:"objects"`
	More    bool  `json:"more"`
}

// ObjectDetails is one object, with everything that the catalog knows about it.
type ObjectDetails struct {
	Row
	Owner      string            `json:"owner,omitempty"`
	Location   string            `json:"location"`
	Properties map[string]string `json:"properties"`
	// The members below are set only for a table or view.
	MetadataLocation string   `json:"metadata-location,omitempty"`
	Columns          []Column `json:"columns,omitempty"`
	Labels           *Labels  `json:"labels,omitempty"`
}

// Column is a field of a table or view.
type Column struct {
	ID       int    `json:"id"`
	Path     string `json:"path"` // its name, after the names of the fields around it, joined by dots
	Type     string `json:"type"`
	Required bool   `json:"required,omitempty"`
	Doc      string `json:"doc,omitempty"`
}
