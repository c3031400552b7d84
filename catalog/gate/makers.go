package gate

import (
	"context"
	"sync"

	"moorage"
	"moorage/access"
	"moorage/registry"
)

// makersMax bounds the maker records cached by a process; each takes some 100 bytes. childrenMax
// bounds the containers that a list shows only because the caller created an object in them.
const (
	makersMax   = 100_000
	childrenMax = 10_000
)

// knownMakers holds the records of registry.MakerKey that this process knows to exist. These
// records are never deleted from the store. knownMakers is safe for concurrent use.
type knownMakers struct {
	mu    sync.Mutex // guards known; no other lock is taken while it is held
	known map[registry.Key]struct{}
}

func (w *knownMakers) covers(key registry.Key) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	_, known := w.known[key]
	return known
}

func (w *knownMakers) add(key registry.Key) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.known) >= makersMax || w.known == nil {
		w.known = make(map[registry.Key]struct{})
	}
	w.known[key] = struct{}{}
}

// MakerRecords holds the additional conditions and writes of an Apply that creates an object.
type MakerRecords struct {
	Conditions []registry.Condition
	Writes     []registry.Write
}

// MakerRecords returns the additional conditions and writes for an Apply that creates an object of
// maker in the innermost container of above. They ensure that the maker sees the path to the
// object, whatever grants the maker has. They are empty if the records exist: one record for each
// maker and container is enough. maker is the maker's identity, or empty if the object has no
// owner.
//
// It returns the errors of registry.Store.Get.
func (g *Guard) MakerRecords(ctx context.Context, maker string, above []access.Object) (add MakerRecords, err error) {
	if g == nil || maker == "" {
		return MakerRecords{}, nil
	}
	var keys []registry.Key
	for _, container := range above {
		if key := registry.MakerKey(maker, registry.ID(container.ID)); !g.makers.covers(key) {
			keys = append(keys, key)
		}
	}
	if len(keys) == 0 {
		return MakerRecords{}, nil
	}
	records, err := g.config.Store.Get(ctx, keys...)
	if err != nil {
		return MakerRecords{}, err
	}
	value, err := registry.Encode(registry.Maker{Name: maker})
	if err != nil {
		return MakerRecords{}, err
	}
	for i, key := range keys {
		if records[i].Exists() {
			g.makers.add(key)
			continue
		}
		add.Conditions = append(add.Conditions, registry.Absent(key))
		add.Writes = append(add.Writes, registry.Put(key, registry.StateNone, value))
	}
	return add, nil
}

// mayBeMaker reports whether caller may act as the maker of its objects. A caller whose token is
// narrowed to roles may not.
func mayBeMaker(caller moorage.Caller) bool {
	return caller.Only == nil && access.GranteeOf(caller.Name) == access.IsPrincipal && !IsSystem(caller)
}

// MarkOwned returns path, and marks the containers that caller sees because caller created an
// object in them. Use it for a path on which an object would be hidden otherwise. It returns nil if
// it marks no container.
//
// Errors: KindUnavailable.
func (g *Guard) MarkOwned(ctx context.Context, caller moorage.Caller, path []access.Object) ([]access.Object, error) {
	if g == nil || !mayBeMaker(caller) {
		return nil, nil
	}
	identity := g.identity(caller)
	var keys []registry.Key
	var at []int
	for i, object := range path {
		if object.Kind == access.Namespace || object.Kind == access.Warehouse {
			keys = append(keys, registry.MakerKey(identity, registry.ID(object.ID)))
			at = append(at, i)
		}
	}
	if len(keys) == 0 {
		return nil, nil
	}
	records, err := g.config.Store.Get(ctx, keys...)
	if err != nil {
		return nil, unavailable(err)
	}
	var shown []access.Object
	for i, record := range records {
		if record.Exists() {
			if shown == nil {
				shown = append(shown, path...)
			}
			shown[at[i]].OwnsInside = true
		}
	}
	return shown, nil
}

// MadeIn returns at most childrenMax containers in which caller created an object, for verbs that
// list containers.
//
// Errors: KindUnavailable.
func (g *Guard) MadeIn(ctx context.Context, caller moorage.Caller) (map[access.ID]bool, error) {
	if g == nil || !mayBeMaker(caller) {
		return nil, nil
	}
	made := make(map[access.ID]bool)
	prefix := registry.MakerPrefix(g.identity(caller))
	for after := ""; len(made) < childrenMax; {
		page, err := g.config.Store.ListKeys(ctx, registry.TableAccess, prefix, after, pageRecords)
		if err != nil {
			return nil, unavailable(err)
		}
		for _, record := range page {
			if container, err := registry.MakerContainer(record.Key); err == nil {
				made[access.ID(container)] = true
			}
		}
		if registry.IsLastPage(page, pageRecords) {
			break
		}
		after = page[len(page)-1].Key.ID
	}
	return made, nil
}
