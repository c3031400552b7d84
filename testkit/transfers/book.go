package transfers

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"moorage/testkit/servers"
)

// Version is a version of a table, read from its metadata file.
type Version struct {
	Location string
	Base     string // location of the previous version, "" for the first version
	Head     int64  // snapshot id of main, 0 if there is none
	Counter  int
	Transfer string // the transfer that made the version, "" for the first version
}

// fileScheme is the scheme of file locations.
const fileScheme = "file://"

// readVersion reads the file at location.
func readVersion(location string) (Version, error) {
	content, err := os.ReadFile(strings.TrimPrefix(location, fileScheme))
	if err != nil {
		return Version{}, err
	}
	var document servers.Document
	if err := json.Unmarshal(content, &document); err != nil {
		return Version{}, fmt.Errorf("read %s: %w", location, err)
	}
	v := Version{Location: location, Head: document.Head(), Transfer: document.Properties[PropTransfer]}
	if v.Counter, err = strconv.Atoi(document.Properties[PropCounter]); err != nil {
		return Version{}, fmt.Errorf("read %s: %w", location, err)
	}
	if len(document.Log) > 0 {
		v.Base = document.Log[len(document.Log)-1].File
	}
	return v, nil
}

// Book holds the versions of tables that were current, in order. It reads them from the metadata
// logs of the latest files. It is not safe for concurrent use.
type Book struct {
	chains map[string][]Version
	known  map[string]bool // the locations of all versions, including forgotten ones
}

// NewBook returns a book without tables.
func NewBook() *Book { return &Book{map[string][]Version{}, map[string]bool{}} }

// Extend adds the versions of a table made since the last call, up to the version at location.
func (b *Book) Extend(table, location string) error {
	chain := b.chains[table]
	last := ""
	if len(chain) > 0 {
		last = chain[len(chain)-1].Location
	}
	var added []Version
	for at := location; at != last; {
		if at == "" || b.known[at] {
			return fmt.Errorf("%s of %s was not made on top of %s", location, table, last)
		}
		v, err := readVersion(at)
		if err != nil {
			return err
		}
		b.known[at] = true
		added = append(added, v)
		at = v.Base
	}
	slices.Reverse(added)
	if len(chain) == 0 && added[0].Transfer != "" {
		chain = []Version{{}} // a transfer made the table, so the chain begins empty
	}
	b.chains[table] = append(chain, added...)
	return nil
}

// Chains returns the versions of each table since Forget, oldest first. The chain of a table made
// by a transfer begins with an empty version. The caller must not modify the chains.
func (b *Book) Chains() map[string][]Version { return b.chains }

// Forget keeps only the last version of each table.
func (b *Book) Forget() {
	for table, chain := range b.chains {
		b.chains[table] = []Version{chain[len(chain)-1]}
	}
}

// Knows reports whether the version at location was current once.
func (b *Book) Knows(location string) bool { return b.known[location] }

// Leftovers returns the metadata files below folder that are neither a present nor a former version
// of a table in the book.
func (b *Book) Leftovers(folder string) (locations []string, err error) {
	err = filepath.WalkDir(folder, func(path string, _ fs.DirEntry, err error) error {
		if os.IsNotExist(err) {
			return nil // deleted in the meantime
		}
		if err == nil && strings.HasSuffix(path, ".metadata.json") && !b.known[fileScheme+path] {
			locations = append(locations, fileScheme+path)
		}
		return err
	})
	return locations, err
}

// madeBySingle reports whether a commit to one table has written the file at location. Only such a
// commit may leave a file behind, if it was interrupted. If the file no longer exists, madeBySingle
// returns false.
func madeBySingle(location string) bool {
	v, err := readVersion(location)
	return err == nil && strings.HasSuffix(v.Transfer, singleSuffix)
}
