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

// Bounds for a storage that does not answer.
const (
	// fileTimeout is the maximum time for one file. A storage that needs longer counts as not
	// answering.
	fileTimeout = 10 * time.Second
	// refusalsMax is the maximum number of files in a row that a storage may refuse. After that, it
	// counts as refusing all files, for example because of wrong credentials.
	refusalsMax = 3
)

// answering holds the results of each storage in both looks of a run. It is not safe for concurrent
// use.
type answering struct {
	places map[string]*placeAnswers // by the access settings of the storage
}

// placeAnswers holds the results of one storage.
type placeAnswers struct {
	whose   string // the warehouse and the location, for messages
	refused int    // number of files in a row that were refused
	over    bool   // the storage gets no more requests
	files   int    // number of unreadable or skipped files in the present look
	failure error  // the first failure
}

// resultsAt returns the results of the storage described by place. location is in that storage.
func (a *answering) resultsAt(warehouse, location string, place storage.Place) *placeAnswers {
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

// reset resets the counts of the previous look, but remembers which storages do not answer.
func (a *answering) reset() {
	for _, answers := range a.places {
		answers.files = 0
	}
}

// unread returns the sentences for Report.Unread.
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

// plain returns the error text without the function names, which are meant for logs.
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

// ask calls read, within fileTimeout. If the storage failed, ask remembers that, and returns false
// without an error. If the storage has stopped answering, ask returns the same without calling
// read. Any other error describes the file.
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

// isAboutFile reports whether err describes the file or its location, and not a failure of its
// storage.
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

// files reports live tables whose metadata file is missing, cannot be parsed or belongs to another
// table. It leaves out dropped tables, because some engines delete the files themselves after a
// drop.
func (l *look) files(ctx context.Context) error {
	l.storages.reset()
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

// readUUID reads a table's metadata file. If the warehouse does not allow the table's location,
// readUUID reports that. It then reads the file through the table's own claims. It returns false if
// the storage failed.
func (l *look) readUUID(ctx context.Context, pointer pointerAt) (uuid string, read bool, err error) {
	at := pointer.value
	readIn := func(place storage.Place) {
		answers := l.storages.resultsAt(at.Warehouse, at.MetadataLocation, place)
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
			"allow a folder of %s with moorage warehouse change %s --allow-location",
			pointer, at.Warehouse, at.MetadataLocation, moorage.ShellWord(at.Warehouse))
	}
	readIn(l.config.Files.OwnPlaceOf(at))
	return uuid, read, err
}
