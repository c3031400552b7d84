package client

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
}

// Levels are the namespace and the name.
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

// Found is the answer of a search. More means that there may be others.
type Found struct {
	Objects []Row `json:"objects"`
	More    bool  `json:"more"`
}

// ObjectDetails is one object, with everything that the catalog knows of it.
type ObjectDetails struct {
	Row
	Owner      string            `json:"owner,omitempty"`
	Location   string            `json:"location"`
	Properties map[string]string `json:"properties"`
	// The members below are of a table or view only.
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
