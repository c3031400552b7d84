package guard

import (
	"context"
	"sync"

	"moorage"
	"moorage/access"
	"moorage/registry"
)

// waysMax bounds the ways that a process remembers, some 100 bytes each. childrenMax bounds the
// containers that a list shows only because the caller created something in them.
const (
	waysMax     = 100_000
	childrenMax = 10_000
)

// ways are the records of registry.MakerKey that this process knows to exist. They are never
// deleted. It is safe for concurrent use.
type ways struct {
	mu    sync.Mutex // guards known; leaf
	known map[registry.Key]struct{}
}

func (w *ways) has(key registry.Key) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	_, known := w.known[key]
	return known
}

func (w *ways) add(key registry.Key) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.known) >= waysMax || w.known == nil {
		w.known = make(map[registry.Key]struct{})
	}
	w.known[key] = struct{}{}
}

// Way holds the conditions and writes that an Apply needs in addition when it creates an object.
type Way struct {
	Conditions []registry.Condition
	Writes     []registry.Write
}

// Way returns the additional conditions and writes for an Apply that creates an object of maker in
// the innermost container of above. They ensure that maker sees the path to the object whatever
// their grants. Mostly they are empty: one record for each maker and container is enough. maker is
// an identity; it is empty if there is no owner.
//
// Errors are those of registry.Store.Get.
func (g *Guard) Way(ctx context.Context, maker string, above []access.Object) (way Way, err error) {
	if g == nil || maker == "" {
		return Way{}, nil
	}
	var keys []registry.Key
	for _, container := range above {
		if key := registry.MakerKey(maker, registry.ID(container.ID)); !g.ways.has(key) {
			keys = append(keys, key)
		}
	}
	if len(keys) == 0 {
		return Way{}, nil
	}
	records, err := g.config.Store.Get(ctx, keys...)
	if err != nil {
		return Way{}, err
	}
	value, err := registry.Encode(registry.Maker{Name: maker})
	if err != nil {
		return Way{}, err
	}
	for i, key := range keys {
		if records[i].Exists() {
			g.ways.add(key)
			continue
		}
		way.Conditions = append(way.Conditions, registry.Absent(key))
		way.Writes = append(way.Writes, registry.Put(key, registry.StateNone, value))
	}
	return way, nil
}

// mayBeMaker reports whether caller may act as the maker of their objects. A token that is narrowed
// to roles may not.
func mayBeMaker(caller moorage.Caller) bool {
	return caller.Only == nil && access.GranteeOf(caller.Name) == access.IsPrincipal && !IsSystem(caller)
}

// Shown returns path with those containers marked that caller sees because they created something
// in them. Use it for a path on which something is hidden otherwise. It returns nil if it marks no
// container.
//
// Errors: KindUnavailable.
func (g *Guard) Shown(ctx context.Context, caller moorage.Caller, path []access.Object) ([]access.Object, error) {
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
			shown[at[i]].OwnsBeneath = true
		}
	}
	return shown, nil
}

// MadeIn returns the containers in which caller created something, for lists: at most childrenMax.
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
