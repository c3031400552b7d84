package file

import (
	"context"
	"errors"
	"io"
)

// pieceBytes is the number of bytes of a file that one call reads. Nearly all metadata files are
// shorter.
const pieceBytes = 256 << 10

// body is a file that is being read, piece by piece. A separate call reads each piece into body's
// own memory, because a call that hangs must not write to the memory passed to Read.
type body struct {
	content handle // nil once closed
	piece   []byte // length pieceBytes, or the file's size plus one
	left    []byte // the part of piece that Read has not returned yet
	failure error  // the end of reading; io.EOF at the end of the file
	calls   *calls
	fill    func() error // reads the next piece, for Read
}

// newBody returns the body of content, a file of size bytes, with its first piece. If the file ends
// with that piece, it is closed.
func newBody(content handle, size int64) *body {
	b := &body{content: content, piece: make([]byte, min(size, pieceBytes-1)+1)}
	b.next()
	if b.failure != nil {
		_ = content.Close() // nothing was written through it
		b.content = nil
	}
	return b
}

// next reads the next piece.
func (b *body) next() {
	n := 0
	for n < len(b.piece) && b.failure == nil {
		var more int
		more, b.failure = b.content.Read(b.piece[n:])
		n += more
	}
	b.left = b.piece[:n]
}

// countAs makes calls of Read count as calls of c, until ctx ends.
func (b *body) countAs(ctx context.Context, c *calls) {
	b.calls = c
	b.fill = func() error {
		ctx, cancel := context.WithTimeout(ctx, answerMax)
		defer cancel()
		next := *b // used by an abandoned call
		_, err := ask(ctx, c, aLook(), func() (struct{}, error) { next.next(); return struct{}{}, nil }, nil)
		if err == nil {
			b.left, b.failure = next.left, next.failure
		}
		return err
	}
}

// Read implements io.Reader.
func (b *body) Read(p []byte) (int, error) {
	if len(b.left) == 0 && b.failure == nil {
		if err := b.fill(); err != nil {
			b.failure = err // the call may still be using the piece
		}
	}
	if len(b.left) == 0 && b.failure != nil {
		return 0, b.failure
	}
	n := copy(p, b.left)
	b.left = b.left[n:]
	return n, nil
}

// Close implements io.Closer. An abandoned call keeps the file open until the call returns.
func (b *body) Close() error {
	b.left = nil
	if b.failure == nil {
		b.failure = errClosed
	}
	if b.content == nil {
		return nil
	}
	content := b.content
	b.content = nil
	return b.calls.close(content.Close)
}

var errClosed = errors.New("the file is closed")

var _ io.ReadCloser = (*body)(nil)
