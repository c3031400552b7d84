package jobs

import (
	"context"
	"maps"
	"slices"
	"strings"

	"moorage"
	"moorage/storage"
)

// foldersMax is the maximum number of folders that one search remembers, and also of metadata
// files.
const foldersMax = 100_000

// folders is a set of folders, by normalised location.
type folders map[string]bool

func (f folders) add(place storage.Location) { f[place.String()] = true }

// addText adds the folder at location, unless no storage accepts the location.
func (f folders) addText(location string) {
	if place, err := storage.Parse(location); err == nil {
		f.add(place)
	}
}

// hold reports whether place is in one of the folders.
func (f folders) hold(place storage.Location) bool {
	if len(f) == 0 {
		return false
	}
	for folder := place.Parent(); ; folder = folder.Parent() {
		if f[folder.String()] {
			return true
		}
		if folder.Path == "/" {
			return false
		}
	}
}

// first returns the first n folders, in order.
func (f folders) first(n int) []string {
	all := slices.Sorted(maps.Keys(f))
	return all[:min(n, len(all))]
}

// unregistered holds the metadata files outside the locations of all tables and views. A client may
// register a table from any of them.
type unregistered struct {
	known   map[string]bool
	unread  []string
	folders folders // where the tables of these metadata files have, or may have, files
}

// note adds a file if it is a metadata file. It returns false if there is no room for it.
func (u *unregistered) note(location string) bool {
	if strings.Contains(location[strings.LastIndexByte(location, '/')+1:], ".metadata.json") {
		u.add(location)
	}
	return len(u.known) <= foldersMax
}

// add adds an unread metadata file, and the folder of its table.
func (u *unregistered) add(location string) {
	place, err := storage.ParseFile(location)
	if err != nil || u.known[location] {
		return
	}
	u.known[location], u.unread = true, append(u.unread, location)
	folder := place.Parent()
	if strings.HasSuffix(folder.Path, "/metadata") {
		folder = folder.Parent()
	}
	u.folders.add(folder)
}

// list lists all files of the warehouse, and finds possible leftovers. It records metadata files at
// unclaimed locations, and folders of other warehouses. The next round uses both.
func (l *leftoverLook) list(ctx context.Context) error {
	l.found, l.more, l.kept = nil, false, make(map[string]int64)
	claims := newClaimed(l.jobs)
	for after := ""; ; {
		if err := l.jobs.budget.List(ctx, l.location); err != nil {
			return err
		}
		page, err := l.lister.List(ctx, l.location, after, listPage)
		if err != nil {
			return moorage.E("jobs.list", l.location, moorage.KindUnavailable, l.jobs.budget.Note(l.location, err))
		}
		l.now = page.Now
		if err := l.page(ctx, claims, page.Files); err != nil {
			return err
		}
		if after = page.Next; after == "" {
			return nil
		}
	}
}

// page does the work of list for one page.
func (l *leftoverLook) page(ctx context.Context, claims *claimed, files []storage.Listed) error {
	for _, file := range files {
		l.noteWarehouse(file.Location)
	}
	free, err := claims.free(ctx, files)
	if err != nil {
		return err
	}
	for _, file := range free {
		if !l.unregistered.note(file.Location) || len(l.others) > foldersMax {
			return &BlockedError{"too many metadata files, or folders of other warehouses, are outside of all tables"}
		}
		switch {
		case !l.mayBeLeft(file):
		case len(l.found) < l.most:
			l.found = append(l.found, file)
		default:
			l.more = true
		}
	}
	return nil
}

// noteWarehouse records a folder as a warehouse of this or another store, if location shows that a
// server keeps its own files there. The tables of another store are unknown here.
func (l *leftoverLook) noteWarehouse(location string) {
	above, _, own := strings.Cut(location, "/"+Folder+"/")
	if !own {
		return
	}
	if place, err := storage.Parse(above); err == nil && place != l.root {
		l.others.add(place)
	}
}

// mayBeLeft reports whether an unclaimed file may be a leftover. If not, it counts the reason. Once
// the files that tables reach are known, mayBeLeft uses them too.
func (l *leftoverLook) mayBeLeft(file storage.Listed) bool {
	why := l.staysFor(file)
	if why != "" {
		l.kept[why]++
	}
	return why == ""
}

// staysFor explains why an unclaimed file is not reported. It returns "" if nothing speaks against
// it.
func (l *leftoverLook) staysFor(file storage.Listed) string {
	place, err := storage.ParseFile(file.Location)
	switch {
	case err != nil, isHidden("/" + strings.TrimPrefix(place.Path, l.root.Path)):
		return keptHidden
	case l.others.hold(place):
		return keptWarehouse
	case !isOwn([]storage.Location{l.root}, file.Location):
		return keptMetadata
	case l.unregistered.folders.hold(place):
		return keptBeside
	case file.Modified.IsZero():
		return keptUndated
	case l.now.Sub(file.Modified) < l.olderThan:
		return keptYoung
	case l.reached == nil:
		return ""
	case l.reached.set.Has(file.Location):
		return keptReached
	case l.reached.set.HasElsewhere(file.Location), l.reached.set.LooksLike(file.Location):
		return keptLookAlike
	case l.reached.dropped.hold(place):
		return keptDropped
	}
	return ""
}
