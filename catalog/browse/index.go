package browse

import (
	"bytes"
	"cmp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"moorage"
	"moorage/access"
	"moorage/registry"
)

// index has the names of all namespaces, tables and views. It is not safe for concurrent use.
type index struct {
	spaces map[string]*space // by spaceKey
}

// space is a namespace, with the names in it.
type space struct {
	warehouse string
	namespace moorage.Namespace
	id        registry.ID
	path      string // folded
	count     int    // of the names in it
	// text has the names one after the other: a mark, the folded name, and if the name differs from
	// that, markName and the name. Marks are no part of UTF-8, so no name contains one.
	text []byte
}

const (
	markTable = 0xFE
	markView  = 0xFF
	markName  = 0xFD
)

func newIndex() *index { return &index{make(map[string]*space)} }

// spaceKey identifies a namespace. No name contains its separators.
func spaceKey(warehouse string, namespace moorage.Namespace) string {
	return warehouse + "\x00" + strings.Join(namespace, moorage.LevelSeparator)
}

// fold returns text without the difference between capital and small letters.
func fold(text string) string { return strings.ToLower(text) }

// put adds a namespace, or changes its id. A namespace with another id has no names yet.
func (x *index) put(warehouse string, namespace moorage.Namespace, id registry.ID) *space {
	key := spaceKey(warehouse, namespace)
	known := x.spaces[key]
	if known == nil || known.id != id {
		known = &space{
			warehouse: warehouse, namespace: namespace, id: id, path: fold(strings.Join(namespace, ".")),
		}
		x.spaces[key] = known
	}
	return known
}

// remove removes a namespace with its names.
func (x *index) remove(warehouse string, namespace moorage.Namespace) {
	delete(x.spaces, spaceKey(warehouse, namespace))
}

// size returns how many names x has.
func (x *index) size() int {
	size := len(x.spaces)
	for _, s := range x.spaces {
		size += s.count
	}
	return size
}

// append adds a name that s does not have yet.
func (s *space) append(name string, view bool) {
	mark, folded := byte(markTable), fold(name)
	if view {
		mark = markView
	}
	s.count++
	s.text = append(append(s.text, mark), folded...)
	if folded != name {
		s.text = append(append(s.text, markName), name...)
	}
}

// set makes s have a name as a table or view, or not have it.
func (s *space) set(name string, there, view bool) {
	for _, mark := range []byte{markTable, markView} {
		if at, end := s.find(mark, name); at >= 0 {
			s.text = slices.Delete(s.text, at, end)
			s.count--
		}
	}
	if there {
		s.append(name, view)
	}
}

// find returns the place of a name in the text of s, or -1.
func (s *space) find(mark byte, name string) (at, end int) {
	wanted := append([]byte{mark}, fold(name)...)
	for from := 0; ; {
		found := bytes.Index(s.text[from:], wanted)
		if found < 0 {
			return -1, -1
		}
		at = from + found
		end = s.end(at)
		if s.name(at, end) == name {
			return at, end
		}
		from = end
	}
}

// isMark reports whether a byte begins a name in the text of a space.
func isMark(b byte) bool { return b == markTable || b == markView }

// end returns the end of the name that begins at a mark.
func (s *space) end(at int) int {
	for i := at + 1; i < len(s.text); i++ {
		if isMark(s.text[i]) {
			return i
		}
	}
	return len(s.text)
}

// folded returns the folded form of the name between a mark and its end.
func (s *space) folded(at, end int) []byte {
	text := s.text[at+1 : end]
	if cut := bytes.IndexByte(text, markName); cut >= 0 {
		return text[:cut]
	}
	return text
}

// name returns the name between a mark and its end.
func (s *space) name(at, end int) string {
	text := s.text[at+1 : end]
	if cut := bytes.IndexByte(text, markName); cut >= 0 {
		return string(text[cut+1:])
	}
	return string(text)
}

// query is what a search asks an index.
type query struct {
	text      string        // folded
	words     []string      // each once
	warehouse string        // empty for all
	kinds     []access.Kind // empty for all
}

// queryOf returns the query for a text of words.
func queryOf(text string) query {
	all := strings.Fields(fold(text))
	q := query{text: strings.Join(all, " ")}
	known := make(map[string]bool)
	for _, word := range all {
		if !known[word] {
			known[word], q.words = true, append(q.words, word)
		}
	}
	return q
}

func (q query) has(kind access.Kind) bool { return len(q.kinds) == 0 || slices.Contains(q.kinds, kind) }

// How well a name answers a query, the best first.
const (
	isEqual  = iota // the text of the query is the name, with its namespace or without it
	isPrefix        // the name begins with the first word
	isStart         // each word begins a word of the name or its namespace
	isWithin        // the words are somewhere in the name or its namespace
)

// hit is a name that a search found.
type hit struct {
	in   *space
	kind access.Kind
	name string // of a table or view

	grade, length int
	sort          string
}

func compareHits(a, b hit) int {
	return cmp.Or(cmp.Compare(a.grade, b.grade), cmp.Compare(a.length, b.length), cmp.Compare(a.sort, b.sort),
		cmp.Compare(a.in.warehouse, b.in.warehouse), cmp.Compare(a.kind, b.kind), cmp.Compare(a.name, b.name))
}

// best collects the best hits of a search.
type best struct {
	keep  int
	hits  []hit
	worst *hit   // hits that come after it are not among the best
	more  bool   // a hit was left out
	full  []byte // the last name that was looked at, with its namespace; its memory is used again
}

// excludes reports whether a hit of this grade and length comes after all of the best.
func (b *best) excludes(grade, length int) bool {
	return b.worst != nil && (grade > b.worst.grade || grade == b.worst.grade && length > b.worst.length)
}

