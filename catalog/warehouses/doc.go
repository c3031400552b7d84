// Package warehouses implements the operations on warehouses. A warehouse is a catalog with its own
// storage location. Its record has the locations below which its tables may live, and the options
// for reaching the storage. It also has the delegations offered to engines, and the properties sent
// to clients.
//
// A change of the settings for reaching files is tested on the storage before it is stored
// (validate.go). Secret values for reaching a storage are stored sealed. The keys that open them
// are not in the store (secrets.go).
//
// # Where tables may live
//
// The tables of a warehouse live below its location, or below one of its allowed locations. Both
// are in the record, so every node uses the same locations, and a restart with other settings does
// not change them. A location cannot be removed from the record while tables live below it.
// create.go decides whether a warehouse may use a location; validate.go tests the location.
//
// Folders of the server's machine are restricted further by Config.LocalFolder. The reason is that
// a caller over the network is not an administrator of the machine, and that jobs of the server
// delete files. LocalFolder is called when a warehouse is created, changed or validated, and never
// for a load or a commit.
//
// # What it must not know
//
// It does not know tables and views, except whether they are below a location.
package warehouses
