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

// Bounds of reading metadata files. A file of a few kilobytes may decompress to any size, and many
// clients may request files at once.
const (
	// BytesMax bounds a metadata file before and after decompression. It is enough for about a
	// hundred thousand snapshots.
	BytesMax = 256 << 20
	// unpackedTimes is the assumed ratio of unpacked to compressed length. The ratio of most files
	// is slightly lower.
	unpackedTimes = 8
	// readStepBytes is the additional room for a file that is longer than assumed.
	readStepBytes = 16 << 20
	// ReadStallMax is how long a read that holds room may wait for bytes. Other requests could use
	// that room.
	ReadStallMax = 5 * time.Second
)

// errReadStalled means that a read held room for too long without progress.
var errReadStalled = errors.New("documents: no byte came for " + ReadStallMax.String())

// Read reads and parses the metadata file at location, compressed or not, whatever its name. If the
// file is missing, the error is KindNotFound. If it cannot be parsed, the kind comes from
// metadata.Parse or ParseView. If it is too long, the error is KindValidation, and if there is no
// room for a long file, it is KindTooManyRequests. The room is taken from the share of the
// warehouse.
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
	defer held.GiveBack() // once the file is parsed: the cache accounts for what it keeps
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

// sourceReader reads a metadata file. It remembers a read error, to distinguish it from faults in
// the content. It cancels a read that holds room and gets no bytes.
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

// readWithin returns the whole unpacked file. size is its length in the storage. For a long file,
// readWithin takes room in held.
func (s *sourceReader) readWithin(ctx context.Context, held *Share, size int64) ([]byte, error) {
	packed := bufio.NewReaderSize(s, 64<<10)
	plain, likely := io.Reader(packed), size
	if head, _ := packed.Peek(2); bytes.Equal(head, []byte{0x1f, 0x8b}) { // the first Read returns the error
		likely = size * unpackedTimes
		unpacked, err := gzip.NewReader(packed)
		if err != nil {
			return nil, err
		}
		plain = unpacked
	}
	room := min(likely, RoomFreeBytes)
	err := held.Take(ctx, room) // does not wait: RoomFreeBytes need no room
	var raw []byte
	for err == nil {
		raw = append(make([]byte, 0, room+1), raw...) // one more byte shows whether the file is longer
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

// fitted returns raw in a slice with little spare capacity, because raw may stay in the cache.
func fitted(raw []byte) []byte {
	if cap(raw)-len(raw) > len(raw)/4 {
		return bytes.Clone(raw)
	}
	return raw
}

// explain adds a kind to the error of reading the file at location.
func (s *sourceReader) explain(location string, err error) error {
	if s.failure != nil {
		return FileError(location, s.failure)
	}
	return moorage.Errorf(moorage.KindValidation, "Cannot read metadata file %s: %w", location, err)
}
