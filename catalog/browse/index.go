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

// index holds the names of all namespaces, tables and views. It is not safe for concurrent use.
type index struct {
	spaces map[string]*space // by spaceKey
}

// space is a namespace, with the names in it.
type space struct {
	warehouse string
	namespace moorage.Namespace
	id        registry.ID
	path      string // folded
	count     int    // the number of names in it
	// text holds the names, one after another. Each is a mark and the folded name. If folding
	// changed the name, markName and the original name follow. No name contains a mark, because the
	// marks are not valid UTF-8.
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

// fold returns text in lower case. Two texts that differ only in case have the same folded form.
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

// size returns the number of names in x.
func (x *index) size() int {
	size := len(x.spaces)
	for _, s := range x.spaces {
		size += s.count
	}
	return size
}

// append adds a name that is not in s yet.
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

// set adds a name to s as a table or view, or removes it.
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

// find returns the position of a name in the text of s, or -1.
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

// query describes a search of an index.
type query struct {
	text      string        // folded
	words     []string      // without duplicates
	warehouse string        // empty for all
	kinds     []access.Kind // empty for all
}

// queryOf returns the query for the words in text.
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

// Grades of how well a name matches a query, best first.
const (
	isEqual  = iota // the text of the query equals the name, with or without its namespace
	isPrefix        // the name begins with the first word
	isStart         // each word begins a word of the name or its namespace
	isWithin        // each word is somewhere in the name or its namespace
)

// hit is an object found by a search. The name is empty for the namespace itself.
type hit struct {
	in   *space
	kind access.Kind
	name string // of a table or view, or empty

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
	worst *hit   // hits that sort after it are not among the best
	more  bool   // at least one hit was left out
	full  []byte // the full name that was looked at last; the buffer is reused
}

// excludes reports whether a hit of this grade and length sorts after all of the best.
func (b *best) excludes(grade, length int) bool {
	return b.worst != nil && (grade > b.worst.grade || grade == b.worst.grade && length > b.worst.length)
}

// excludesLong reports whether a name would sort after all of the best, given that some hit was
// already left out. It looks only at the lengths of the folded name and of the full name. If they
// rule out an exact match, isPrefix is the best possible grade. For a common word, this rules out
// most hits.
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

// cut sorts the hits and keeps only the best.
func (b *best) cut() {
	slices.SortFunc(b.hits, compareHits)
	if len(b.hits) > b.keep {
		worst := b.hits[b.keep-1]
		b.hits, b.worst, b.more = b.hits[:b.keep], &worst, true
	}
}

// find returns the best hits of a query, at most keep of them. more is true if there are further
// hits.
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

// search adds the hits in s: the namespace itself, and the names in it.
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
	for at := s.findProbe(0, probe); at >= 0; {
		end := s.end(at)
		s.consider(q, missing, at, end, found)
		if end == len(s.text) {
			return
		}
		at = s.findProbe(end, probe)
	}
}

// probeSample is how many bytes of a namespace's names are sampled to find the rarest word.
const probeSample = 2048

// probeOf returns a text that occurs in every name that matches words: the last part of one of the
// words. It chooses the one that is rarest among the first names in s, and the longest if several
// are equally rare. A word with a dot can begin in the namespace, but its last part must be in the
// name.
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

// findProbe returns the mark of the first name that contains probe, starting at offset from. It
// returns -1 if there is none.
func (s *space) findProbe(from int, probe string) int {
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

// consider adds the name between a mark and its end if it contains the missing words, which its
// namespace does not contain.
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

// grade returns how well an object matches q. The object must contain all words of q. full is the
// folded name with its namespace; name is the folded name alone.
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

// beginsWord reports whether word occurs at the beginning of a word of text, so not directly after
// a letter or digit.
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
