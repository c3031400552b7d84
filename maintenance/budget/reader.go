package budget

import (
	"context"
	"errors"
	"io"
	"time"

	"moorage/storage"
)

// Files opens files. storage.Store implements it.
type Files interface {
	Open(ctx context.Context, location string) (io.ReadCloser, storage.Info, error)
}

// Reader opens files of another Files, within a budget.
type Reader struct {
	budget *Budget
	files  Files
}

// Reader returns a Reader that opens files within the budget of b.
func (b *Budget) Reader(files Files) Reader { return Reader{b, files} }

// Open opens a file when its bytes may be read, and when the time to decode earlier files is within
// the budget. The error comes from the context or from files.
func (r Reader) Open(ctx context.Context, location string) (io.ReadCloser, storage.Info, error) {
	if err := r.budget.spend(ctx, location, busy, 0); err != nil {
		return nil, storage.Info{}, err
	}
	body, info, err := r.files.Open(ctx, location)
	if err != nil {
		return nil, info, r.budget.Note(location, err)
	}
	if err := r.budget.spend(ctx, location, readBytes, info.Bytes); err != nil {
		return nil, info, errors.Join(err, body.Close())
	}
	return &measured{ReadCloser: body, budget: r.budget, location: location, opened: r.budget.now()}, info, nil
}

// measured is an open file. The time between two reads counts as the decoder's.
type measured struct {
	io.ReadCloser
	budget   *Budget
	location string
	opened   time.Time
	reading  time.Duration
	bytes    int64
}

// Read implements io.Reader.
func (m *measured) Read(into []byte) (int, error) {
	began := m.budget.now()
	n, err := m.ReadCloser.Read(into)
	m.reading += m.budget.now().Sub(began)
	m.bytes += int64(n)
	if err != nil && !errors.Is(err, io.EOF) {
		return n, m.budget.Note(m.location, err)
	}
	return n, err
}

// Close implements io.Closer.
func (m *measured) Close() error {
	b := m.budget
	b.mu.Lock()
	now := b.now()
	b.stats.ReadBytes += m.bytes
	b.reserveLocked(m.location, busy, int64(now.Sub(m.opened)-m.reading), now)
	b.mu.Unlock()
	return m.ReadCloser.Close()
}
