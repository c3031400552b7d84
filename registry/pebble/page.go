package pebble

import "moorage/registry"

const (
	// valuesChunkBytes is the size of a chunk of memory that several values share. A caller that
	// keeps one value keeps its whole chunk in memory, so a chunk is smaller than a page.
	valuesChunkBytes = 32 << 10
	// pageKeptBytes bounds the memory that a page keeps for its next use. Most pages need less.
	pageKeptBytes = 1 << 20
)

// page collects the result of a list. The records are made when the page is complete. An allocation
// for each ID and each value would be half of the work of a list.
type page struct {
	ids, values []byte // of all items, one after another
	items       []pageItem
}

// pageItem is one record of a page. It has no pointers, so the garbage collector skips it.
type pageItem struct {
	header
	idEnd, valueEnd int // in ids and values; an item begins at the end of the item before it
}

// add appends a record of table without its value. stored is the stored form of the record, and id
// is its ID. add returns the value as a slice of stored.
func (p *page) add(table registry.Table, id, stored []byte) (value []byte, err error) {
	h, value, err := splitRecord(registry.Key{Table: table}, stored)
	if err != nil {
		_, _, err = splitRecord(registry.Key{Table: table, ID: string(id)}, stored) // the error names the record
		return nil, err
	}
	p.ids = append(p.ids, id...)
	p.items = append(p.items, pageItem{h, len(p.ids), len(p.values)})
	return value, nil
}

// addValue appends the value of the last record.
func (p *page) addValue(value []byte) {
	p.values = append(p.values, value...)
	p.items[len(p.items)-1].valueEnd = len(p.values)
}

// records returns the records, which share no memory with p. The records of ListKeys have no
// values.
func (p *page) records(table registry.Table, withValues bool) []registry.Record {
	if len(p.items) == 0 {
		return nil
	}
	ids, records := string(p.ids), make([]registry.Record, len(p.items))
	var last pageItem
	var chunk []byte
	for i, item := range p.items {
		record := &records[i]
		*record = item.record(registry.Key{Table: table, ID: ids[last.idEnd:item.idEnd]})
		if withValues {
			size := item.valueEnd - last.valueEnd
			if chunk == nil || cap(chunk)-len(chunk) < size {
				chunk = make([]byte, 0, max(size, min(valuesChunkBytes, len(p.values)-last.valueEnd)))
			}
			start := len(chunk)
			chunk = append(chunk, p.values[last.valueEnd:item.valueEnd]...)
			record.Value = chunk[start:len(chunk):len(chunk)]
		}
		last = item
	}
	return records
}

// page returns an empty page, to be returned with putPage.
func (s *instance) page() *page {
	if p, ok := s.pages.Get().(*page); ok {
		return p
	}
	return new(page)
}

// putPage takes back a page from the method page.
func (s *instance) putPage(p *page) {
	if cap(p.ids)+cap(p.values) > pageKeptBytes {
		return
	}
	p.ids, p.values, p.items = p.ids[:0], p.values[:0], p.items[:0]
	s.pages.Put(p)
}