// excludesLong reports whether a name comes after all of the best, and one was left out before. It
// goes by the lengths alone of the folded name and of the name with its namespace: a name that is
// not equal to the query is a prefix at best. Most hits of a common word end here.
func (b *best) excludesLong(q query, name, full int) bool {
	return b.more && name != len(q.text) && full != len(q.text) && b.excludes(isPrefix, full)
}

func (b *best) add(h hit) {
	if b.worst != nil && compareHits(h, *b.worst) > 0 {
		b.more = true
		return
	}
	if b.hits = append(b.hits, h); len(b.hits) >= 4*b.keep {
		b.cut()
	}
}

// cut sorts the hits, and keeps only the best.
func (b *best) cut() {
	slices.SortFunc(b.hits, compareHits)
	if len(b.hits) > b.keep {
		worst := b.hits[b.keep-1]
		b.hits, b.worst, b.more = b.hits[:b.keep], &worst, true
	}
}

// find returns the best hits of a query, at most keep of them. more means that there are others.
func (x *index) find(q query, keep int) (hits []hit, more bool) {
	found := &best{keep: keep}
	for _, s := range x.spaces {
		if q.warehouse == "" || q.warehouse == s.warehouse {
			s.search(q, found)
		}
	}
	found.cut()
	return found.hits, found.more
}

// search adds the hits in s: the namespace itself, and names in it.
func (s *space) search(q query, found *best) {
	missing := make([]string, 0, len(q.words))
	for _, word := range q.words {
		if !strings.Contains(s.path, word) {
			missing = append(missing, word)
		}
	}
	if len(missing) == 0 && q.has(access.Namespace) {
		last := fold(s.namespace[len(s.namespace)-1])
		found.add(hit{
			in: s, kind: access.Namespace, grade: q.grade([]byte(s.path), []byte(last)), length: len(s.path),
			sort: s.path,
		})
	}
	if !q.has(access.Table) && !q.has(access.View) {
		return
	}
	probe := s.probeOf(missing)
	for at := s.next(0, probe); at >= 0; {
		end := s.end(at)
		s.consider(q, missing, at, end, found)
		if end == len(s.text) {
			return
		}
		at = s.next(end, probe)
	}
}

// probeSample is how many bytes of the names in a namespace tell which word is rare in it.
const probeSample = 2048

// probeOf returns a text that each name has which has the words: the one that is rarest among the
// first names in s, or of several the longest. A word with a dot can begin in the namespace, but
// its last part is in the name.
func (s *space) probeOf(words []string) (probe string) {
	sample, rarest := s.text[:min(len(s.text), probeSample)], -1
	for _, word := range words {
		part := word[strings.LastIndexByte(word, '.')+1:]
		if part == "" {
			continue
		}
		count := bytes.Count(sample, []byte(part))
		if rarest < 0 || count < rarest || count == rarest && len(part) > len(probe) {
			probe, rarest = part, count
		}
	}
	return probe
}

// next returns the mark of the first name, from the mark at from on, whose text has the probe. It
// returns -1 if there is none.
func (s *space) next(from int, probe string) int {
	if probe == "" {
		if from < len(s.text) {
			return from
		}
		return -1
	}
	found := bytes.Index(s.text[from:], []byte(probe))
	if found < 0 {
		return -1
	}
	at := from + found
	for !isMark(s.text[at]) {
		at--
	}
	return at
}

// consider adds the name between a mark and its end, if it has the words that its namespace lacks.
func (s *space) consider(q query, missing []string, at, end int, found *best) {
	kind := access.Table
	if s.text[at] == markView {
		kind = access.View
	}
	if !q.has(kind) {
		return
	}
	name := s.folded(at, end)
	length := len(s.path) + len(".") + len(name)
	if found.excludesLong(q, len(name), length) {
		return
	}
	for _, word := range missing {
		if !bytes.Contains(name, []byte(word)) && !spans(s.path, name, word) {
			return
		}
	}
	found.full = append(append(append(found.full[:0], s.path...), '.'), name...)
	grade := q.grade(found.full, name)
	if found.excludes(grade, length) {
		found.more = true
		return
	}
	found.add(hit{
		in: s, kind: kind, name: s.name(at, end), grade: grade, length: length, sort: string(found.full),
	})
}

// spans reports whether a word with a dot begins in a namespace and ends in a name.
func spans(path string, name []byte, word string) bool {
	for i := range len(word) {
		if word[i] == '.' && strings.HasSuffix(path, word[:i]) && strings.HasPrefix(string(name), word[i+1:]) {
			return true
		}
	}
	return false
}

// grade returns how well an object answers q, which has all its words. full is its folded name with
// the namespace, and name without it.
func (q query) grade(full, name []byte) int {
	switch {
	case q.text == string(name) || q.text == string(full):
		return isEqual
	case len(q.words) == 0 || hasPrefix(name, q.words[0]) || hasPrefix(full, q.words[0]):
		return isPrefix
	}
	for _, word := range q.words {
		if !beginsWord(full, word) {
			return isWithin
		}
	}
	return isStart
}

// hasPrefix reports whether text begins with a prefix.
func hasPrefix(text []byte, prefix string) bool {
	return len(text) >= len(prefix) && string(text[:len(prefix)]) == prefix
}

// beginsWord reports whether a word begins a word of text: it is not within letters or digits.
func beginsWord(text []byte, word string) bool {
	for from := 0; ; {
		found := bytes.Index(text[from:], []byte(word))
		if found < 0 {
			return false
		}
		before, _ := utf8.DecodeLastRune(text[:from+found])
		if from+found == 0 || !unicode.IsLetter(before) && !unicode.IsDigit(before) {
			return true
		}
		from += found + 1
	}
}
