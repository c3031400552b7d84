package pebble

import (
	"fmt"
	"log/slog"
)

// engineLogger logs the engine's messages. The engine expects that Fatalf does not return. This
// Fatalf does return, after it has marked the store failed.
type engineLogger struct {
	logger *slog.Logger
	fail   func(error)
}

// Infof logs the engine's activity at debug level, because it is only meaningful to the engine's
// authors.
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
