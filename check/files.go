package check

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"moorage"
	"moorage/registry"
	"moorage/storage"
)

// Bounds on what is asked of a storage that does not answer.
const (
	// fileTimeout is how long one file may take. A storage that needs longer does not answer.
	fileTimeout = 10 * time.Second
	// refusalsMax is how many files in a row a storage may refuse to read. Then it refuses all: as
	// it does when credentials are wrong.
	refusalsMax = 3
)

// answering holds how the storages have answered in both looks of a run. It is not safe for
// concurrent use.
type answering struct {
	places map[string]*placeAnswers // by what the place is made of
}

// placeAnswers are those of one storage.
type placeAnswers struct {
	whose   string // the warehouse and the location
	refused int    // files in a row
	over    bool   // it is not asked any more
	files   int    // that could not be read, or were not asked for, in the present look
	failure error  // the first
}

// at returns the answers of the storage that reaches location in place.
func (a *answering) at(warehouse, location string, place storage.Place) *placeAnswers {
	at := location
	if parsed, err := storage.Parse(location); err == nil {
		at = storage.Location{Scheme: parsed.Scheme, Authority: parsed.Authority, Path: "/"}.String()
	}
	key := warehouse + "\x00" + at + "\x00" + place.Secret.ID
	for _, name := range slices.Sorted(maps.Keys(place.Options)) {
		key += "\x00" + name + "\x00" + place.Options[name]
	}
	answers, ok := a.places[key]
	if !ok {
		answers = &placeAnswers{whose: fmt.Sprintf("at %s, of warehouse %s", at, warehouse)}
		a.places[key] = answers
	}
	return answers
}

// again forgets the counts of the look before, and keeps which storages do not answer.
func (a *answering) again() {
	for _, answers := range a.places {
		answers.files = 0
	}
}

// unread returns the sentences of Report.Unread.
func (a *answering) unread() []string {
	unread := []string{}
	for _, answers := range a.places {
		if answers.files > 0 {
			files := counted(answers.files)
			unread = append(unread, fmt.Sprintf("%s %s: %s", files, answers.whose, plain(answers.failure)))
		}
	}
	slices.Sort(unread)
	return unread
}

func counted(files int) string {
	if files == 1 {
		return "1 file"
	}
	return fmt.Sprintf("%d files", files)
}

// plain returns what went wrong, without the names of functions that errors carry for logs.
func plain(err error) string {
	for {
		e, ok := err.(*moorage.Error)
		switch {
		case ok && e.Message != "":
			return e.Message
		case ok && e.Err != nil:
			err = e.Err
		default:
			return err.Error()
		}
	}
}

// ask reads something of a storage, within fileTimeout. It returns false if that could not be read
// because of the storage, which is remembered, or was not asked for because it does not answer. The
// error is then nil. Any other error is about what was to be read.
func (p *placeAnswers) ask(ctx context.Context, read func(context.Context) error) (bool, error) {
	if p.over {
		p.files++
		return false, nil
	}
	limited, cancel := context.WithTimeout(ctx, fileTimeout)
	defer cancel()
	err := read(limited)
	if ctx.Err() != nil {
		return false, ctx.Err()
	}
	if err == nil || isAboutFile(err) {
		p.refused = 0
		return true, err
	}
	p.files++
	p.refused++
	if late := limited.Err() != nil; p.failure == nil && late {
		p.failure = fmt.Errorf("there was no answer within %s: %s", fileTimeout, plain(err))
	} else if p.failure == nil {
		p.failure = err
	}
	silent := limited.Err() != nil ||
		errors.Is(err, storage.ErrUnavailable) || errors.Is(err, storage.ErrNoCredentials)
	p.over = silent || p.refused == refusalsMax
	return false, nil
}

// isAboutFile reports whether err says what a file is or where it lies, and not that its storage
// did not hand it out.
func isAboutFile(err error) bool {
	for _, kind := range []error{storage.ErrNotFound, storage.ErrOutside, storage.ErrLocation} {
		if errors.Is(err, kind) {
			return true
		}
	}
	switch moorage.KindOf(err) {
	case moorage.KindInternal, moorage.KindUnavailable, moorage.KindTooManyRequests:
		return false
	}
	return true
}

// files reports live tables whose metadata file is missing, does not parse or is not theirs. It
// leaves out dropped tables: some engines delete the files themselves once the name is gone.
func (l *look) files(ctx context.Context) error {
	l.storages.again()
	pointers := slices.SortedFunc(maps.Values(l.pointers), func(a, b pointerAt) int {
		return strings.Compare(a.value.MetadataLocation, b.value.MetadataLocation)
	})
	for _, pointer := range pointers {
		if pointer.state != registry.StateLive || l.hidden(registry.WarehouseKey(pointer.value.Warehouse)) {
			continue
		}
		uuid, read, err := l.readUUID(ctx, pointer)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case moorage.KindOf(err) == moorage.KindNotFound:
			l.problem("%s: its metadata file %s is missing", pointer, pointer.value.MetadataLocation)
		case err != nil:
			l.problem("%s: %s", pointer, plain(err))
		case read && !strings.EqualFold(uuid, pointer.value.TableUUID):
			l.problem("%s: the metadata file has the table-uuid %s, not %s", pointer, uuid, pointer.value.TableUUID)
		}
	}
	return nil
}

// readUUID reads a table's metadata file. It reports a table at a location that its warehouse does
// not allow. It then reads the file by what the table has claimed. It returns false where the
// storage let it read nothing.
func (l *look) readUUID(ctx context.Context, pointer pointerAt) (uuid string, read bool, err error) {
	at := pointer.value
	readIn := func(place storage.Place) {
		answers := l.storages.at(at.Warehouse, at.MetadataLocation, place)
		read, err = answers.ask(ctx, func(ctx context.Context) (err error) {
			uuid, err = l.config.Files.UUIDIn(ctx, place, at)
			return err
		})
	}
	warehouse, ok := l.warehouses[at.Warehouse]
	if ok && (at.Storage == nil || maps.Equal(at.Storage, warehouse.Storage)) {
		readIn(l.config.Files.PlaceOf(warehouse))
		if !errors.Is(err, storage.ErrOutside) {
			return uuid, read, err
		}
		l.problem("%s: warehouse %s does not allow its location, so loads of it are refused: "+
			"start the server, and this check, with --allow-location for %s",
			pointer, at.Warehouse, at.MetadataLocation)
	}
	readIn(l.config.Files.OwnPlaceOf(at))
	return uuid, read, err
}
