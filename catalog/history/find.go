package history

import (
	"context"

	"moorage"
	"moorage/access"
	"moorage/catalog/directory"
	"moorage/catalog/gate"
	"moorage/ledger"
	"moorage/registry"
)

// sameNameMax is the maximum number of dropped objects of one name that a request looks at.
const sameNameMax = 100

// find finds the requested object, and the beginning of its history.
//
// If the live object of the name is hidden from the caller, it is treated as if it did not exist.
// So the caller may get a dropped object that had the name.
func (w *walk) find(ctx context.Context) error {
	asked := w.asked
	if !asked.ID.IsZero() {
		if found, err := w.findPointer(ctx); found || err != nil {
			return err
		}
	}
	missing := moorage.Errorf(moorage.KindNotFound, "There is no object with the id %s", asked.ID)
	if asked.Kind == "" {
		return missing
	}
	if asked.ID.IsZero() {
		if missing = w.findLive(ctx); !isMissing(missing) {
			return missing
		}
	}
	found, err := w.findDropped(ctx)
	if found || err != nil {
		return err
	}
	return missing
}

// isMissing reports whether err means that the object does not exist or is hidden from the caller.
func isMissing(err error) bool {
	switch moorage.KindOf(err) {
	case moorage.KindNoSuchTable, moorage.KindNoSuchView, moorage.KindNoSuchNamespace:
		return err != nil
	}
	return err != nil && moorage.IsHidden(err)
}

func asker(caller moorage.Caller) directory.Asker {
	return directory.Asker{Caller: caller, Verb: gate.LoadHistory}
}

// needed returns the privilege that a caller needs on the object.
func needed() access.Privileges { return gate.LoadHistory.Needs(gate.OfObject, gate.Always) }

// kindNamed returns the directory.Kind for a name: tables or views.
func kindNamed(kind string) *directory.Kind {
	if kind == registry.ItemView {
		return directory.View()
	}
	return directory.Table()
}

// findPointer finds the table or view with the requested ID, in any state. found is false if it
// does not exist or is hidden from the caller.
func (w *walk) findPointer(ctx context.Context) (found bool, err error) {
	records, err := w.config.Ledger.Get(ctx, registry.PointerKey(w.asked.ID))
	if err != nil || !records[0].Exists() {
		return false, err
	}
	pointer, err := ledger.Decode[registry.Pointer](records[0])
	if err != nil {
		return false, err
	}
	if named := w.asked.Ident.Warehouse; named != "" && named != pointer.Warehouse {
		return false, nil
	}
	if records[0].State.IsDropped() {
		err = w.takeDropped(ctx, records[0], pointer)
	} else {
		var live *directory.Found
		live, err = w.config.Directory.FindFor(ctx, asker(w.caller), needed(), directory.KindOf(pointer),
			pointer.Identifier())
		if err == nil && live.Pointer.ID != w.asked.ID {
			return false, nil // it has just been renamed or dropped
		}
		if err == nil {
			w.takeLive(live)
		}
	}
	if isMissing(err) || moorage.KindOf(err) == moorage.KindNoSuchWarehouse && err != nil {
		return false, nil
	}
	return err == nil, err
}

// findLive finds the live object of the requested name.
func (w *walk) findLive(ctx context.Context) error {
	asked := w.asked
	if asked.Kind == registry.ItemNamespace {
		path, err := w.config.Directory.PathFor(ctx, asker(w.caller), needed(), asked.Ident)
		if err != nil {
			return err
		}
		record := path.Record()
		namespace, err := ledger.Decode[registry.Namespace](record)
		if err != nil {
			return err
		}
		w.found.Object = Object{ID: path.ID(), Kind: asked.Kind, Ident: asked.Ident, State: ObjectLive}
		w.chain = chain{
			ledger: w.config.Ledger, id: path.ID(), key: record.Key, next: namespace.LastIn(record.State).Change,
			wrote: record.ETag,
		}
		return nil
	}
	live, err := w.config.Directory.FindFor(ctx, asker(w.caller), needed(), kindNamed(asked.Kind), asked.Ident)
	if err == nil {
		w.takeLive(live)
	}
	return err
}

// takeLive makes a live table or view the subject of the history.
func (w *walk) takeLive(live *directory.Found) {
	w.take(live.Record, live.Pointer, ObjectLive)
	w.live = live
}

// take makes a table or view the subject of the history. record is its record.
func (w *walk) take(record registry.Record, pointer registry.Pointer, state string) {
	w.found.Object = Object{
		ID: pointer.ID, Kind: pointer.Kind(), Ident: pointer.Identifier(), UUID: pointer.TableUUID, State: state,
		MetadataLocation: pointer.MetadataLocation,
	}
	w.chain = chain{
		ledger: w.config.Ledger, id: pointer.ID, key: record.Key, next: pointer.LastIn(record.State).Change,
		pointer: pointer,
	}
}

