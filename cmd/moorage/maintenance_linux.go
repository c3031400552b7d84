package main

import (
	"time"

	"golang.org/x/sys/unix"
)

// sinceBoot returns a function that returns the time since the machine was started, including
// sleep. Users cannot set that clock.
func sinceBoot() func() time.Duration {
	return func() time.Duration {
		var at unix.Timespec
		if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &at); err != nil {
			panic(err) // Linux has had this clock since 2.6.39
		}
		return time.Duration(at.Nano())
	}
}
