package file

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"syscall"
	"time"

	"moorage/storage"
)

// plainFS is a fileSystem that can be walked without following links.
type plainFS interface {
	// Plain opens the folder called name. It returns fs.ErrNotExist if the folder is missing, or if
	// a part of the name is a link or not a folder.
	Plain(name string) (plainFolder, error)
}

// behindAll sorts after every name in a folder.
const behindAll = "\xff"

// plainFolder is a folder that was reached without following a link.
type plainFolder interface {
	folderFS
	ReadDir(n int) ([]fs.DirEntry, error)
	// Sub opens the folder called name directly in this folder. It fails if the name is a link, or
	// the mount point of another file system.
	Sub(name string) (plainFolder, error)
}

// List implements storage.Lister. The page's time is the file system's: List makes a file in the
// folder, reads its time and removes it.
func (s *Store) List(ctx context.Context, folder, after string, limit int) (storage.Page, error) {
	root, name, err := s.locate(ctx, folder)
	if err != nil {
		return storage.Page{}, err
	}
	normal, err := storage.NormaliseFile(folder)
	if err != nil {
		return storage.Page{}, err
	}
	l := &listing{store: s, root: root, after: after, limit: limit, prefix: strings.TrimSuffix(normal, "/") + "/"}
	_, err = ask(ctx, s.calls, aWrite(1, 0), func() (struct{}, error) { return struct{}{}, l.run(ctx, name) }, nil)
	if err != nil {
		return storage.Page{}, atLocation(folder, translate(folder, err))
	}
	if len(l.page.Files) == limit && l.page.Next == "" {
		l.page.Next = l.page.Files[limit-1].Location
	}
	return l.page, nil
}

// listing is one call of List.
type listing struct {
	store  *Store
	root   *root
	prefix string // location of the folder, with a slash
	after  string
	limit  int

	page storage.Page
}

func (l *listing) run(ctx context.Context, name string) error {
	l.page.Now = l.store.now()
	plain, ok := l.root.files.(plainFS)
	if !ok {
		return nil // the folder does not exist
	}
	top, err := plain.Plain(name)
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR), errors.Is(err, syscall.ELOOP):
		return nil
	case err != nil:
		return err
	}
	defer top.Close()
	if l.page.Now, err = l.store.clockOf(top); err != nil {
		return fmt.Errorf("read the clock of the file system: %w", err)
	}
	return l.walk(ctx, top, "")
}

// clockOf returns the time that the file system of folder gives to a new file.
func (s *Store) clockOf(folder folderFS) (now time.Time, err error) {
	name := s.newTemporary()
	made, err := folder.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return time.Time{}, err
	}
	found, err := made.Stat()
	if err == nil {
		now = found.ModTime()
	}
	return now, errors.Join(err, made.Close(), folder.Remove(name))
}

// walk lists the files of folder. below is folder's name relative to the listed folder.
func (l *listing) walk(ctx context.Context, folder plainFolder, below string) error {
	entries, isCut, err := l.entriesOf(ctx, folder, below)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		if len(l.page.Files) == l.limit || l.page.Next != "" {
			return nil
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		name := below + entry.Name()
		if !entry.IsDir() {
			l.add(folder, entry.Name(), name)
			continue
		}
		sub, err := folder.Sub(entry.Name())
		if err != nil {
			if isElsewhere(err) {
				continue
			}
			return err
		}
		err = l.walk(ctx, sub, name+"/")
		if err := errors.Join(err, sub.Close()); err != nil {
			return err
		}
	}
	if isCut && len(l.page.Files) < l.limit && l.page.Next == "" { // some entries are not files
		last := entries[len(entries)-1]
		l.page.Next = l.prefix + below + sortName(last)
		if last.IsDir() {
			l.page.Next += behindAll
		}
	}
	return nil
}

// entriesOf returns the first entries of a folder that may have locations after l.after, in the
// order of their locations. It returns only as many entries as the page can take, because a folder
// may have millions.
func (l *listing) entriesOf(ctx context.Context, folder plainFolder, below string) (
	found []fs.DirEntry, isCut bool, err error) {
	byName := func(a, b fs.DirEntry) int { return strings.Compare(sortName(a), sortName(b)) }
	wanted := l.limit - len(l.page.Files)
	first := func() { // keep only the first entries
		slices.SortFunc(found, byName)
		if len(found) > wanted {
			isCut = true
			clear(found[wanted:])
			found = found[:wanted]
		}
	}
	for {
		entries, err := folder.ReadDir(namesAtOnce)
		for _, entry := range entries {
			if entry.IsDir() && l.mayHold(below+entry.Name()+"/") ||
				entry.Type().IsRegular() && l.prefix+below+entry.Name() > l.after {
				found = append(found, entry)
			}
		}
		if err != nil || len(entries) == 0 { // io.EOF, or a folder that was removed
			first()
			break
		}
		if len(found) >= 2*l.limit+namesAtOnce {
			first()
		}
		if err := ctx.Err(); err != nil {
			return nil, false, err
		}
	}
	return found, isCut, nil
}

// mayHold reports whether a folder may have locations after l.after.
func (l *listing) mayHold(folder string) bool {
	location := l.prefix + folder
	return location > l.after || strings.HasPrefix(l.after, location) && l.after != location+behindAll
}

// sortName returns the sort key of an entry. The name of a folder gets a slash, as in the locations
// below it.
func sortName(entry fs.DirEntry) string {
	if entry.IsDir() {
		return entry.Name() + "/"
	}
	return entry.Name()
}

// add adds a file to the page. It leaves out a file that is gone or is being made, and a file whose
// name no location can express.
func (l *listing) add(folder plainFolder, base, name string) {
	location := l.prefix + name
	if parsed, err := storage.ParseFile(location); err != nil || parsed.String() != location {
		return
	}
	found, err := folder.Lstat(base)
	if err != nil || !found.Mode().IsRegular() || l.root.isHidden(l.nameOf(location)) {
		return
	}
	l.page.Files = append(l.page.Files, storage.Listed{Location: location, Info: info(found)})
}

// nameOf returns the name of a location in the root.
func (l *listing) nameOf(location string) string {
	_, name, _ := l.store.rootOf(location)
	return name
}

// isElsewhere reports whether err means that a folder is gone, or has become a link or a mount.
func isElsewhere(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) || errors.Is(err, syscall.ELOOP) ||
		errors.Is(err, syscall.EXDEV)
}

var _ storage.Lister = (*Store)(nil)
