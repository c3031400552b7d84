// Package warehouses has the verbs on warehouses. A warehouse is a catalog with a storage location
// of its own. Its record contains where its tables may live, how the storage is reached, what it
// offers engines, and the properties that clients get.
//
// A change of how files are reached is tested on the storage before it is stored (validate.go).
// Values for reaching a storage that must stay secret are sealed records, which open only with keys
// that are not in the store (secrets.go).
//
// # Where tables may live
//
// The tables of a warehouse live below its location, or below one of its allowed locations. Both
// are in the record, so every node uses the same, and a start with other settings changes nothing.
// A location that tables live in cannot be removed from the record.
//
// Folders of the server's machine have bounds in addition: Config.LocalFolder. A caller over the
// network is not an administrator of the machine, and jobs of the server delete files. The bounds
// are checked when a warehouse is created, changed or validated, and never for a load or a commit.
//
// # What it must not know
//
// It does not know tables and views, except whether they are below a location.
package warehouses
