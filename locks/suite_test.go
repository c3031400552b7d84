package locks_test

import (
	"testing"

	"moorage/locks"
	"moorage/locks/lockstest"
)

func TestLocal(t *testing.T) {
	lockstest.Run(t, lockstest.Config{
		New:       func(*testing.T) locks.Manager { return locks.NewLocal(locks.LocalConfig{}) },
		Footprint: func(manager locks.Manager) int { return manager.(*locks.Local).Stats().Paths },
	})
}
