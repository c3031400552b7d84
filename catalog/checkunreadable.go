package catalog

import (
	"fmt"
	"slices"
	"strings"

	"moorage"
	"moorage/registry"
)

// readRecord reads the value of record, which must be in one of states. If it cannot, be the record damaged or of a later version, k
// remembers why, and it returns false: the caller goes on with the others.
func readRecord[T any](k *checker, record registry.Record, states ...registry.State) (value T, ok bool) {
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

// unread reports the records that cannot be read.
func (k *checker) unread() {
	for key, err := range k.unreadable {
		todo := "run the version that wrote it, or restore a backup"
		if key.Table == registry.TableIdempotency {
			todo = "send that with another key"
		}
		k.problem("%s cannot be read: %s (%s; %s)", key, err, k.concern(key), todo)
	}
}

// concern says what a record is about that cannot say so itself, as far as others know.
func (k *checker) concern(key registry.Key) string {
	switch key.Table {
	case registry.TableWarehouse:
		return "the warehouse " + key.ID
	case registry.TableNamespace:
		return k.namespaceName(key)
	case registry.TableEntry:
		return k.concernOf("the name", func(p registry.Pointer) bool { return registry.EntryKey(p.NamespaceID, p.Name) == key })
	case registry.TablePointer:
		return k.callerName(key)
	case registry.TableUUID:
		return k.concernOf("the table-uuid", func(p registry.Pointer) bool { return registry.UUIDKey(p.TableUUID) == key })
	case registry.TableLocation:
		return k.concernOf("the location", func(p registry.Pointer) bool { return slices.Contains(p.Claims, key.ID) })
	}
	return "what a request with an Idempotency-Key was answered"
}

// concernOf returns "what of" the table or view whose record it is.
func (k *checker) concernOf(what string, is func(registry.Pointer) bool) string {
	for _, pointer := range k.pointers {
		if is(pointer.value) {
			return fmt.Sprintf("%s of %s", what, pointer)
		}
	}
	return what + " of a table or view"
}

// namespaceName names the namespace with this key.
func (k *checker) namespaceName(key registry.Key) string {
	at, err := splitNamespaceKey(key)
	if _, ok := k.namespaces[at.parent]; err != nil || !ok {
		return "a namespace"
	}
	return "the namespace " + append(k.path(at.parent), at.name).String()
}

// callerName names the table or view whose pointer this is by the entry that leads to it.
func (k *checker) callerName(pointer registry.Key) string {
	for id, entry := range k.callers {
		if registry.PointerKey(id) != pointer {
			continue
		}
		namespace, name, _ := strings.Cut(entry.ID, "/")
		var parent registry.ID
		if err := parent.UnmarshalText([]byte(namespace)); err != nil {
			break
		}
		return "it is called " + moorage.Identifier{Namespace: k.path(parent), Name: name}.String()
	}
	return "a table or view, maybe a dropped one"
}
