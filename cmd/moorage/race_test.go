//go:build race

package main

// raceDetector makes memory several times as large as it is.
const raceDetector = true
