package catalog

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/klauspost/compress/gzip"
	"golang.org/x/sync/semaphore"

	"moorage"
	"moorage/storage"
)

// Bounds of reading metadata files. A file of a few kilobytes may unpack to any size, and many clients may ask at once.
const (
	// metadataBytesMax bounds a metadata file, before and after decompression: a hundred thousand snapshots or so.
	metadataBytesMax = 256 << 20
	// freeReadBytes is how much of a file is read without asking for room: nearly all are shorter.
	freeReadBytes = 4 << 20
	// readRoomBytes is the room for files that are longer, while they are read and parsed.
	readRoomBytes = 1 << 30
	// readRoomWait is how long a read waits for room that others have taken.
	readRoomWait = 10 * time.Second
)

func newReadRoom() *semaphore.Weighted { return semaphore.NewWeighted(readRoomBytes) }

// readDocument reads and parses the metadata file at location, compressed or not: its name does not matter, writers have used
// several. A file that is missing is KindNotFound, one that cannot be parsed has the kind of metadata.Parse or ParseView, one that is too long
// KindValidation, and a long one for which there is no room KindTooManyRequests.
func (c *Catalog) readDocument(ctx context.Context, k *kind, store storage.Store, location string) (document, error) {
	body, info, err := store.Open(ctx, location)
	if err != nil {
		return nil, fileError(location, err)
	}
	defer body.Close()
	if info.Bytes > metadataBytesMax {
		return nil, moorage.Errorf(moorage.KindValidation, "Cannot read metadata file %s: it has %d bytes, at most %d are read", location, info.Bytes, metadataBytesMax)
	}
	source := &sourceReader{Reader: body}
	packed := bufio.NewReaderSize(source, 64<<10)
	plain := io.Reader(packed)
	likely := info.Bytes
	if head, _ := packed.Peek(2); bytes.Equal(head, []byte{0x1f, 0x8b}) { // what is wrong with it, the first read says
		likely = metadataBytesMax
		if plain, err = gzip.NewReader(packed); err != nil {
			return nil, source.explain(location, err)
		}
	}
	raw, giveBack, err := c.readWithin(ctx, plain, info.Bytes, likely)
	defer giveBack()
	if moorage.KindOf(err) == moorage.KindTooManyRequests {
		return nil, err
	}
	if err != nil {
		return nil, source.explain(location, err)
	}
	document, err := k.parse(raw)
	if err != nil {
		return nil, moorage.Annotate("read metadata", location, err)
	}
	return document, nil
}

// readWithin reads all of content, which is likely to be of so many bytes; if it is long, within the room that there is. giveBack, which is
// never nil, must be called when the bytes are not needed any more, or have been counted elsewhere.
func (c *Catalog) readWithin(ctx context.Context, content io.Reader, first, likely int64) (raw []byte, giveBack func(), err error) {
	giveBack = func() {}
	var buffer bytes.Buffer
	buffer.Grow(int(min(first, freeReadBytes)) + bytes.MinRead)
	n, err := buffer.ReadFrom(io.LimitReader(content, freeReadBytes+1))
	if err != nil || n <= freeReadBytes {
		return buffer.Bytes(), giveBack, err
	}
	room := min(likely, metadataBytesMax)
	if n > likely {
		room = metadataBytesMax
	}
	waiting, cancel := context.WithTimeout(ctx, readRoomWait)
	defer cancel()
	if c.readRoom.Acquire(waiting, room) != nil {
		if ctx.Err() != nil {
			return nil, giveBack, ctx.Err()
		}
		return nil, giveBack, moorage.Errorf(moorage.KindTooManyRequests, "Too many large metadata files are being read; nothing was changed")
	}
	giveBack = func() { c.readRoom.Release(room) }
	buffer.Grow(int(max(min(first, metadataBytesMax)-n, 0)) + bytes.MinRead)
	more, err := buffer.ReadFrom(io.LimitReader(content, room+1-n))
	if n += more; err == nil && n > room {
		err = fmt.Errorf("more than %d bytes", room)
	}
	return buffer.Bytes(), giveBack, err
}

// sourceReader remembers how reading a file failed, so that this is told from what is wrong with its content.
type sourceReader struct {
	io.Reader
	failure error
}

// Read implements io.Reader.
func (s *sourceReader) Read(p []byte) (int, error) {
	n, err := s.Reader.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		s.failure = err
	}
	return n, err
}

// explain gives the failure of reading the file at location its kind.
func (s *sourceReader) explain(location string, err error) error {
	if s.failure != nil {
		return fileError(location, s.failure)
	}
	return moorage.Errorf(moorage.KindValidation, "Cannot read metadata file %s: %w", location, err)
}
