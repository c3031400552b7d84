package main

import (
	"crypto/rand"
	"encoding/binary"
	mathrand "math/rand/v2"
)

// newJitter returns a source of randomness for pauses, so that no two nodes stay in step.
func newJitter() *mathrand.Rand {
	var seed [16]byte
	rand.Read(seed[:])
	return mathrand.New(mathrand.NewPCG(binary.BigEndian.Uint64(seed[:8]), binary.BigEndian.Uint64(seed[8:])))
}
