package jobs

import (
	"hash/maphash"
	"net/url"
	"strings"
	"sync"
	"unicode/utf8"

	"moorage/storage"
)

const (
	// exactMax is the number of paths that a pathSet keeps exactly; about 10 MB.
	exactMax = 1 << 18
	// bitsPerPath gives a Bloom filter about one false positive in 1,000 paths.
	bitsPerPath = 144 // in tenths of a bit
	hashCount   = 10
	// bloomBitsMax is 32 MiB, for 18 million paths. The size is bounded because the expected number
	// comes from lists, which any client can write. If a set gets too many paths, more files are
	// kept by mistake, but no file is lost.
	bloomBitsMax = 1 << 28
	wordBits     = 64
)

// pathSet is a set of paths with errors in one direction only. Has is never false for a path that
// was added. Once the set has more than a quarter of a million paths, Has may be true for other
// paths. Each pathSet hashes with its own seed, so two sets have different false positives. A
// pathSet is safe for concurrent use.
type pathSet struct {
	seeds    [2]maphash.Seed
	expected int64
	max      int // maximum number of paths kept exactly
	// elsewhere holds the paths without scheme and authority. alike holds the paths as returned by
	// folded. Both are nil in a pathSet that does not find look-alikes.
	elsewhere, alike *pathSet

	// mu guards the fields below. No lock is taken under it.
	mu    sync.RWMutex
	exact map[[2]uint64]struct{} // nil once there are too many
	bloom []uint64
	count int64
}

// newPathSet returns an empty set for about expected paths.
func newPathSet(expected int64) *pathSet { return newPathSetWith(expected, exactMax) }

// newLookAlikeSet is like newPathSet, but its set also finds look-alikes.
func newLookAlikeSet(expected int64) *pathSet {
	s := newPathSet(expected)
	s.elsewhere, s.alike = newPathSet(expected), newPathSet(expected)
	return s
}

func newPathSetWith(expected int64, exact int) *pathSet {
	return &pathSet{
		seeds: [2]maphash.Seed{maphash.MakeSeed(), maphash.MakeSeed()}, expected: expected, max: exact,
		exact: make(map[[2]uint64]struct{}),
	}
}

// Add adds the place that path refers to, in any spelling.
func (s *pathSet) Add(path string) {
	if s.alike != nil {
		s.elsewhere.Add(pathWithoutStore(path))
		s.alike.Add(folded(path))
		if cut := strings.IndexAny(path, "?#"); cut >= 0 {
			s.alike.Add(folded(path[:cut])) // some engines cut the path off here
		}
	}
	hash := s.hash(path)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.count++
	if s.exact == nil {
		s.mark(hash)
		return
	}
	s.exact[hash] = struct{}{}
	if len(s.exact) > s.max {
		s.overflow()
	}
}

// Has reports whether the place that path refers to may have been added.
func (s *pathSet) Has(path string) bool {
	hash := s.hash(path)
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.exact != nil {
		_, ok := s.exact[hash]
		return ok
	}
	for at := range s.bits(hash) {
		if s.bloom[at/wordBits]&(1<<(at%wordBits)) == 0 {
			return false
		}
	}
	return true
}

// Len returns the number of added paths, including repeated ones.
func (s *pathSet) Len() int64 {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.count
}

// IsExact reports whether Has is exact.
func (s *pathSet) IsExact() bool {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.exact != nil
}

// overflow moves the exact hashes into a Bloom filter. mu must be held.
func (s *pathSet) overflow() {
	bits := max(s.expected, int64(4*s.max)) * bitsPerPath / 10
	bits = min(bits, bloomBitsMax)
	s.bloom = make([]uint64, (bits+wordBits-1)/wordBits)
	for hash := range s.exact {
		s.mark(hash)
	}
	s.exact = nil
}

// mark adds a path to the filter. mu must be held.
func (s *pathSet) mark(hash [2]uint64) {
	for at := range s.bits(hash) {
		s.bloom[at/wordBits] |= 1 << (at % wordBits)
	}
}

// bits yields the filter's bits for a hash.
func (s *pathSet) bits(hash [2]uint64) func(yield func(uint64) bool) {
	size := uint64(len(s.bloom)) * wordBits
	return func(yield func(uint64) bool) {
		for i := range uint64(hashCount) {
			if !yield((hash[0] + i*(hash[1]|1)) % size) {
				return
			}
		}
	}
}

// hash returns the hash of the place that path refers to. The hash is so long that, in practice, no
// two places share one.
func (s *pathSet) hash(path string) [2]uint64 {
	path = spelled(path)
	return [2]uint64{maphash.String(s.seeds[0], path), maphash.String(s.seeds[1], path)}
}

// spelled returns the normal spelling of path. It returns path itself if no storage accepts it.
func spelled(path string) string {
	if normal, err := storage.NormaliseFile(path); err == nil {
		return normal
	}
	return path
}

// HasElsewhere reports whether Add may have been called with path, or with a path that differs only
// in scheme or authority. It returns false for a pathSet that does not find look-alikes.
func (s *pathSet) HasElsewhere(path string) bool {
	return s.elsewhere != nil && s.elsewhere.Has(pathWithoutStore(path))
}

// LooksLike reports whether Add may have been called with a path that an engine, or a person who
// types it, could confuse with path. It returns false for a pathSet that does not find look-alikes.
func (s *pathSet) LooksLike(path string) bool { return s.alike != nil && s.alike.Has(folded(path)) }

// pathWithoutStore returns path without scheme and authority.
func pathWithoutStore(path string) string {
	if parsed, err := storage.ParseFile(path); err == nil {
		return parsed.Path
	}
	return path
}

// folded returns path in lower case, without scheme and authority, percent encoding, doubled
// slashes, and bytes that are not ASCII.
func folded(path string) string {
	path = pathWithoutStore(path)
	for range 2 { // a path may be encoded twice
		if decoded, err := url.PathUnescape(path); err == nil {
			path = decoded
		}
	}
	var left strings.Builder
	slash := false
	for _, c := range []byte(strings.ToLower(path)) {
		if c >= utf8.RuneSelf || c == '/' && slash {
			continue
		}
		slash = c == '/'
		left.WriteByte(c)
	}
	return left.String()
}
