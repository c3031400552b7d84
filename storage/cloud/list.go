package cloud

import (
	"fmt"
	"strings"
	"time"

	"moorage/storage"
)

// Listing is a request for a page of the files in a folder.
type Listing struct {
	// Folder is the location of the folder, as the caller spells it. The page begins after After.
	Folder, After string
	// Bucket is the location of the bucket. Only its scheme and authority are used.
	Bucket storage.Location
	// Prefix is the prefix of the names of all objects in the folder.
	Prefix string
}

// Page returns an empty page. now is the server's time. If another page follows, more is true and
// next is where that page begins. Page returns an error if now is missing, or if more is true and
// next is empty.
func (l Listing) Page(now time.Time, more bool, next string) (storage.Page, error) {
	switch {
	case now.IsZero():
		return storage.Page{}, fmt.Errorf("list %s: the response has no date", l.Folder)
	case !more:
		return storage.Page{Now: now}, nil
	case next == "" || next == l.After:
		return storage.Page{}, fmt.Errorf("list %s: the server's list is incomplete and has no continuation", l.Folder)
	}
	return storage.Page{Now: now, Next: next}, nil
}

// Add adds an object to a page. It omits objects outside the folder. It also omits objects whose
// names no location can express, such as the names with a final slash that represent folders.
func (l Listing) Add(page *storage.Page, name string, info storage.Info) {
	location := storage.Location{Scheme: l.Bucket.Scheme, Authority: l.Bucket.Authority, Path: "/" + name}.String()
	parsed, err := storage.ParseFile(location)
	if err != nil || parsed.String() != location || !strings.HasPrefix(name, l.Prefix) {
		return
	}
	page.Files = append(page.Files, storage.Listed{Location: location, Info: info})
}
