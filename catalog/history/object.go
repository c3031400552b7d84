package history

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"moorage"
	"moorage/catalog/directory"
	"moorage/registry"
)

const (
	// PageMax is the most versions on a page of the history of an object.
	PageMax = 50
	// stepsMax bounds how many changes one page reads. It is more than PageMax, because internal
	// steps and changes that the caller must not see have no event.
	stepsMax = 200
)

// The states of an object.
const (
	ObjectLive    = "live"
	ObjectDropped = "dropped" // it can come back
	ObjectPurging = "purging" // its files are being deleted
	ObjectEnded   = "ended"   // it is gone for good
)

// The states of the purge of a dropped object.
const (
	PurgeNone    = "none"
	PurgeWaiting = "waiting" // it can be called off
	PurgeBegun   = "begun"
)

// PurgeOf returns the state of the purge of a dropped pointer, whose record has this state, and
// until when the object can come back: zero if it cannot. window is the undrop window.
func PurgeOf(pointer registry.Pointer, state registry.State, window time.Duration) (purge string, endsAt time.Time) {
	switch {
	case state == registry.StatePurging:
		return PurgeBegun, time.Time{}
	case pointer.Task.IsZero():
		return PurgeNone, pointer.Since.Add(window)
	}
	return PurgeWaiting, pointer.PurgeAt() // until a worker begins it
}

// File is a metadata file, and the time of its version.
type File struct {
	Location string
	Time     time.Time
}

// Asked names an object, and a page of its history.
type Asked struct {
	// Kind is registry.ItemTable, registry.ItemView or registry.ItemNamespace, and Ident the name.
	// The name means the live object that has it, or else the one that had it last. Kind is empty
	// if there is only an ID.
	Kind  string
	Ident moorage.Identifier
	// ID is the object's id, which stays through renames. Zero: any.
	ID registry.ID
	// After is the Next of the page before, or empty. Limit is at most PageMax.
	After string
	Limit int
}

// Object is the object of a history, as it is now.
type Object struct {
	ID               registry.ID
	Kind             string
	Ident            moorage.Identifier // the last name, if it is gone
	UUID             string             // of a table or view
	State            string             // ObjectLive or another constant of its group
	MetadataLocation string             // empty for a namespace, and for an object that ended
	// The fields below are set for an object that is not live. EndsAt is the time, by the store's
	// clock, until which it can come back. It is zero if it cannot.
	Dropped registry.Dropped
	Purge   string // PurgeNone or another constant of its group
	EndsAt  time.Time
}

// History is a page of the history of an object.
type History struct {
	Object Object
	// Versions are the changes of the object that the caller may see, the latest first. The last
	// ones may be metadata files that the table's metadata log names, but no change that is kept:
	// they have only a time, a location and a version.
	Versions []Event
	// IsComplete reports that the page has the creation of the object, and that no page left out a
	// change.
	IsComplete bool
	Next       string // the After of the next page; empty if this is the last page
}

// Of returns a page of the history of an object. The caller needs describe on the object as it is
// now. Of each change the caller sees what Read shows.
//
// The walk reads one record for each change, so it is exact through renames, drops and returns.
//
// Errors: the errors for missing and hidden objects; KindForbidden; KindBadRequest;
// KindNotAuthorized; KindUnavailable.
func (f *Feed) Of(ctx context.Context, caller moorage.Caller, asked Asked) (History, error) {
	const op = "history.Of"
	w := &walk{Feed: f, caller: caller, asked: asked}
	err := w.run(ctx)
	return w.found, moorage.Annotate(op, asked.Ident.String(), err)
}

// walk is one request for the history of an object.
type walk struct {
	*Feed
	caller moorage.Caller
	asked  Asked
	found  History

	viewer *viewer
	chain  chain
	live   *directory.Found // of a table or view that has a record
	files  []File
	made   int  // metadata files that the changes of a view made, up to here
	hides  bool // the walk left out a change
	// oldest is the metadata file after the last change that was read, which isMade if that change
	// made it.
	oldest string
	isMade bool
}

func (w *walk) run(ctx context.Context) (err error) {
	if w.viewer, err = w.Feed.viewer(ctx, w.caller, Filter{}); err != nil {
		return err
	}
	if err := w.find(ctx); err != nil {
		return err
	}
	w.oldest = w.found.Object.MetadataLocation
	if w.live != nil && w.config.Files != nil {
		// What cannot be read has no names of versions. The changes are known without it.
		if w.files, err = w.config.Files(ctx, w.live); err != nil && ctx.Err() != nil {
			return err
		}
	}
	limit := PageMax
	if w.asked.Limit > 0 {
		limit = min(limit, w.asked.Limit)
	}
	file, err := w.begin(ctx)
	if err != nil {
		return err
	}
	if file == "" {
		if file, err = w.changes(ctx, limit); err != nil {
			return err
		}
	}
	if w.found.Next == "" {
		w.older(file, limit)
	}
	return nil
}

