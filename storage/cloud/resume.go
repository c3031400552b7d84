package cloud

import (
	"bytes"
	"errors"
	"fmt"
	"hash"
	"io"
)

// resumesMax bounds the number of times that a read of one object resumes after a broken
// connection.
const resumesMax = 4

// Content describes an object to read.
type Content struct {
	Name  string // for errors
	Bytes int64  // size of the object
	// Resume requests the same version of the object, from offset on.
	Resume func(offset int64) (io.ReadCloser, error)
	// Sum is a hash whose final value must be Want. It is nil if the storage has no checksum.
	Sum  hash.Hash
	Want []byte
}

// body reads a Content. It is not safe for concurrent use.
type body struct {
	Content
	stream  io.ReadCloser // of the latest answer
	offset  int64
	resumes int
	end     error // if set, what Read returns from now on
}

// Resume returns a reader of content. stream must deliver the content from the beginning. If a
// connection breaks, the reader requests the rest. Its Read returns io.EOF only if it has read all
// bytes and they match the checksum. Its Close closes the current stream. The reader is not safe
// for concurrent use.
func Resume(stream io.ReadCloser, content Content) io.ReadCloser {
	return &body{Content: content, stream: stream}
}

// Read continues reading, even after a broken connection.
func (b *body) Read(into []byte) (int, error) {
	for b.end == nil {
		n, err := b.stream.Read(into)
		b.offset += int64(n)
		if b.Sum != nil {
			b.Sum.Write(into[:n])
		}
		switch {
		case err == nil:
			return n, nil
		case b.offset >= b.Bytes: // all bytes have arrived, whatever err is
			b.end = b.verify()
		default:
			b.end = b.resume(err)
		}
		if n > 0 {
			return n, nil
		}
	}
	return 0, b.end
}

// verify returns io.EOF if the bytes that were read match the storage's checksum.
func (b *body) verify() error {
	switch {
	case b.offset > b.Bytes:
		return fmt.Errorf("%s has more than its %d bytes", b.Name, b.Bytes)
	case b.Sum != nil && !bytes.Equal(b.Sum.Sum(nil), b.Want):
		return fmt.Errorf("%s: its content and its checksum differ", b.Name)
	}
	return io.EOF
}

// resume replaces a stream that ended early because of cause.
func (b *body) resume(cause error) error {
	if errors.Is(cause, io.EOF) {
		cause = io.ErrUnexpectedEOF
	}
	if b.resumes == resumesMax {
		return fmt.Errorf("%s: cut %d times, the last at %d of %d bytes: %w", b.Name, b.resumes+1, b.offset, b.Bytes,
			cause)
	}
	b.resumes++
	if err := b.stream.Close(); err != nil {
		cause = errors.Join(cause, err)
	}
	next, err := b.Resume(b.offset)
	if err != nil {
		return fmt.Errorf("%s: cut at %d of %d bytes: %w, and the rest cannot be read: %w", b.Name, b.offset, b.Bytes,
			cause, err)
	}
	b.stream = next
	return nil
}

// Close closes the connection.
func (b *body) Close() error { return b.stream.Close() }
