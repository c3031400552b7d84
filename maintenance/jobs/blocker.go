package jobs

import (
	"context"
	"sync"
	"time"

	"moorage/ledger"
	"moorage/registry"
)

// blockerOf returns the write that makes or ends the blocker of a job which goes into state: there
// is one as long as the job is blocked.
func blockerOf(at *job, value registry.Job, state registry.State, now time.Time) ([]registry.Write, error) {
	key := registry.DueBlockedKey(value.Pointer, value.Kind)
	switch {
	case state == registry.StateBlocked:
		return ledger.Encode(ledger.Put(key, registry.StateNone, registry.Due{Reason: value.LastError, Since: now}))
	case at.record.State == registry.StateBlocked:
		return []registry.Write{registry.Delete(key)}, nil
	}
	return nil, nil
}

// pace bounds how many files a process deletes a second.
type pace struct {
	perSecond int // 0: no bound
	now       func() time.Time

	mu   sync.Mutex // guards next; leaf
	next time.Time  // when the next batch may begin
}

// wait waits until a batch of so many files may be deleted. Batches that wait go one after another.
func (p *pace) wait(ctx context.Context, files int) error {
	if p.perSecond <= 0 {
		return nil
	}
	p.mu.Lock()
	now := p.now()
	begin := p.next
	if begin.Before(now) {
		begin = now
	}
	p.next = begin.Add(time.Duration(files) * time.Second / time.Duration(p.perSecond))
	p.mu.Unlock()
	timer := time.NewTimer(begin.Sub(now))
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
