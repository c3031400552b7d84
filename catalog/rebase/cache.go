package rebase

import (
	"container/list"
	"sync"

	"moorage/manifests"
	"moorage/registry"
)

const (
	// keptBytes bounds the lists and manifests that are cached in memory.
	keptBytes = 32 << 20
	// keptOverhead is the memory for each file in the cache in addition to its content and name.
	keptOverhead = 256
)

// place is the key of a file in the cache: its pointer, and its location. Another table may have a
// file of the same name in another storage.
type place struct {
	pointer  registry.ID
	location string
}

// kept is the parsed content of one file that was read or will be written. Exactly one field is
// set. The content never changes, because engines write a file once, under a new name.
type kept struct {
	list     *manifests.List
	contents *contents
}

// cache caches the last used parsed files, within keptBytes. Lists share entries, and a shared
// entry counts once. Otherwise few lists of a large table would fit, and each append needs two
// lists. It is safe for concurrent use.
type cache struct {
	mu sync.Mutex
	// mu guards the fields below, and which lists are held. No lock is taken under it.
	byPlace map[place]*list.Element // elements of recent
	recent  *list.List              // of *cached; the most recently used is at the front
	bytes   int
}

type cached struct {
	place place
	kept
}

func newCache() *cache { return &cache{byPlace: make(map[place]*list.Element), recent: list.New()} }

// get returns the file at p, or the zero value if it is not cached.
func (c *cache) get(p place) kept {
	c.mu.Lock()
	defer c.mu.Unlock()
	at, ok := c.byPlace[p]
	if !ok {
		return kept{}
	}
	c.recent.MoveToFront(at)
	return at.Value.(*cached).kept
}

// put caches the file at p. It does nothing if the file is already cached, because its content
// never changes. It also does nothing for a file that alone takes more than keptBytes, because
// caching it would evict all other files.
func (c *cache) put(p place, k kept) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, ok := c.byPlace[p]; ok {
		return
	}
	added := &cached{p, k}
	alone := added.overhead()
	if k.list != nil {
		alone += k.list.Whole()
	}
	if alone > keptBytes {
		return
	}
	c.byPlace[p] = c.recent.PushFront(added)
	c.bytes += added.overhead()
	if k.list != nil {
		c.bytes += k.list.Hold()
	}
	for c.bytes > keptBytes {
		c.dropLastLocked()
	}
}

// dropLastLocked drops the least recently used file. mu must be held, and the cache must have a
// file.
func (c *cache) dropLastLocked() {
	last := c.recent.Remove(c.recent.Back()).(*cached)
	delete(c.byPlace, last.place)
	c.bytes -= last.overhead()
	if last.list != nil {
		c.bytes -= last.list.Release()
	}
}

// overhead returns the bytes of memory that the file takes in the cache, without its manifest list.
func (c *cached) overhead() int {
	size := keptOverhead + len(c.place.location)
	if c.contents != nil {
		size += c.contents.size()
	}
	return size
}
