package jobs

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"moorage/storage"
)

const (
	here      = "s3://here/wh/t"
	elsewhere = "s3://elsewhere/wh/t"
)

var errSlow = fmt.Errorf("delete: %w", storage.ErrSlowDown)

// took returns how long a call of do takes, by the clock of the synctest bubble.
func took(t *testing.T, do func(ctx context.Context) error) time.Duration {
	t.Helper()
	began := time.Now()
	if err := do(t.Context()); err != nil {
		t.Error(err)
	}
	return time.Since(began)
}

// Each resource is spent at its rate. The first use does not wait, and a pause saves nothing up.
func TestRates(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := NewBudget(Rates{Deletes: 500, Pages: 20}, nil)
		remove := func(n int) func(context.Context) error {
			return func(ctx context.Context) error { return b.Delete(ctx, here, n) }
		}
		for i, want := range []time.Duration{0, 2 * time.Second, time.Second} {
			if got := took(t, remove([]int{1000, 500, 1}[i])); got != want {
				t.Errorf("batch %d waited %s, want %s", i, got, want)
			}
		}
		list := func(ctx context.Context) error {
			for range 21 {
				if err := b.List(ctx, here); err != nil {
					return err
				}
			}
			return nil
		}
		if got := took(t, list); got != time.Second {
			t.Errorf("21 pages took %s, want 1s: they have a rate of their own", got)
		}
		time.Sleep(time.Hour)
		if first, second := took(t, remove(500)), took(t, remove(1)); first != 0 || second != time.Second {
			t.Errorf("after a pause the batches waited %s and %s, want 0 and 1s", first, second)
		}
		unbound := NewBudget(Rates{}, nil)
		if got := took(t, func(ctx context.Context) error { return unbound.Delete(ctx, here, 1<<40) }); got != 0 {
			t.Errorf("without a rate a batch waited %s", got)
		}
	})
}

// A storage that asks for fewer requests gets half the rate, then a quarter. A minute later its
// rate is doubled. Other storages keep their rate.
func TestSlowDown(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := NewBudget(Rates{Deletes: 500}, nil)
		// pace returns how long a batch of 500 delays the next batch of the same storage.
		pace := func(location string) time.Duration {
			time.Sleep(10 * time.Second)
			remove := func(ctx context.Context) error { return b.Delete(ctx, location, 500) }
			return took(t, remove) + took(t, remove)
		}
		if err := b.Note(here, errSlow); !errors.Is(err, storage.ErrSlowDown) {
			t.Errorf("the error became %v", err)
		}
		_ = b.Note(here, errSlow) // the result of a request that was in progress
		if got := pace(here); got != 2*time.Second {
			t.Errorf("a batch took %s, want half the rate", got)
		}
		_ = b.Note(here, errSlow)
		if got := pace(here); got != 4*time.Second {
			t.Errorf("a batch took %s, want a quarter of the rate", got)
		}
		if got := pace(elsewhere); got != time.Second {
			t.Errorf("a batch of another storage took %s", got)
		}
		time.Sleep(time.Minute)
		if got := pace(here); got != 2*time.Second {
			t.Errorf("a minute later a batch took %s, want half the rate", got)
		}
		time.Sleep(time.Minute)
		if got := pace(here); got != time.Second {
			t.Errorf("two minutes later a batch took %s, want the whole rate", got)
		}
		for range 100 {
			_ = b.Note(here, errSlow)
			time.Sleep(6 * time.Second)
		}
		if got := pace(here); got != 64*time.Second {
			t.Errorf("a batch took %s, want a sixty-fourth of the rate", got)
		}
		if b.Note(here, nil) != nil || b.Stats().Slowed != 102 {
			t.Errorf("%d halvings were counted", b.Stats().Slowed)
		}
	})
}

// files is a storage with a file of the same length at every location. Reading a file takes a
// while.
type files struct {
	bytes   int
	reading time.Duration
	fail    error
}

func (f files) Open(context.Context, string) (io.ReadCloser, storage.Info, error) {
	if f.fail != nil {
		return nil, storage.Info{}, f.fail
	}
	return io.NopCloser(slowReader{bytes.NewReader(make([]byte, f.bytes)), f.reading}), storage.Info{Bytes: int64(f.bytes)}, nil
}

type slowReader struct {
	io.Reader
	reading time.Duration
}

func (r slowReader) Read(into []byte) (int, error) {
	time.Sleep(r.reading)
	return r.Reader.Read(into)
}

// Bytes are read at their rate. Decoding time counts against the budget; the storage's time does
// not.
func TestReader(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := NewBudget(Rates{ReadBytes: 1000, Busy: 500 * time.Millisecond}, nil)
		read := func(of files, decoding time.Duration) func(context.Context) error {
			return func(ctx context.Context) error {
				body, _, err := b.reader(of).Open(ctx, here)
				if err != nil {
					return err
				}
				if _, err := io.ReadFull(body, make([]byte, of.bytes)); err != nil {
					return err
				}
				time.Sleep(decoding)
				return body.Close()
			}
		}
		if got := took(t, read(files{bytes: 3000}, 0)); got != 0 {
			t.Errorf("the first file took %s", got)
		}
		if got := took(t, read(files{bytes: 100}, 0)); got != 3*time.Second {
			t.Errorf("the second file took %s, want 3s for the bytes before it", got)
		}
		time.Sleep(time.Minute)
		if got := took(t, read(files{bytes: 10, reading: 2 * time.Second}, time.Second)); got != 3*time.Second {
			t.Errorf("a file took %s, want 2s of the storage and 1s of the decoder", got)
		}
		if got := took(t, read(files{bytes: 10}, 0)); got != 2*time.Second {
			t.Errorf("the next file took %s, want 2s: half a processor had 1s to decode", got)
		}
		if got := b.Stats().ReadBytes; got != 3120 {
			t.Errorf("%d bytes were read", got)
		}
		if err := read(files{fail: errSlow}, 0)(t.Context()); !errors.Is(err, storage.ErrSlowDown) || b.Stats().Slowed != 1 {
			t.Errorf("a storage that asks for fewer requests: %v, %+v", err, b.Stats())
		}
	})
}

// A call stops waiting when its context ends.
func TestContextEnds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := NewBudget(Rates{Deletes: 1}, nil)
		_ = b.Delete(t.Context(), here, 1000)
		ctx, stop := context.WithTimeout(t.Context(), time.Second)
		defer stop()
		began := time.Now()
		if err := b.Delete(ctx, here, 1); !errors.Is(err, context.DeadlineExceeded) || time.Since(began) != time.Second {
			t.Errorf("left after %s with %v", time.Since(began), err)
		}
	})
}
