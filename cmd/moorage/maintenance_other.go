//go:build !linux

package main

import "time"

// sinceBoot returns a function that returns how long this process has run. The result may exclude
// time in which the machine slept.
func sinceBoot() func() time.Duration {
	began := time.Now()
	return func() time.Duration { return time.Since(began) }
}