// A position in a history is a mark and the position behind a change, or a mark and the location of
// the next metadata file.
const (
	afterChange = "\x00c"
	atFile      = "\x00f"
)

var errPosition = moorage.Errorf(moorage.KindBadRequest, "Invalid pageToken: it was not made for a history")

// position returns the position behind a change: its id, the number of files that the changes up to
// there made, and whether a page left out a change.
func (w *walk) position(change registry.ID) string {
	return fmt.Sprintf("%s%s %d %t", afterChange, change, w.made, w.hides)
}

// begin goes to the position where the page begins. file is the metadata file that the page begins
// with, if it has no changes any more.
func (w *walk) begin(ctx context.Context) (file string, err error) {
	if w.asked.After == "" {
		return "", nil
	}
	if file, isFile := strings.CutPrefix(w.asked.After, atFile); isFile {
		return file, nil
	}
	text, isChange := strings.CutPrefix(w.asked.After, afterChange)
	var digits string
	if n, err := fmt.Sscan(text, &digits, &w.made, &w.hides); !isChange || n < 3 || err != nil {
		return "", errPosition
	}
	var id registry.ID
	if err := id.UnmarshalText([]byte(digits)); err != nil {
		return "", errPosition
	}
	change, err := w.chain.resume(ctx, id)
	w.reach(change)
	return "", err
}

// reach notes the metadata file of a change that was read.
func (w *walk) reach(change registry.Change) {
	if item, ok := change.ItemOf(w.chain.id); ok {
		w.oldest = item.PointerAfter().MetadataLocation
		w.isMade = makesFile(item)
	}
}

// changes adds the events of the page. older is the latest metadata file that no change which was
// read made.
func (w *walk) changes(ctx context.Context, limit int) (older string, err error) {
	for steps := 0; ; steps++ {
		change, ok, err := w.chain.step(ctx)
		if err != nil {
			return "", err
		}
		if !ok {
			break
		}
		events := w.chain.eventsIn(change)
		if w.reach(change); w.isMade {
			w.name(events)
		}
		shown, err := w.shown(ctx, events)
		if err != nil {
			return "", err
		}
		for _, event := range shown {
			event.Count = len(shown)
			w.found.Versions = append(w.found.Versions, event)
		}
		w.hides = w.hides || len(shown) < len(events)
		isFull := len(w.found.Versions) >= limit || steps >= stepsMax || len(w.viewer.paths) >= namespacesMax
		if isFull && !w.chain.next.IsZero() && w.chain.canResume(change) {
			w.found.Next = w.position(change.ID)
			return "", nil
		}
	}
	w.found.IsComplete = w.chain.isComplete && !w.hides
	at := w.fileAt(w.oldest)
	if w.isMade {
		at++
	}
	if at < 0 || at >= len(w.files) {
		return "", nil
	}
	return w.files[at].Location, nil
}

// name sets the version of the events of a change that made a metadata file.
func (w *walk) name(events []Event) {
	back := w.fileAt(w.oldest)
	if w.found.Object.Kind == registry.ItemView {
		back = w.made
		w.made++
	}
	if back < 0 {
		return
	}
	for i := range events {
		events[i].Version = versionName(back)
	}
}

// versionName returns the name of the version that is n metadata files back.
func versionName(n int) string {
	if n == 0 {
		return "now"
	}
	return fmt.Sprintf("now~%d", n)
}

// fileAt returns the index of a metadata file, a negative number if the table does not name it.
func (w *walk) fileAt(location string) int {
	at := slices.IndexFunc(w.files, func(file File) bool { return file.Location == location })
	if at < 0 {
		return -2 // also for the file after it
	}
	return at
}

// shown returns the events that the caller may see.
func (w *walk) shown(ctx context.Context, events []Event) ([]Event, error) {
	if err := w.viewer.prepare(ctx, [][]Event{events}); err != nil {
		return nil, err
	}
	return w.viewer.show(ctx, events)
}

// older adds the metadata files from a location on, as far as the page has room.
func (w *walk) older(file string, limit int) {
	at := w.fileAt(file)
	if file == "" || at < 0 {
		return
	}
	object := w.found.Object
	for ; at < len(w.files); at++ {
		if len(w.found.Versions) >= limit {
			w.found.Next = atFile + w.files[at].Location
			return
		}
		w.found.Versions = append(w.found.Versions, Event{
			Time: w.files[at].Time, Kind: object.Kind, Ident: object.Ident, ObjectID: object.ID, UUID: object.UUID,
			MetadataLocation: w.files[at].Location, Version: versionName(at),
		})
	}
}
