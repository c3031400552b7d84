package metadata

import (
	"sync"

	"moorage/internal/jsontext"
)

// scratch is the memory that a builder writes to. Documents and errors have copies of its content.
type scratch struct {
	edits   [arrayCount]listEdit // what becomes of the arrays
	changes []change
	text    []byte // JSON of changes and of elements that are added, one after the other
}

// scratchBytesMax is how much scratch waits for another request: more than most take, so that an
// unusual one does not hold on to its memory.
const scratchBytesMax = 64 << 10

// builders hold nothing except scratch. It is a third of what a commit of a small table would
// allocate.
var builders = sync.Pool{New: func() any { return new(builder) }}

// newBuilder returns a builder that has changed nothing. It may be released when its document is
// finished.
func newBuilder(base *Document, env Env) *builder {
	b := builders.Get().(*builder)
	b.start(base, env)
	return b
}

func (b *builder) start(base *Document, env Env) {
	b.next = &Document{index: base.index}
	b.index, b.base, b.env, b.nowMS = &b.next.index, base, env, env.Now.UnixMilli()
	for a := range b.edits {
		b.edits[a].base = &base.arrays[a]
	}
}

// release leaves the scratch of b to other requests.
func (b *builder) release() {
	if b.held() > scratchBytesMax {
		return
	}
	b.reset()
	builders.Put(b)
}

// reset makes b forget all but where its scratch lies.
func (b *builder) reset() {
	b.progress = progress{}
	clear(b.changes)
	b.changes, b.text = b.changes[:0], b.text[:0]
	for a := range b.edits {
		edit := &b.edits[a]
		clear(edit.added)
		edit.base, edit.drops = nil, 0
		edit.dropped, edit.added = edit.dropped[:0], edit.added[:0]
	}
}

// held is the memory that the scratch holds outside its fixed part, roughly.
func (s *scratch) held() int {
	const newElementBytes = 32
	n := cap(s.text)
	for a := range s.edits {
		n += cap(s.edits[a].dropped) + newElementBytes*cap(s.edits[a].added)
	}
	return n
}

// decoder reads the objects of an array that a request carries.
type decoder struct {
	cursor
	members []jsonField // of the object that was read last
}

// decoders have nothing but room for members.
var decoders = sync.Pool{New: func() any { return new(decoder) }}

// newDecoder returns a decoder of j. It may be released when nothing refers to the members of its
// objects.
func newDecoder(j jsontext.Checked) *decoder {
	d := decoders.Get().(*decoder)
	d.cursor = cursor{j.Reader()}
	return d
}

// decoderRoomMax is for how many members room waits for another request.
const decoderRoomMax = 32

// release leaves the room of d to other requests.
func (d *decoder) release() {
	members := d.members[:cap(d.members)]
	if len(members) > decoderRoomMax {
		return
	}
	clear(members)
	*d = decoder{members: members[:0]}
	decoders.Put(d)
}

// edit returns the change of an array, which does nothing at first.
func (s *scratch) edit(a arrayName) *listEdit { return &s.edits[a] }

// count returns the number of elements that an array has so far.
func (s *scratch) count(a arrayName) int { return s.edits[a].len() }

// set notes the new value of a member.
func (s *scratch) set(key string, value []byte) {
	s.changes = append(s.changes, change{key: key, value: value})
}

// keep makes text the text of s. text is the text of s and what was appended to it. keep returns
// what was appended.
func (s *scratch) keep(text []byte) []byte {
	appended := text[len(s.text):len(text):len(text)]
	s.text = text
	return appended
}
