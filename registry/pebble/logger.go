package pebble

import (
	"fmt"
	"log/slog"
)

// engineLogger passes the engine's messages on. The engine expects that Fatalf does not return;
// here it does, and the store has failed.
type engineLogger struct {
	logger *slog.Logger
	fail   func(error)
}

// Infof logs what the engine does, which only its own authors can read: at debug level.
func (l engineLogger) Infof(format string, args ...any) {
	l.logger.Debug("store engine", "message", fmt.Sprintf(format, args...))
}

// Errorf logs an error of the engine.
func (l engineLogger) Errorf(format string, args ...any) {
	l.logger.Error("store engine", "message", fmt.Sprintf(format, args...))
}

// Fatalf marks the store failed.
func (l engineLogger) Fatalf(format string, args ...any) {
	l.fail(fmt.Errorf(format, args...))
}
