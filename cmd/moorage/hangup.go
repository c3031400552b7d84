package main

import (
	"context"
	"os"
	"os/signal"
	"sync"
	"syscall"
)

// hangups heeds SIGHUP. A terminal that closes sends it, and so does who moved a log file away. It
// is safe for concurrent use.
type hangups struct {
	signals chan os.Signal

	mu   sync.Mutex // guards then; leaf
	then func()     // what a signal leads to
}

// heedHangups returns a context that the first SIGHUP ends, unless the process was started to
// outlive its terminal (nohup) or do says what to do instead.
func heedHangups(ctx context.Context) (context.Context, *hangups) {
	ctx, end := context.WithCancel(ctx)
	h := &hangups{signals: make(chan os.Signal, 1), then: end}
	if !signal.Ignored(syscall.SIGHUP) {
		signal.Notify(h.signals, syscall.SIGHUP)
	}
	go func() {
		for range h.signals {
			h.mu.Lock()
			then := h.then
			h.mu.Unlock()
			then()
			if ctx.Err() != nil {
				signal.Stop(h.signals) // a second one ends the process at once
			}
		}
	}()
	return ctx, h
}

// do has each SIGHUP call what is to be done, and end nothing.
func (h *hangups) do(what func()) {
	h.mu.Lock()
	h.then = what
	h.mu.Unlock()
	signal.Notify(h.signals, syscall.SIGHUP)
}
