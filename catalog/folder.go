package catalog

import (
	"moorage"
	"moorage/catalog/claims"
	"moorage/catalog/directory"
	"moorage/storage"
)

// PropLocation is the property of a namespace with the folder for its tables, views and child
// namespaces.
const PropLocation = "location"

// defaultFolderBytesMax is the maximum length of a default folder for the tables of a namespace. It
// leaves room for the longer paths of files: file systems allow 4,096 bytes, and claims allow
// registry.KeyBytesMax.
const defaultFolderBytesMax = 1024

// folderOf returns the folder for the tables and views of a namespace. path has the existing levels
// of ns. The folder begins with the location of the nearest namespace that has one, or of the
// warehouse. A folder for each level below that namespace follows. These folders are omitted if the
// result would be longer than defaultFolderBytesMax.
func folderOf(path *directory.Path, ns moorage.Namespace) string {
	home, depth := path.Home()
	folder := home
	for _, level := range ns[depth:] {
		folder = storage.Join(folder, storage.EscapeBelow(folder, level))
	}
	if len(folder) > defaultFolderBytesMax {
		return home
	}
	return folder
}

// checkNamespaceLocation checks the location in the properties of a namespace. It returns
// KindBadRequest if no table of the warehouse could have such a location. path is the path to the
// namespace.
func (p *parts) checkNamespaceLocation(path *directory.Path, properties map[string]string) error {
	location, set := properties[PropLocation]
	if !set {
		return nil
	}
	if err := claims.CheckFolder(path.Warehouse.Roots(), storage.Trim(location)); err != nil {
		return moorage.Errorf(moorage.KindBadRequest,
			"Invalid location of a namespace, %s: no table could be in it. %w",
			moorage.Cut(location, moorage.ShownBytesMax), err)
	}
	return nil
}
