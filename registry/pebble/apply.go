package pebble

import (
	"context"
	"fmt"
	"slices"

	"moorage/registry"
)

// request is an Apply, or a backup, that waits for the committer. It shares no memory with the
// caller, which may have returned before the committer writes the request.
type request struct {
	conditions []registry.Condition
	writes     []storedWrite
	hasChange  bool // the last write is a change, which gets a place in the order
	// If alone is not nil, the request has no writes, and the committer calls alone between two
	// groups. All earlier writes are on disk at that time. The result of alone is the answer.
	alone  func() error
	answer chan error // buffered: gets nil if the batch was applied

	taken, withdrawn bool // guarded by queue.mu
}

// storedWrite is a write in the form that the engine stores.
type storedWrite struct {
	key    registry.Key
	header header // zero for a delete
	stored []byte // nil for a delete
}

// newRequest returns the request for a sealed batch.
func newRequest(sealed registry.Batch, etags []registry.ETag) *request {
	r := &request{
		conditions: slices.Clone(sealed.Conditions),
		writes:     make([]storedWrite, len(sealed.Writes)),
		hasChange:  sealed.Change != nil,
		answer:     make(chan error, 1),
	}
	for i, w := range sealed.Writes {
		r.writes[i] = storedWrite{key: w.Key}
		if w.Delete {
			continue
		}
		r.writes[i].header = header{etag: etags[i], state: w.State}
		stored := make([]byte, 0, valueOffset(w.Key.Table)+len(w.Value))
		r.writes[i].stored = appendRecord(stored, w, etags[i])
	}
	return r
}

// isOwnChange reports whether write i is the change record of the request itself.
func (r *request) isOwnChange(i int) bool { return r.hasChange && i == len(r.writes)-1 }

// bytes returns the approximate size of the request's writes.
func (r *request) bytes() int {
	bytes := 0
	for _, w := range r.writes {
		bytes += recordPrefixBytes + len(w.key.ID) + len(w.stored)
	}
	return bytes
}

// Apply implements Store.Apply.
func (s *instance) Apply(ctx context.Context, batch registry.Batch) ([]registry.ETag, error) {
	if err := batch.Check(); err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if err := s.failure.get(); err != nil {
		return nil, err
	}
	etags, err := s.newETags(batch)
	if err != nil {
		return nil, err
	}
	sealed, err := batch.Seal(etags)
	if err != nil {
		return nil, err
	}
	r := newRequest(sealed, etags)
	if err := s.queue.add(r); err != nil {
		return nil, err
	}
	if err := s.wait(ctx, r); err != nil {
		return nil, err
	}
	return etags[:len(batch.Writes):len(batch.Writes)], nil
}

// newETags draws the ETags for a batch.
func (s *instance) newETags(batch registry.Batch) ([]registry.ETag, error) {
	s.randomMu.Lock()
	defer s.randomMu.Unlock()
	return batch.NewETags(s.random)
}

// wait returns the result of a request. It waits for the committer until ctx ends. If the store has
// failed, wait returns without the committer, because the guard may be blocking it.
func (s *instance) wait(ctx context.Context, r *request) error {
	select {
	case err := <-r.answer:
		return err
	case <-s.failure.happened:
		if s.queue.withdraw(r) {
			return s.failure.get()
		}
	case <-ctx.Done():
		if s.queue.withdraw(r) {
			return ctx.Err()
		}
	}
	// The answer may have arrived at the same moment.
	select {
	case err := <-r.answer:
		return err
	default:
	}
	if ctx.Err() != nil {
		return fmt.Errorf("%w: %w", registry.ErrUnknown, ctx.Err())
	}
	return s.failure.unknown()
}
