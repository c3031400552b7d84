package main

import (
	"crypto/rand"
	"encoding/binary"
	mathrand "math/rand/v2"
)

// newJitter returns a source of chance for pauses, in which no two nodes may be in step.
func newJitter() *mathrand.Rand {
	var seed [16]byte
	rand.Read(seed[:])
	return mathrand.New(mathrand.NewPCG(binary.BigEndian.Uint64(seed[:8]), binary.BigEndian.Uint64(seed[8:])))
}
