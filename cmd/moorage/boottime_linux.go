package main

import (
	"time"

	"golang.org/x/sys/unix"
)

// sinceBoot returns a function that returns how long ago the machine was started. Time in which it
// slept counts, and nobody can set that clock.
func sinceBoot() func() time.Duration {
	return func() time.Duration {
		var at unix.Timespec
		if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &at); err != nil {
			panic(err) // Linux has had it since 2.6.39
		}
		return time.Duration(at.Nano())
	}
}
