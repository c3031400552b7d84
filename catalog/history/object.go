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
	// PageMax is the maximum number of versions on a page of an object's history.
	PageMax = 50
	// stepsMax is the maximum number of changes read for one page. It is larger than PageMax,
	// because some changes yield no event: internal steps, and changes that are hidden from the
	// caller.
	stepsMax = 200
)

// The states of an object.
const (
	ObjectLive    = "live"
	ObjectDropped = "dropped" // it can be restored
	ObjectPurging = "purging" // its files are being deleted
	ObjectEnded   = "ended"   // it is gone for good
)

// The states of the purge of a dropped object.
const (
	PurgeNone    = "none"
	PurgeWaiting = "waiting" // it can still be cancelled
	PurgeBegun   = "begun"
)

// PurgeOf returns the state of a dropped object's purge, given the object's pointer and the state
// of its record. endsAt is the time until which the object can be restored; it is zero if the
// object cannot be. window is the undrop window.
func PurgeOf(pointer registry.Pointer, state registry.State, window time.Duration) (purge string, endsAt time.Time) {
	switch {
	case state == registry.StatePurging:
		return PurgeBegun, time.Time{}
	case pointer.Task.IsZero():
		return PurgeNone, pointer.Since.Add(window)
	}
	return PurgeWaiting, pointer.PurgeAt() // until a worker begins it
}

// File is a metadata file with the time of its version.
type File struct {
	Location string
	Time     time.Time
}

// Asked selects an object, and a page of its history.
type Asked struct {
	// Kind is registry.ItemTable, registry.ItemView or registry.ItemNamespace, and Ident is the
	// name. The name refers to the live object of that name, or else to the last one that had it.
	// Kind is empty if only ID is set.
	Kind  string
	Ident moorage.Identifier
	// ID is the object's ID, which stays the same through renames. If it is zero, Kind and Ident
	// alone select the object.
	ID registry.ID
	// After is the Next of the previous page, or empty. Limit is at most PageMax.
	After string
	Limit int
}

// Object is the subject of a history, in its present state.
type Object struct {
	ID               registry.ID
	Kind             string
	Ident            moorage.Identifier // the last name, if the object is gone
	UUID             string             // of a table or view
	State            string             // ObjectLive or another constant of its group
	MetadataLocation string             // empty for a namespace, and for an object that ended
	// The fields below are set for an object that is not live. EndsAt is the time, by the store's
	// clock, until which the object can be restored. It is zero if the object cannot be restored.
	Dropped registry.Dropped
	Purge   string // PurgeNone or another constant of its group
	EndsAt  time.Time
}

// History is a page of the history of an object.
type History struct {
	Object Object
	// Versions are the changes of the object that are visible to the caller, latest first. At the
	// end there may be versions known only from the table's metadata log, because their changes
	// were deleted. Those have only a time, a location and a version.
	Versions []Event
	// IsComplete is true if the page includes the creation of the object, and no page left out a
	// change.
	IsComplete bool
	Next       string // pass it as After for the next page; empty on the last page
}

// Of returns a page of the history of an object. The caller needs describe on the object in its
// present state. Each change is shown as Read shows it.
//
// The walk reads the record of each change, so it is exact across renames, drops and undrops.
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
	live   *directory.Found // a table or view with a record
	files  []File
	made   int  // the number of metadata files made by the view's changes so far
	hides  bool // the walk has left out a change
	// oldest is the metadata file after the last change that was read. isMade is true if that
	// change made the file.
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
		// If the document cannot be read, the versions have no names. The changes are still known.
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

// A position in a history begins with a mark. A position behind a change, or the location of the
// next metadata file, follows.
const (
	afterChange = "\x00c"
	atFile      = "\x00f"
)

var errPosition = moorage.Errorf(moorage.KindBadRequest, "Invalid pageToken: it was not made for a history")

// position returns the position behind a change. It consists of the change's ID, the number of
// files made by the changes up to there, and whether a page left out a change.
func (w *walk) position(change registry.ID) string {
	return fmt.Sprintf("%s%s %d %t", afterChange, change, w.made, w.hides)
}

// begin goes to the position where the page begins. If no changes are left, file is the metadata
// file with which the page begins.
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

// reach records the metadata file of a change that was read.
func (w *walk) reach(change registry.Change) {
	if item, ok := change.ItemOf(w.chain.id); ok {
		w.oldest = item.PointerAfter().MetadataLocation
		w.isMade = makesFile(item)
	}
}

// changes adds the events of the page. older is the latest metadata file that was not made by any
// of the changes read.
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

// name sets Version in the events of a change that made a metadata file.
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

// fileAt returns the index of a metadata file, or a negative number if the table's document does
// not name it.
func (w *walk) fileAt(location string) int {
	at := slices.IndexFunc(w.files, func(file File) bool { return file.Location == location })
	if at < 0 {
		return -2 // still negative for the next file
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

// older adds metadata files, beginning with file, until the page is full.
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
