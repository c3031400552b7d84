package metadata

import (
	"iter"
	"slices"
)

// arrayName names an array of a document whose elements are indexed.
type arrayName uint8

// element is one element of an array of a document.
type element struct {
	// id distinguishes the elements of the array. For schemas, specs and sort orders, it is their
	// id. For an element about a snapshot, it is the snapshot's id. In arrays without ids, it is 0.
	id int64
	// start and end are positions relative to the array's opening bracket. So they do not change
	// when the document around the array changes.
	start, end uint32
}

// chunkLen is the maximum number of elements that an append copies.
const chunkLen = 256

// list holds the positions of the elements of an array. It is immutable. append shares all chunks
// except the last, so a commit does not pay for unchanged elements. The zero list is empty.
type list struct {
	chunks [][]element // all but the last have chunkLen elements; none is empty
	n      int
}

func (l list) len() int { return l.n }

func (l list) at(i int) element { return l.chunks[i/chunkLen][i%chunkLen] }

// end returns the end of the last element. For an empty list, it returns the position of a future
// first element.
func (l list) end() int {
	if l.n == 0 {
		return len("[")
	}
	return int(l.at(l.n - 1).end)
}

// listOf returns the list of elements, and takes ownership of the slice.
func listOf(elements []element) list {
	chunks := make([][]element, 0, (len(elements)+chunkLen-1)/chunkLen)
	return list{chunks: slices.AppendSeq(chunks, slices.Chunk(elements, chunkLen)), n: len(elements)}
}

// append returns a list with more elements at its end.
func (l list) append(added ...element) list {
	if len(added) == 0 {
		return l
	}
	chunks := append(make([][]element, 0, len(l.chunks)+len(added)/chunkLen+1), l.chunks...)
	n := l.n + len(added)
	for len(added) > 0 {
		last := len(chunks) - 1
		if last < 0 || len(chunks[last]) == chunkLen {
			chunks = append(chunks, nil)
			last++
		}
		room := min(chunkLen-len(chunks[last]), len(added))
		chunks[last] = slices.Concat(chunks[last], added[:room])
		added = added[room:]
	}
	return list{chunks: chunks, n: n}
}

// all ranges over the elements from index i on, with their indexes.
func (l list) all(i int) iter.Seq2[int, element] {
	return func(yield func(int, element) bool) {
		for ; i < l.n; i++ {
			if !yield(i, l.at(i)) {
				return
			}
		}
	}
}

// bytes returns the memory that the list holds.
func (l list) bytes() int64 {
	const elementBytes, sliceBytes = 16, 24
	return int64(l.n)*elementBytes + int64(len(l.chunks))*sliceBytes
}

// positions finds the elements of a list by their ids. It is immutable. Its hash table may cover
// only the first elements of the list, and a search scans the rest. extend builds a new table only
// when many elements are not covered. So most commits that append elements need neither a copy of
// the table nor a new one.
type positions struct {
	byID    map[int64]int32
	covered int
}

// uncoveredMin is the number of uncovered elements for which a scan is always fast enough.
const uncoveredMin = 64

// extend returns positions with which searches in l are fast. p must cover only elements at the
// start of l.
func (p positions) extend(l list) positions {
	if l.len()-p.covered <= uncoveredMin+p.covered/16 {
		return p
	}
	return positionsOf(l)
}

func positionsOf(l list) positions {
	if l.len() <= uncoveredMin {
		return positions{}
	}
	byID := make(map[int64]int32, l.len())
	for i, e := range l.all(0) {
		byID[e.id] = int32(i)
	}
	return positions{byID: byID, covered: l.len()}
}

// find returns the index in l of the element with that id.
func (p positions) find(l list, id int64) (int, bool) {
	if i, ok := p.byID[id]; ok {
		return int(i), true
	}
	for i, e := range l.all(p.covered) {
		if e.id == id {
			return i, true
		}
	}
	return 0, false
}

func (p positions) bytes() int64 {
	const entryBytes = 32
	return int64(len(p.byID)) * entryBytes
}

// newElement is an element that is added to an array: its id and its JSON.
type newElement struct {
	id  int64
	raw []byte
}

// listEdit is a change of one array: some elements are removed, others are appended.
type listEdit struct {
	base    *list
	dropped []bool // by index in base; empty if all elements stay
	drops   int
	added   []newElement
}

