package pebble

import (
	"bytes"
	"fmt"

	engine "github.com/cockroachdb/pebble/v2"
)

// filter looks for keys of a view that are probably not there. The engine's Get reads a block of
// the last level, which holds nearly all records, for each of them. An iterator also asks the
// filters of that level. These take about a byte for each record and stay in the cache. One
// iterator serves a whole group, because making one costs more than a look.
//
// A filter is not safe for concurrent use. It is ready when it has a view; close ends it.
type filter struct {
	view *view
	iter *engine.Iterator // nil until the first look, and after close
}

// exists reports whether there is something under key.
func (f *filter) exists(key []byte) (bool, error) {
	if f.iter == nil {
		iter, err := f.view.snapshot.NewIter(&engine.IterOptions{UseL6Filters: true})
		if err != nil {
			return false, fmt.Errorf("read the store: %w", err)
		}
		f.iter = iter
	}
	if f.iter.SeekPrefixGE(key) {
		// The engine's comparer takes the whole key for its prefix.
		return bytes.Equal(f.iter.Key(), key), nil
	}
	if err := f.iter.Error(); err != nil {
		f.close()
		return false, fmt.Errorf("read the store: %w", err)
	}
	return false, nil
}

// close gives the iterator back. exists has returned its errors before.
func (f *filter) close() {
	if f.iter != nil {
		_ = f.iter.Close()
		f.iter = nil
	}
}

// abandon forgets an iterator in which the engine panicked: it may hold locks of its own.
func (f *filter) abandon() { f.iter = nil }
