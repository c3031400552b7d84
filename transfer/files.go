package transfer

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"

	"moorage/management/client"
)

// newestFiles are the newest metadata files of tables, by the folder that they are in.
type newestFiles map[string]client.MetadataFile

// add adds a metadata file, unless a newer one of its folder is there.
func (n newestFiles) add(file client.MetadataFile) {
	folder := folderOf(file.Location)
	if path.Base(folder) != "metadata" {
		return
	}
	known, ok := n[folder]
	if !ok || isNewer(file, known) {
		n[folder] = file
	}
}

// folderOf returns the folder of a file; empty if there is none.
func folderOf(location string) string {
	at := strings.LastIndexByte(location, '/')
	if at < 0 {
		return ""
	}
	return location[:at]
}

// isNewer reports whether a is a later version than b. Two writers may have tried one version: the
// file that was written last counts.
func isNewer(a, b client.MetadataFile) bool {
	if of, than := versionOf(a.Location), versionOf(b.Location); of != than {
		return of > than
	}
	if !a.Modified.Equal(b.Modified) {
		return a.Modified.After(b.Modified)
	}
	return a.Location > b.Location
}

// versionOf returns the version in the name of a metadata file: v12.metadata.json or
// 00012-<uuid>.metadata.json. It returns -1 if there is none.
func versionOf(location string) int {
	name := strings.TrimPrefix(path.Base(location), "v")
	digits := name[:len(name)-len(strings.TrimLeft(name, "0123456789"))]
	version, err := strconv.Atoi(digits)
	if err != nil {
		return -1
	}
	return version
}

// visit calls do with the tables of n, in the order of their names.
func (n newestFiles) visit(root string, do func(Object) error) error {
	root = strings.TrimRight(root, "/") + "/"
	for _, folder := range slices.Sorted(maps.Keys(n)) {
		below, ok := strings.CutPrefix(folder, root)
		if !ok {
			// The folder of a local disk has several spellings: file:/a and file:///a.
			below, ok = strings.CutPrefix(withoutSlashes(folder), withoutSlashes(root))
		}
		levels := strings.Split(strings.TrimSuffix(below, "/metadata"), "/")
		if !ok || len(levels) < 2 {
			return fmt.Errorf("the table in %s has no namespace: name the folder above the folder of its namespace",
				folder)
		}
		err := do(Object{
			Namespace: levels[:len(levels)-1], Name: levels[len(levels)-1], MetadataLocation: n[folder].Location,
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// withoutSlashes returns a location with one slash behind its scheme.
func withoutSlashes(location string) string {
	scheme, rest, ok := strings.Cut(location, ":")
	if !ok {
		return location
	}
	return scheme + ":/" + strings.TrimLeft(rest, "/")
}
