package access

import "maps"

// shardCount is the number of maps in a sharded map. A change of one key copies only one of them.
const shardCount = 256

// sharder is a key that determines its shard.
type sharder interface {
	comparable
	shard() uint8
}

// shard returns a byte of the id. Ids are random, so the shards have about the same size.
func (id ID) shard() uint8 { return id[len(id)-1] }

// name is the name of a grantee, as a key.
type name string

// shard returns a hash of the name (FNV-1a, folded).
func (n name) shard() uint8 {
	hash := uint32(2166136261)
	for i := range len(n) {
		hash = (hash ^ uint32(n[i])) * 16777619
	}
	return uint8(hash ^ hash>>8 ^ hash>>16 ^ hash>>24)
}

// sharded is a map that never changes. Its zero value is empty.
type sharded[K sharder, V any] struct {
	shards [shardCount]map[K]V
}

func (s *sharded[K, V]) get(key K) (value V, found bool) {
	value, found = s.shards[key.shard()][key]
	return value, found
}

// edit returns a copy of s that can be changed. The copy shares all unchanged shards with s. size
// is the expected number of new keys.
func (s *sharded[K, V]) edit(size int) *shardedEdit[K, V] {
	return &shardedEdit[K, V]{sharded: *s, size: size / shardCount}
}

// shardedEdit is a sharded map under construction. It is not safe for concurrent use.
type shardedEdit[K sharder, V any] struct {
	sharded[K, V]
	own  [shardCount]bool // shards that were copied for this edit
	size int              // capacity of a new shard
}

func (e *shardedEdit[K, V]) set(key K, value V) { e.owned(key.shard())[key] = value }

func (e *shardedEdit[K, V]) remove(key K) { delete(e.owned(key.shard()), key) }

func (e *shardedEdit[K, V]) owned(shard uint8) map[K]V {
	if !e.own[shard] {
		e.own[shard] = true
		if e.shards[shard] == nil {
			e.shards[shard] = make(map[K]V, e.size)
		} else {
			e.shards[shard] = maps.Clone(e.shards[shard])
		}
	}
	return e.shards[shard]
}

// result returns the map. The edit must not be used afterwards.
func (e *shardedEdit[K, V]) result() *sharded[K, V] {
	done := e.sharded
	return &done
}
