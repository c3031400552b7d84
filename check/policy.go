package check

import (
	"slices"
	"strings"

	"moorage/registry"
)

// policyAt is a grants record and the id of its object.
type policyAt struct {
	object registry.ID
	value  registry.Grants
}

// principal and role check that records are readable.
func (l *look) principal(record registry.Record) {
	readRecord[registry.Principal](l, record, registry.StateNone)
	l.policy++
}

func (l *look) role(record registry.Record) {
	readRecord[registry.Role](l, record, registry.StateNone)
	l.policy++
}

func (l *look) grants(record registry.Record) {
	l.policy++
	value, ok := readRecord[registry.Grants](l, record, registry.StateNone)
	if !ok {
		return
	}
	object, err := registry.GrantsObject(record.Key)
	if err != nil {
		l.unreadable[record.Key] = err
		return
	}
	l.granted[record.Key] = policyAt{object, value}
}

// access reads the records that show whether access control is on.
func (l *look) access(record registry.Record) {
	switch {
	case record.Key == registry.EpochKey():
		_, l.on = readRecord[registry.Epoch](l, record, registry.StateNone)
	case record.Key == registry.RecentKey():
		readRecord[registry.Recent](l, record, registry.StateNone)
	case record.Key == registry.AccessStoreKey():
		readRecord[registry.AccessStore](l, record, registry.StateNone)
	case record.Key == registry.ConsoleKeyKey():
		readRecord[registry.ConsoleKey](l, record, registry.StateNone)
	case registry.IsMakerKey(record.Key):
		readRecord[registry.Maker](l, record, registry.StateNone)
	case strings.HasPrefix(record.Key.ID, registry.PublicKeyPrefix):
		readRecord[registry.PublicKey](l, record, registry.StateNone)
	default:
		l.problem("%s is not known", record.Key)
	}
}

// policies reports grants on objects that are gone or not marked as granted. It also reports grants
// whose record has the wrong ancestors for the object. In a store with access control off, it
// reports access policy.
func (l *look) policies() {
	if l.policy > 0 && !l.on && !l.hidden(registry.EpochKey()) {
		l.problem("there are %d records of access, and %s is missing: they have no effect",
			l.policy, registry.EpochKey())
	}
	for key, at := range l.granted {
		if at.object.IsZero() {
			continue
		}
		ancestors, marked, found := l.above(at.object)
		switch {
		case !found && mayBeHidden(l, at):
		case !found:
			l.problem("%s is on an object that does not exist", key)
		case !marked:
			l.problem("%s is on an object that does not record it, so the grants would outlive the object", key)
		case ancestors != nil && !slices.Equal(ancestors, at.value.Ancestors):
			l.problem("%s is not where its grants record it", key)
		}
	}
}

// above returns the ids of the containers of an object, nearest first, or nil if they are unknown.
// marked reports whether the object is marked as granted.
func (l *look) above(object registry.ID) (ancestors []registry.ID, marked, found bool) {
	if pointer, ok := l.pointers[object]; ok {
		if pointer.state != registry.StateLive || l.path(pointer.value.NamespaceID) == nil {
			return nil, pointer.value.Granted, true
		}
		return l.chain(pointer.value.NamespaceID), pointer.value.Granted, true
	}
	at, ok := l.namespaces[object]
	if !ok || at.parent.IsZero() {
		return nil, at.granted, ok
	}
	return l.chain(at.parent), at.granted, true
}

// chain returns id and the ids of its containers, nearest first, or nil if one is missing.
func (l *look) chain(id registry.ID) (ids []registry.ID) {
	for range len(l.namespaces) {
		at, ok := l.namespaces[id]
		if !ok {
			return nil
		}
		if ids = append(ids, id); at.parent.IsZero() {
			return ids
		}
		id = at.parent
	}
	return nil
}

// mayBeHidden reports whether the object of a grants record may exist although no record of it was
// read, because that record may be unreadable.
func mayBeHidden(l *look, at policyAt) bool {
	if l.hidden(registry.PointerKey(at.object)) {
		return true
	}
	for key := range l.unreadable {
		if key.Table == registry.TableWarehouse || key.Table == registry.TableNamespace {
			return true
		}
	}
	return false
}