// takeDropped makes a dropped table or view the subject of the history, if the caller may see it.
func (w *walk) takeDropped(ctx context.Context, record registry.Record, pointer registry.Pointer) error {
	above, err := w.config.Directory.AboveOf(ctx, pointer)
	if err != nil {
		return err
	}
	dropped := &directory.Found{Record: record, Pointer: pointer, Above: above}
	if err := w.mayRead(ctx, dropped.Object(pointer.Identifier()), kindNamed(pointer.Kind())); err != nil {
		return err
	}
	records, err := w.config.Ledger.Get(ctx, pointer.DroppedKey(record.State))
	if err != nil {
		return err
	}
	w.take(record, pointer, ObjectDropped)
	w.live = dropped
	object := &w.found.Object
	var unread error
	if object.Dropped, unread = registry.Decode[registry.Dropped](records[0]); unread != nil {
		object.Dropped = pointer.AsDropped(record.State, registry.Change{}) // only a hint
	}
	if record.State == registry.StatePurging {
		object.State = ObjectPurging
	}
	object.Purge, object.EndsAt = PurgeOf(pointer, record.State, w.config.UndropWindow)
	return nil
}

// mayRead returns nil if the caller may see the history of an object that is gone. kind supplies
// the error for a missing object.
func (w *walk) mayRead(ctx context.Context, object gate.Object, kind *directory.Kind) error {
	if w.config.Guard == nil {
		return nil
	}
	question := gate.Question{Caller: w.caller, Verb: gate.LoadHistory, Object: object, Asked: needed()}
	if object.Ident.Name != "" {
		question.Missing = kind.NoSuch(object.Ident)
	}
	return w.config.Guard.Decide(ctx, question)
}

// findDropped finds the latest dropped object of the name that is visible to the caller.
func (w *walk) findDropped(ctx context.Context) (found bool, err error) {
	ident := w.asked.Ident
	path, err := w.config.Directory.Path(ctx, ident.Warehouse, nil)
	if err != nil {
		return false, err
	}
	namespace, name := ident.Namespace, ident.Name
	if w.asked.Kind == registry.ItemNamespace {
		last := len(namespace) - 1
		namespace, name = namespace[:last], namespace[last]
	}
	prefix := registry.DroppedNamePrefix(path.ID(), namespace, name)
	records, err := w.config.Ledger.List(ctx, registry.TableDropped, prefix, "", sameNameMax)
	if err != nil {
		return false, err
	}
	for _, record := range records {
		dropped, unread := registry.Decode[registry.Dropped](record)
		if unread != nil || dropped.Kind != w.asked.Kind || !w.asked.ID.IsZero() && dropped.ID != w.asked.ID {
			continue
		}
		if record.State == registry.StateEnded {
			err = w.takeEnded(ctx, dropped)
		} else {
			err = w.takeIfDropped(ctx, dropped.ID)
		}
		if !isMissing(err) {
			return err == nil, err
		}
	}
	return false, nil
}

// takeIfDropped makes the table or view with this ID the subject of the history, if it is dropped
// and visible to the caller. If it is live again, the error is the one for a missing object.
func (w *walk) takeIfDropped(ctx context.Context, id registry.ID) error {
	records, err := w.config.Ledger.Get(ctx, registry.PointerKey(id))
	if err != nil {
		return err
	}
	if !records[0].State.IsDropped() {
		return kindNamed(w.asked.Kind).NoSuch(w.asked.Ident)
	}
	pointer, err := ledger.Decode[registry.Pointer](records[0])
	if err != nil {
		return err
	}
	return w.takeDropped(ctx, records[0], pointer)
}

// takeEnded makes an object that is gone for good the subject of the history. This requires that
// the caller may see the nearest container that still exists.
func (w *walk) takeEnded(ctx context.Context, dropped registry.Dropped) error {
	event := Event{Time: dropped.At, Kind: dropped.Kind, Ident: dropped.Ident, ObjectID: dropped.ID}
	above, err := w.viewer.above(ctx, event, dropped.Ident)
	if err != nil {
		return err
	}
	kind := kindNamed(dropped.Kind)
	err = w.mayRead(ctx, gate.Object{Ident: dropped.Ident, Path: above}, kind)
	if moorage.KindOf(err) == moorage.KindForbidden && err != nil {
		return kind.NoSuch(dropped.Ident) // the caller sees the container, but not its former contents
	}
	if err != nil {
		return err
	}
	w.found.Object = Object{
		ID: dropped.ID, Kind: dropped.Kind, Ident: dropped.Ident, UUID: dropped.UUID, State: ObjectEnded,
		Dropped: dropped, Purge: PurgeNone,
	}
	if dropped.How == registry.EndedPurge {
		w.found.Object.Purge = PurgeBegun
	}
	w.chain = chain{ledger: w.config.Ledger, id: dropped.ID, next: dropped.EndedChange}
	if dropped.EndedChange.IsZero() {
		w.chain.next = dropped.Change
	}
	if dropped.Kind != registry.ItemNamespace {
		w.chain.key = registry.PointerKey(dropped.ID)
	}
	return nil
}
