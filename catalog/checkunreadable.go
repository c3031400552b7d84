package catalog

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strings"

	"moorage"
	"moorage/registry"
)

// readRecord reads the value of record, which must be in one of states. If it cannot, be the record damaged or of a later version, k
// remembers why, and it returns false: the caller goes on with the others.
func readRecord[T registry.Value](k *checker, record registry.Record, states ...registry.State) (value T, ok bool) {
	value, err := registry.Decode[T](record)
	if err == nil && !slices.Contains(states, record.State) {
		err = fmt.Errorf("it is %s, which none can be", record.State)
	}
	if err != nil {
		k.unreadable[record.Key] = err
	}
	return value, err == nil
}

// identifies tells whether id, which record must hold, identifies something; a record that does not hold it cannot be read.
func (k *checker) identifies(record registry.Record, id registry.ID) bool {
	if id.IsZero() {
		k.unreadable[record.Key] = fmt.Errorf("it holds no id")
	}
	return !id.IsZero()
}

// hidden tells whether there is a record of key, and it cannot be read.
func (k *checker) hidden(key registry.Key) bool { return k.unreadable[key] != nil }

// hiddenIn tells whether the record of a namespace that nobody has read may be one of those, in the warehouse, that cannot be read, or that of
// the warehouse itself.
func (k *checker) hiddenIn(warehouse registry.ID) bool {
	_, known := k.namespaces[warehouse]
	for key := range k.unreadable {
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

// hiddenPath tells whether the record of the namespace, of one above it, or of its warehouse cannot be read.
func (k *checker) hiddenPath(warehouse string, namespace moorage.Namespace) bool {
	key := registry.WarehouseKey(warehouse)
	root := k.levels[key]
	for _, level := range namespace {
		if k.hidden(key) {
			return true
		}
		key = registry.NamespaceKey(root, k.levels[key], level)
	}
	return k.hidden(key)
}

// unread reports the records that cannot be read. It must say the same of one each time: what two looks say differently Check takes for
// what has passed.
func (k *checker) unread() {
	holders := k.holders()
	for key, err := range k.unreadable {
		k.problem("%s cannot be read: %s (%s; %s)", key, err, k.concern(key, holders), remedy(key))
	}
}

// holders returns whose the records are that cannot be read, by what tables and views know of themselves.
func (k *checker) holders() map[registry.Key]pointerAt {
	holders := map[registry.Key]pointerAt{}
	for _, pointer := range k.pointers {
		keys := []registry.Key{registry.UUIDKey(pointer.value.TableUUID)}
		if pointer.state == registry.StateLive {
			keys = append(keys, registry.EntryKey(pointer.value.NamespaceID, pointer.value.Name))
		} else {
			keys = append(keys, registry.TaskKey(pointer.value.Task))
		}
		for _, location := range pointer.value.Claims {
			keys = append(keys, registry.LocationKey(location))
		}
		for _, key := range keys {
			if other, ok := holders[key]; k.hidden(key) && (!ok || pointer.succeeds(other)) {
				holders[key] = pointer
			}
		}
	}
	return holders
}

// succeeds tells which of two the record of a claim is more likely to name: the live one, or that which was dropped last.
func (p pointerAt) succeeds(other pointerAt) bool {
	if live := p.state == registry.StateLive; live != (other.state == registry.StateLive) {
		return live
	}
	return cmp.Or(p.value.Since.Compare(other.value.Since), bytes.Compare(other.value.ID[:], p.value.ID[:])) > 0
}

// concern says what a record is about that cannot say so itself, as far as others know.
func (k *checker) concern(key registry.Key, holders map[registry.Key]pointerAt) string {
	holder, held := holders[key]
	whose := "a table or view"
	if held {
		whose = holder.String()
	}
	switch key.Table {
	case registry.TableWarehouse:
		return "the warehouse " + key.ID
	case registry.TableNamespace:
		return k.namespaceName(key)
	case registry.TableEntry:
		if !held {
			whose = k.entryName(key)
		}
		return "the name of " + whose
	case registry.TablePointer:
		if caller, ok := k.callers[key]; ok {
			return "it is called " + k.entryName(caller)
		}
		return "a table or view, maybe a dropped one"
	case registry.TableUUID:
		return "the table-uuid of " + whose
	case registry.TableLocation:
		return "the location of " + whose
	case registry.TableTask:
		return k.taskName(key, holder)
	}
	return "what a request with an Idempotency-Key was answered"
}

// remedy says what can be done about a record that cannot be read.
func remedy(key registry.Key) string {
	switch key.Table {
	case registry.TableTask:
		return "see moorage recover"
	case registry.TableIdempotency:
		return "who repeats that request has to look whether it happened"
	}
	return "run the version that wrote it, or restore a backup"
}

// taskName says what a task belongs to, given the dropped table that awaits it, if there is one.
func (k *checker) taskName(task registry.Key, awaiting pointerAt) string {
	var id registry.ID
	switch err := id.UnmarshalText([]byte(task.ID)); {
	case err == nil && k.unfinished[id]:
		return "it says why that transaction was given up"
	case awaiting.awaits(task):
		return "the purge of " + awaiting.String()
	}
	return "no dropped table awaits it"
}

// namespaceName names the namespace with this key.
func (k *checker) namespaceName(key registry.Key) string {
	at, err := splitNamespaceKey(key)
	if _, ok := k.namespaces[at.parent]; err != nil || !ok {
		return "a namespace"
	}
	return "the namespace " + append(k.path(at.parent), at.name).String()
}

// entryName returns the name that an entry gives, with the namespace if that is known.
func (k *checker) entryName(entry registry.Key) string {
	namespace, name, _ := strings.Cut(entry.ID, "/")
	var parent registry.ID
	if err := parent.UnmarshalText([]byte(namespace)); err != nil {
		return "a table or view"
	}
	return moorage.Identifier{Namespace: k.path(parent), Name: name}.String()
}
