package main

import (
	"context"
	"os"
	"os/signal"
	"sync"
	"syscall"
)

// hangups handles SIGHUP. A closing terminal sends it, and so does a program that rotated a log
// file. It is safe for concurrent use.
type hangups struct {
	signals chan os.Signal

	mu   sync.Mutex // guards then; leaf
	then func()     // called for a signal
}

// heedHangups returns a context that the first SIGHUP ends. The signal does not end it if the
// process was started to outlive its terminal (nohup), or if do has set another reaction.
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
				signal.Stop(h.signals) // a second signal ends the process at once
			}
		}
	}()
	return ctx, h
}

// do makes each SIGHUP call what, and end nothing.
func (h *hangups) do(what func()) {
	h.mu.Lock()
	h.then = what
	h.mu.Unlock()
	signal.Notify(h.signals, syscall.SIGHUP)
}
