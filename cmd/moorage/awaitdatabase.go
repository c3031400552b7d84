package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"sync"
	"time"

	"moorage/registry/postgres"
)

const (
	// storeWaitLogged is the time between two log lines of a start that waits for its database.
	storeWaitLogged = 5 * time.Second
	// reachPause is the pause between two tries to reach it, and reachTimeout bounds one: a server that takes a connection and does not
	// answer must not keep a start from the one that takes its place.
	reachPause   = 250 * time.Millisecond
	reachTimeout = 10 * time.Second
)

// awaitDatabase returns when the database that --store names can be reached. It waits for one that does not answer, for --store-wait at most, and says
// so in the log. What the database refuses for good is returned at once.
func awaitDatabase(ctx context.Context, c config, logger *slog.Logger) error {
	err := reachDatabase(ctx, c)
	if err == nil || c.StoreWait == 0 || !postgres.IsAway(err) {
		return err
	}
	waiting := &databaseWait{last: err}
	bounded, cancel := context.WithTimeout(ctx, c.StoreWait)
	defer cancel()
	var telling sync.WaitGroup
	telling.Go(func() { waiting.tell(bounded, c.StoreWait, logger) })
	defer telling.Wait()
	defer cancel() // before telling is waited for
	for pause(bounded, reachPause) {
		err := reachDatabase(bounded, c)
		if err == nil || !postgres.IsAway(err) && bounded.Err() == nil {
			return err
		}
		// A timeout may be that of the wait itself. What was met before says more.
		if late, ok := errors.AsType[net.Error](err); !ok || !late.Timeout() {
			waiting.note(err)
		}
	}
	if ctx.Err() != nil {
		return fmt.Errorf("stopped while the database did not answer: %s", waiting.reason())
	}
	return fmt.Errorf("the database did not answer within %s, which --store-wait says: %s", c.StoreWait, waiting.reason())
}

// reachDatabase tries once to reach the database.
func reachDatabase(ctx context.Context, c config) error {
	ctx, cancel := context.WithTimeout(ctx, reachTimeout)
	defer cancel()
	return postgres.Reach(ctx, c.Store)
}

// pause waits for d. It returns false if ctx ended before.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// databaseWait is what a start that waits for its database knows. It is safe for concurrent use.
type databaseWait struct {
	mu   sync.Mutex // guards the field below; leaf
	last error      // why it is waited for
}

func (w *databaseWait) note(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.last = err
}

// reason is the last error in one line: the driver puts each host on a line of its own.
func (w *databaseWait) reason() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return strings.Join(strings.Fields(w.last.Error()), " ")
}

// tell writes a log line at once and then each storeWaitLogged, until ctx ends.
func (w *databaseWait) tell(ctx context.Context, limit time.Duration, logger *slog.Logger) {
	ticker := time.NewTicker(storeWaitLogged)
	defer ticker.Stop()
	for ctx.Err() == nil {
		logger.Warn("waiting for the database, which does not answer", "limit", limit, "error", w.reason())
		select {
		case <-ticker.C:
		case <-ctx.Done():
		}
	}
}
