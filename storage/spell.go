package storage

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"moorage"
)

// spell is a period in which calls of one group fail. It is safe for concurrent use.
type spell struct {
	failing atomic.Bool // whether since is set; lets successful calls avoid the lock

	mu          sync.Mutex // guards the fields below; innermost lock
	since, last time.Time  // times of the first and the last failure; zero if there is none
	works       time.Time  // time of a success after the last failure; zero if there is none
	failed      int
	why         string
}

// record records the result and the duration of a call.
func (w *watchedWarehouse) record(ctx context.Context, call string, took time.Duration, err error) {
	outcome := outcomeOf(ctx, took, err)
	w.watch.config.Ended(ctx, w.label, call, outcome, took)
	if w.name == "" {
		return
	}
	switch outcome {
	case outcomeSlowDown, outcomeNoCredentials, outcomeUnavailable, outcomeTimeout, outcomeError:
		w.fail(groupOf(call), err)
	case outcomeDone, outcomeMissing, outcomeExists:
		if missing := call == callProbe && err != nil; missing { // the container of the files
			w.fail(callReads, err)
			return
		}
		w.succeed(groupOf(call))
	}
}

// groupOf returns the group of a call. Opening a storage counts as a read, because usually a read
// is the first use of the storage.
func groupOf(call string) callGroup {
	switch call {
	case callPut, callDelete, callFolder:
		return callWrites
	case callVend, callSign:
		return callCredentials
	}
	return callReads
}

// fail records that a call failed. It logs the first failure of a spell.
func (w *watchedWarehouse) fail(g callGroup, err error) {
	s, now, why := &w.spells[g], w.watch.config.Now(), moorage.OneLine(err.Error())
	if len(why) > errorBytesMax {
		why = strings.ToValidUTF8(why[:errorBytesMax], "") + "…"
	}
	s.mu.Lock()
	first := s.since.IsZero()
	if first {
		s.since, s.failed = now, 0
		s.failing.Store(true)
	}
	s.last, s.works, s.why = now, time.Time{}, why
	s.failed++
	s.mu.Unlock()
	if first {
		w.watch.config.Logger.Warn("the storage of a warehouse fails: requests that need it fail until it works again",
			"warehouse", w.name, "calls", g.String(), "error", why)
	}
}

// succeed records that a call succeeded.
func (w *watchedWarehouse) succeed(g callGroup) {
	s := &w.spells[g]
	if !s.failing.Load() {
		return
	}
	s.mu.Lock()
	if s.works.IsZero() {
		s.works = w.watch.config.Now()
	}
	s.mu.Unlock()
	w.settle(g)
}

// settle ends a spell if a call has succeeded since and no call has failed for quietMin. It logs
// the end.
func (w *watchedWarehouse) settle(g callGroup) {
	s := &w.spells[g]
	s.mu.Lock()
	over := !s.since.IsZero() && !s.works.IsZero() && w.watch.config.Now().Sub(s.last) >= quietMin
	lasted, failed := s.works.Sub(s.since), s.failed
	if over {
		s.since, s.works = time.Time{}, time.Time{}
		s.failing.Store(false)
	}
	s.mu.Unlock()
	if over {
		w.watch.config.Logger.Info("the storage of a warehouse works again", "warehouse", w.name,
			"calls", g.String(), "lasted", lasted.Round(time.Second), "failed", failed)
	}
}

// failures returns the present failures of a warehouse, after settling its spells.
func (w *watchedWarehouse) failures() (failures []Failure) {
	for g := range callGroups {
		w.settle(g)
		s := &w.spells[g]
		s.mu.Lock()
		if !s.since.IsZero() {
			failures = append(failures, Failure{
				Warehouse: w.name, Label: w.label, Calls: g.String(), Since: s.since, Last: s.last, Error: s.why,
			})
		}
		s.mu.Unlock()
	}
	return failures
}

// The outcomes of calls.
const (
	outcomeDone          = "done"
	outcomeMissing       = "missing"
	outcomeExists        = "exists"
	outcomeRefused       = "refused" // refused by the server itself; nothing was sent
	outcomeCanceled      = "canceled"
	outcomeTimeout       = "timeout"
	outcomeSlowDown      = "slow-down"
	outcomeNoCredentials = "no-credentials"
	outcomeUnavailable   = "unavailable"
	outcomeError         = "error"
)

// outcomeOf names the result of a call. A call shows nothing about the storage if its caller
// abandoned it early, or if it had hardly any time.
func outcomeOf(ctx context.Context, took time.Duration, err error) string {
	if err == nil {
		return outcomeDone
	}
	switch ended := ctx.Err(); {
	case errors.Is(ended, context.Canceled) && took < canceledMin,
		errors.Is(ended, context.DeadlineExceeded) && took < lateMin:
		return outcomeCanceled
	case ended != nil:
		return outcomeTimeout
	}
	for _, named := range []struct {
		err  error
		name string
	}{
		{ErrSlowDown, outcomeSlowDown},
		{ErrNoCredentials, outcomeNoCredentials},
		{ErrUnavailable, outcomeUnavailable},
		{context.DeadlineExceeded, outcomeTimeout},
		{ErrOutside, outcomeRefused},
		{ErrLocation, outcomeRefused},
		{ErrUnscopable, outcomeRefused},
		{ErrMalformedRequest, outcomeRefused},
		{ErrNotSigned, outcomeRefused},
		{ErrNeedsWrite, outcomeRefused},
		{ErrNotFound, outcomeMissing},
		{ErrExists, outcomeExists},
	} {
		if errors.Is(err, named.err) {
			return named.name
		}
	}
	return outcomeError
}
