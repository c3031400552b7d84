package pebble

import (
	"bytes"
	"fmt"

	engine "github.com/cockroachdb/pebble/v2"
)

// filter looks up keys of a view that probably do not exist. For such a key the engine's Get reads
// a block of the last level, which holds nearly all records. An iterator, unlike Get, uses the
// filters of that level too. The filters take about a byte for each record and stay in the cache.
// One iterator serves a whole group, because creating an iterator costs more than a lookup.
//
// A filter is not safe for concurrent use. It is ready once view is set. close ends its use.
type filter struct {
	view *view
	iter *engine.Iterator // nil before the first lookup, and after close
}

// exists reports whether there is a value for key.
func (f *filter) exists(key []byte) (bool, error) {
	if f.iter == nil {
		iter, err := f.view.snapshot.NewIter(&engine.IterOptions{UseL6Filters: true})
		if err != nil {
			return false, fmt.Errorf("read the store: %w", err)
		}
		f.iter = iter
	}
	if f.iter.SeekPrefixGE(key) {
		// The engine's comparer uses the whole key as its prefix.
		return bytes.Equal(f.iter.Key(), key), nil
	}
	if err := f.iter.Error(); err != nil {
		f.close()
		return false, fmt.Errorf("read the store: %w", err)
	}
	return false, nil
}

// close closes the iterator. An error of the iterator is ignored, because exists has already
// returned it.
func (f *filter) close() {
	if f.iter != nil {
		_ = f.iter.Close()
		f.iter = nil
	}
}

// abandon drops an iterator in which the engine has panicked. It does not close the iterator, which
// may hold internal locks.
func (f *filter) abandon() { f.iter = nil }
