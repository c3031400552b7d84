package manifests

import (
	"fmt"
	"strings"
	"sync"
	"unsafe"
)

// schemasBytesMax is the maximum size of the schemas that a Reader remembers, parsed and as text.
// The schema of a list takes about 20 KiB, and that of a manifest about 30 KiB.
const schemasBytesMax = 8 << 20

// Reader reads lists and manifests. It parses each schema once, because most files of a table have
// the same schema. It is safe for concurrent use. The zero value is ready.
type Reader struct {
	mu sync.Mutex
	// mu guards the fields below. No other lock is taken while it is held.
	schemas map[string]*schema // by text; all are dropped when they exceed schemasBytesMax
	bytes   int                // of schemas
}

// schema returns the type that text describes. It also returns text, in memory that all callers
// share.
func (r *Reader) schema(text string) (string, *schema, error) {
	r.mu.Lock()
	known, ok := r.schemas[text]
	r.mu.Unlock()
	if ok {
		return known.text, known, nil
	}
	text = strings.Clone(text)
	parsed, err := parseSchema(text)
	if err != nil {
		return "", nil, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	size := len(text) + parsed.nodes*nodeBytes
	if r.bytes += size; r.schemas == nil || r.bytes > schemasBytesMax {
		r.schemas, r.bytes = make(map[string]*schema), size
	}
	r.schemas[text] = parsed
	return text, parsed, nil
}

// buffers holds memory for unpacked blocks and for blocks to pack.
var buffers = sync.Pool{New: func() any { return new([]byte) }}

// bufferBytesMax is the maximum size of reused buffers. A list of 10,000 manifests fits.
const bufferBytesMax = 4 << 20

// giveBack makes buffer available again. The caller must not keep a reference to its memory.
func giveBack(buffer *[]byte) {
	if cap(*buffer) <= bufferBytesMax {
		buffers.Put(buffer)
	}
}

// textOf returns the bytes as text without a copy. The caller must not change them.
func textOf(bytes []byte) string { return unsafe.String(unsafe.SliceData(bytes), len(bytes)) }

// List reads a manifest list. bytesMax and FileBytesMax limit the memory that the list would take
// without a model. Reading takes up to twice as much memory. The caller may change raw afterwards.
//
// model is nil, or a list that probably has most of the same records, such as the list of the
// parent snapshot. Both lists then share the entries of equal records. Apart from memory, the
// result does not depend on model.
//
// Errors: ErrDamaged, also if a path is listed twice; ErrTooLarge; ErrForeign for an unknown codec.
func (r *Reader) List(raw []byte, model *List, bytesMax int) (*List, error) {
	file, err := r.open(textOf(raw))
	if err == nil && file.schema.nodes > listNodesMax {
		err = damaged("schema has %d nodes", file.schema.nodes)
	}
	if err != nil {
		return nil, fmt.Errorf("manifest list: %w", err)
	}
	count := 0
	var expected known
	if model != nil && sameValues(file.schema, model.file.schema) {
		expected.list, count = model, len(model.entries)+1
	}
	l := newList(file, count)
	bytesMax = min(bytesMax, FileBytesMax)
	left := bytesMax
	scratch := buffers.Get().(*[]byte)
	defer giveBack(scratch)
	for c, err := range file.records(&left, scratch) {
		if err == nil {
			err = l.read(c, &expected, bytesMax)
		}
		if err != nil {
			return nil, fmt.Errorf("manifest list: record %d: %w", len(l.entries), err)
		}
	}
	file.blocks = ""
	if err := l.seal(); err != nil {
		return nil, fmt.Errorf("manifest list: %w", err)
	}
	return l, nil
}

// read reads one record of the file, and adds its entry.
func (l *List) read(c *cursor, expected *known, bytesMax int) error {
	if e := expected.follow(c); e != nil {
		return l.take(e, true, bytesMax)
	}
	e := &Entry{schema: l.file.schema}
	start := c.at
	if err := c.fields(l.file.schema, e.set, nil); err != nil {
		return err
	}
	if err := e.complete(); err != nil {
		return err
	}
	e.Raw = c.text[start:c.at]
	if other := expected.find(e); other != nil {
		return l.take(other, true, bytesMax)
	}
	e.own()
	return l.take(e, false, bytesMax)
}

// known finds, while a list is read, entries with equal records in another list of the same schema.
// It expects the records in the same order. The zero value has no other list.
type known struct {
	list *List
	next int // index of the expected entry
}

// follow returns the expected entry, and moves c past its record, if that record is next at c.
// Otherwise it returns nil. Bytes of the same schema have the same meaning, so they are not
// decoded.
func (k *known) follow(c *cursor) *Entry {
	if k.list == nil || k.next == len(k.list.entries) {
		return nil
	}
	e := k.list.entries[k.next]
	if !strings.HasPrefix(c.text[c.at:], e.Raw) {
		return nil
	}
	c.at += len(e.Raw)
	k.next++
	return e
}

// find returns the entry with the same record as e, or nil. After that, k expects the entry that
// follows the returned one.
func (k *known) find(e *Entry) *Entry {
	if k.list == nil {
		return nil
	}
	at, ok := k.list.find(e)
	if !ok {
		return nil
	}
	k.next = at + 1
	if other := k.list.entries[at]; other.Raw == e.Raw {
		return other
	}
	return nil
}
