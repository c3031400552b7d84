package check

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strings"

	"moorage"
	"moorage/registry"
)

// readRecord reads the value of record, whose state must be one of states. It returns false if the
// record is damaged, or was written by a later version of the server. In that case, l remembers the
// reason, and the caller continues with the other records.
func readRecord[T registry.Value](l *look, record registry.Record, states ...registry.State) (T, bool) {
	value, err := registry.Decode[T](record)
	if err == nil && !slices.Contains(states, record.State) {
		err = fmt.Errorf("it has the impossible state %s", record.State)
	}
	if err != nil {
		l.unreadable[record.Key] = err
	}
	return value, err == nil
}

// identifies reports whether id, a required field of record, is not zero. If it is zero, record
// counts as unreadable.
func (l *look) identifies(record registry.Record, id registry.ID) bool {
	if id.IsZero() {
		l.unreadable[record.Key] = fmt.Errorf("it holds no id")
	}
	return !id.IsZero()
}

// hidden reports whether the record at key is unreadable.
func (l *look) hidden(key registry.Key) bool { return l.unreadable[key] != nil }

// hiddenIn reports whether the warehouse has an unreadable namespace, or may itself be unreadable.
// If so, a namespace that seems to be missing may be the unreadable one.
func (l *look) hiddenIn(warehouse registry.ID) bool {
	_, known := l.namespaces[warehouse]
	for key := range l.unreadable {
		switch key.Table {
		case registry.TableWarehouse:
			if !known {
				return true
			}
		case registry.TableNamespace:
			if at, err := splitNamespaceKey(key); err == nil && at.warehouse == warehouse {
				return true
			}
		}
	}
	return false
}

// hiddenPath reports whether the record of the namespace, of a namespace above it, or of its
// warehouse is unreadable.
func (l *look) hiddenPath(warehouse string, namespace moorage.Namespace) bool {
	key := registry.WarehouseKey(warehouse)
	root := l.levels[key]
	for _, level := range namespace {
		if l.hidden(key) {
			return true
		}
		key = registry.NamespaceKey(root, l.levels[key], level)
	}
	return l.hidden(key)
}

// unread reports the unreadable records. It must use the same words in both looks, because Check
// reports only problems that both looks describe in the same words.
func (l *look) unread() {
	holders := l.holders()
	for key, err := range l.unreadable {
		l.problem("%s cannot be read: %s (%s; %s)", key, err, l.concern(key, holders), remedy(key))
	}
}

// holders returns the table or view to which each unreadable record belongs, as far as pointers
// show it.
func (l *look) holders() map[registry.Key]pointerAt {
	holders := map[registry.Key]pointerAt{}
	for _, pointer := range l.pointers {
		keys := []registry.Key{registry.UUIDKey(pointer.value.TableUUID), registry.LabelKey(pointer.value.ID)}
		if pointer.state == registry.StateLive {
			keys = append(keys, registry.EntryKey(pointer.value.NamespaceID, pointer.value.Name))
		} else {
			keys = append(keys, pointer.value.EndKey())
		}
		for _, location := range pointer.value.Claims {
			keys = append(keys, registry.LocationKey(location))
		}
		for _, key := range keys {
			if other, ok := holders[key]; l.hidden(key) && (!ok || pointer.succeeds(other)) {
				holders[key] = pointer
			}
		}
	}
	return holders
}

// succeeds reports whether p is more likely than other to be the holder of a claim. A live table is
// more likely than a dropped one. Of two dropped tables, the one that was dropped last is more
// likely.
func (p pointerAt) succeeds(other pointerAt) bool {
	if live := p.state == registry.StateLive; live != (other.state == registry.StateLive) {
		return live
	}
	return cmp.Or(p.value.Since.Compare(other.value.Since), bytes.Compare(other.value.ID[:], p.value.ID[:])) > 0
}

// concern describes the object to which an unreadable record belongs, as far as other records show
// it.
func (l *look) concern(key registry.Key, holders map[registry.Key]pointerAt) string {
	holder, held := holders[key]
	whose := "a table or view"
	if held {
		whose = holder.String()
	}
	switch key.Table {
	case registry.TableWarehouse:
		return "the warehouse " + key.ID
	case registry.TableNamespace:
		return l.namespaceName(key)
	case registry.TableEntry:
		if !held {
			whose = l.entryName(key)
		}
		return "the name of " + whose
	case registry.TablePointer:
		if caller, ok := l.callers[key]; ok {
			return "it is called " + l.entryName(caller)
		}
		return "a table or view, maybe a dropped one"
	case registry.TableUUID:
		return "the table-uuid of " + whose
	case registry.TableLocation:
		return "the location of " + whose
	case registry.TableTombstone:
		return "what a former table or view may have left there"
	case registry.TableLabel:
		return "the labels of " + whose + ", which loads leave out"
	case registry.TableDropped:
		return "who dropped a table, view or namespace: it is not found by its name"
	case registry.TableTask:
		return l.taskName(key, holder)
	case registry.TablePrincipal, registry.TableRole, registry.TableGrants:
		return "access policy: it grants nothing"
	case registry.TableAccess:
		return "whether access is on, or what nodes share for it"
	}
	return "what a request with an Idempotency-Key was answered"
}

// remedy describes what an operator can do about an unreadable record.
func remedy(key registry.Key) string {
	switch key.Table {
	case registry.TableTask:
		return "see moorage doctor"
	case registry.TableIdempotency:
		return "a client that repeats that request has to check whether it happened"
	}
	return "run the version that wrote it, or restore a backup"
}

// taskName describes the owner of a task. awaiting is the dropped table that waits for the task, if
// there is one.
func (l *look) taskName(task registry.Key, awaiting pointerAt) string {
	var id registry.ID
	switch err := id.UnmarshalText([]byte(task.ID)); {
	case err == nil && l.unfinished[id]:
		return "it says why that transaction was given up"
	case awaiting.awaits(task):
		return "the purge of " + awaiting.String()
	}
	return "no dropped table awaits it"
}

// namespaceName returns the name of the namespace with this key.
func (l *look) namespaceName(key registry.Key) string {
	at, err := splitNamespaceKey(key)
	if _, ok := l.namespaces[at.parent]; err != nil || !ok {
		return "a namespace"
	}
	return "the namespace " + append(l.path(at.parent), at.name).String()
}

// entryName returns the name of an entry, with the namespace if it is known.
func (l *look) entryName(entry registry.Key) string {
	namespace, name, _ := strings.Cut(entry.ID, "/")
	var parent registry.ID
	if err := parent.UnmarshalText([]byte(namespace)); err != nil {
		return "a table or view"
	}
	return moorage.Identifier{Namespace: l.path(parent), Name: name}.String()
}
