package documents

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/klauspost/compress/gzip"

	"moorage"
	"moorage/catalog/directory"
	"moorage/storage"
)

// Bounds of reading metadata files. A file of a few kilobytes may unpack to any size, and many
// clients may ask at once.
const (
	// BytesMax bounds a metadata file, before and after decompression: a hundred thousand snapshots
	// or so.
	BytesMax = 256 << 20
	// unpackedTimes is how many times as long a compressed file is taken for: most are a little
	// shorter unpacked.
	unpackedTimes = 8
	// readStepBytes is how much more room a file takes that turns out to be longer than it was
	// taken for.
	readStepBytes = 16 << 20
	// ReadStallMax is how long a read that holds room may wait for bytes: others could use the
	// room.
	ReadStallMax = 5 * time.Second
)

// errReadStalled is why a read that held room for too long was ended.
var errReadStalled = errors.New("documents: no byte came for " + ReadStallMax.String())

// Read reads and parses the metadata file at location, compressed or not: its name does not matter,
// writers have used several. A file that is missing is KindNotFound, one that cannot be parsed has
// the kind of metadata.Parse or ParseView, one that is too long KindValidation, and a long one for
// which there is no room KindTooManyRequests. It takes the room of the warehouse.
func (d *Documents) Read(ctx context.Context, k *directory.Kind, warehouse string, store storage.Store,
	location string) (Document, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	body, info, err := store.Open(ctx, location)
	if err != nil {
		return nil, FileError(location, err)
	}
	defer body.Close()
	if info.Bytes > BytesMax {
		return nil, moorage.Errorf(moorage.KindValidation,
			"Cannot read metadata file %s: it has %d bytes, at most %d are read", location, info.Bytes, BytesMax)
	}
	held := d.room.Enter(warehouse)
	defer held.GiveBack() // once it is parsed: what is kept the cache counts
	source := &sourceReader{Reader: body, cancel: cancel}
	raw, err := source.readWithin(ctx, held, info.Bytes)
	switch {
	case moorage.KindOf(err) == moorage.KindTooManyRequests:
		return nil, err
	case err != nil && ctx.Err() != nil:
		return nil, FileError(location, context.Cause(ctx))
	case err != nil:
		return nil, source.explain(location, err)
	}
	document, err := parse(k, raw)
	if err != nil {
		return nil, moorage.Annotate("documents.Read", location, err)
	}
	return document, nil
}

// sourceReader is a metadata file that is being read. It remembers how that failed, so that it is
// told from what is wrong with the content, and ends a read that holds room and gets nothing.
type sourceReader struct {
	io.Reader
	cancel  context.CancelCauseFunc // of the context of the reads
	hasRoom bool
	failure error
}

// Read implements io.Reader.
func (s *sourceReader) Read(p []byte) (int, error) {
	if s.hasRoom {
		stalled := time.AfterFunc(ReadStallMax, func() { s.cancel(errReadStalled) })
		defer stalled.Stop()
	}
	n, err := s.Reader.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		s.failure = err
	}
	return n, err
}

// readWithin returns all of the file, unpacked, which has size bytes; what is long, within the room
// that held gets.
func (s *sourceReader) readWithin(ctx context.Context, held *Share, size int64) ([]byte, error) {
	packed := bufio.NewReaderSize(s, 64<<10)
	plain, likely := io.Reader(packed), size
	if head, _ := packed.Peek(2); bytes.Equal(head, []byte{0x1f, 0x8b}) { // what is wrong with it, the first read says
		likely = size * unpackedTimes
		unpacked, err := gzip.NewReader(packed)
		if err != nil {
			return nil, err
		}
		plain = unpacked
	}
	room := min(likely, RoomFreeBytes)
	err := held.Take(ctx, room) // without waiting
	var raw []byte
	for err == nil {
		raw = append(make([]byte, 0, room+1), raw...) // with one more it is seen whether there is more
		for err == nil && len(raw) < cap(raw) {
			var n int
			n, err = plain.Read(raw[len(raw):cap(raw)])
			raw = raw[:len(raw)+n]
		}
		switch {
		case errors.Is(err, io.EOF):
			return fitted(raw), nil
		case err != nil:
		case room == BytesMax:
			err = fmt.Errorf("more than %d bytes", room)
		default:
			next := min(max(likely, min(2*room, room+readStepBytes), RoomFreeBytes), BytesMax)
			err = held.Take(ctx, next-room)
			room, s.hasRoom = next, true
		}
	}
	return nil, err
}

// fitted returns raw in memory that is not much longer: it may be kept.
func fitted(raw []byte) []byte {
	if cap(raw)-len(raw) > len(raw)/4 {
		return bytes.Clone(raw)
	}
	return raw
}

// explain gives the failure of reading the file at location its kind.
func (s *sourceReader) explain(location string, err error) error {
	if s.failure != nil {
		return FileError(location, s.failure)
	}
	return moorage.Errorf(moorage.KindValidation, "Cannot read metadata file %s: %w", location, err)
}
