package ascode

// Catalog is what files describe. Its fields, and the fields of the other types in this file,
// define the file format. The tag code holds the key, and the tag help holds the description that
// editors show.
type Catalog struct {
	Server     *Server               `code:"server" help:"What holds for the whole server."`
	Roles      map[string]*Role      `code:"roles" help:"The roles, by name."`
	Warehouses map[string]*Warehouse `code:"warehouses" help:"The warehouses, by name."`
}

// Server is what holds for the whole server.
type Server struct {
	Grants      Grants             `code:"grants" help:"Grants on the server: privileges by grantee."`
	Maintenance map[string]*Policy `code:"maintenance" help:"Maintenance policies of all tables, by type."`
}

// Grants has privileges by grantee: a principal, a role or a token role.
type Grants map[string][]string

// Role is a role of the store.
type Role struct {
	Description string   `code:"description" help:"For people."`
	Members     []string `code:"members" help:"Principals, roles and token roles."`
}

// Policy is the maintenance policy of an object for one type of job. One file has all of it.
type Policy struct {
	Status   string            `code:"status" help:"Whether jobs of the type run." only:"enabled,disabled" needed:"yes"`
	Settings map[string]string `code:"settings" help:"Settings of the type, such as maxSnapshotAgeHours."`
	Unsafe   *bool             `code:"unsafe" help:"Allow values below those that are safe for running readers."`
}

// Access is who may do what with an object.
type Access struct {
	Owner  string `code:"owner" help:"The principal or role that owns the object, instead of its creator."`
	Grants Grants `code:"grants" help:"Grants on the object: privileges by grantee."`
}

// Container is what warehouses and namespaces have in common.
type Container struct {
	Properties map[string]string `code:"properties" help:"Properties, by name."`
	Protected  *bool             `code:"protected" help:"Refuse drops of the object and of all in it."`
	Access
	Managed     *bool                 `code:"managed" help:"Owners of objects within cannot grant on them."`
	Maintenance map[string]*Policy    `code:"maintenance" help:"Maintenance policies of the tables within, by type."`
	Namespaces  map[string]*Namespace `code:"namespaces" help:"The namespaces within, by their last level."`
}

// Warehouse is a warehouse.
type Warehouse struct {
	Location         string            `code:"location" help:"Where files of new tables are. It cannot change."`
	AllowedLocations []string          `code:"allowed-locations" help:"Further locations where tables may be."`
	Storage          map[string]string `code:"storage" help:"Options of the storage, such as s3.region."`
	Secret           *SecretRef        `code:"secret" help:"The secret of the storage; the file never has it."`
	Delegation       []string          `code:"delegation" help:"Delegations offered to engines, best first."`
	Container
}

// Namespace is a namespace.
type Namespace struct {
	Container
	Tables map[string]*Table `code:"tables" help:"Tables, by name. They are never created or dropped."`
	Views  map[string]*View  `code:"views" help:"Views, by name. They are never created or dropped."`
}

// View is what files can describe of a view.
type View struct {
	Properties map[string]string `code:"properties" help:"Properties, by name. Others stay: engines set them too."`
	Protected  *bool             `code:"protected" help:"Refuse drops of the object."`
	Access
	Labels  map[string]string            `code:"labels" help:"Labels that engines show, by name."`
	Columns map[string]map[string]string `code:"columns" help:"Labels of columns: by column, then by name."`
}

// Table is what files can describe of a table.
type Table struct {
	View
	Maintenance map[string]*Policy `code:"maintenance" help:"Maintenance policies, by type."`
}