func (e *listEdit) add(id int64, raw []byte) { e.added = append(e.added, newElement{id, raw}) }

// drop removes the elements for which gone returns true, and returns their number.
func (e *listEdit) drop(gone func(id int64) bool) int {
	before := e.drops
	for i, old := range e.base.all(0) {
		if gone(old.id) {
			e.dropAt(i)
		}
	}
	count := e.drops - before
	e.added = slices.DeleteFunc(e.added, func(added newElement) bool {
		if gone(added.id) {
			count++
			return true
		}
		return false
	})
	return count
}

func (e *listEdit) dropAt(i int) {
	if len(e.dropped) == 0 {
		e.dropped = make([]bool, e.base.len())
	}
	if !e.dropped[i] {
		e.dropped[i] = true
		e.drops++
	}
}

func (e *listEdit) isDropped(i int) bool { return len(e.dropped) > 0 && e.dropped[i] }

// remaining ranges over the remaining elements of the base, with their indexes.
func (e *listEdit) remaining() iter.Seq2[int, element] {
	return func(yield func(int, element) bool) {
		for i, old := range e.base.all(0) {
			if !e.isDropped(i) && !yield(i, old) {
				return
			}
		}
	}
}

// elements ranges over the ids and JSON of the elements after the change. old is the array before
// the change.
func (e *listEdit) elements(old []byte) iter.Seq2[int64, []byte] {
	return func(yield func(int64, []byte) bool) {
		for _, kept := range e.remaining() {
			if !yield(kept.id, old[kept.start:kept.end]) {
				return
			}
		}
		for _, added := range e.added {
			if !yield(added.id, added.raw) {
				return
			}
		}
	}
}

// changes reports whether the array changes.
func (e *listEdit) changes() bool { return e.drops > 0 || len(e.added) > 0 }

// len returns the number of elements after the change.
func (e *listEdit) len() int { return e.base.len() - e.drops + len(e.added) }

// growth returns an upper bound on the number of bytes that the change adds to an array. It may be
// negative.
func (e *listEdit) growth() int {
	n := len("[]") // the document may have no such array so far
	for _, added := range e.added {
		n += len(added.raw) + len(",")
	}
	for i, dropped := range e.dropped {
		if dropped {
			old := e.base.at(i)
			n -= int(old.end-old.start) + len(",")
		}
	}
	return n
}

// write appends the changed array to dst and returns the new positions of its elements. old is the
// array before the change; unchanged elements are copied byte for byte.
func (e *listEdit) write(dst, old []byte) ([]byte, list) {
	if e.drops > 0 {
		return e.rewrite(dst, old)
	}
	origin, tail := len(dst), e.base.end()
	dst = append(dst, old[:tail]...)
	const usual = 4
	dst, added := e.writeAdded(dst, origin, make([]element, 0, usual), e.base.len() == 0)
	return append(dst, old[tail:]...), e.base.append(added...)
}

// rewrite is like write, for a change that drops elements. It copies runs of remaining elements at
// once.
func (e *listEdit) rewrite(dst, old []byte) ([]byte, list) {
	origin := len(dst)
	dst = append(dst, '[')
	elements := make([]element, 0, e.len())
	for i := 0; i < e.base.len(); {
		if e.dropped[i] {
			i++
			continue
		}
		if len(elements) > 0 {
			dst = append(dst, ',')
		}
		start := e.base.at(i).start
		shift := uint32(len(dst)-origin) - start // wraps around if the run moves left
		var end uint32
		for ; i < e.base.len() && !e.dropped[i]; i++ {
			kept := e.base.at(i)
			elements = append(elements, element{kept.id, kept.start + shift, kept.end + shift})
			end = kept.end
		}
		dst = append(dst, old[start:end]...)
	}
	dst, elements = e.writeAdded(dst, origin, elements, len(elements) == 0)
	return append(dst, ']'), listOf(elements)
}

// writeAdded appends the JSON of the new elements to dst, and their positions to elements. origin
// is the start of the array in dst. first is true if no other element precedes the new ones.
func (e *listEdit) writeAdded(dst []byte, origin int, elements []element, first bool) ([]byte, []element) {
	for _, added := range e.added {
		if !first {
			dst = append(dst, ',')
		}
		first = false
		start := len(dst)
		dst = append(dst, added.raw...)
		elements = append(elements, element{added.id, uint32(start - origin), uint32(len(dst) - origin)})
	}
	return dst, elements
}
