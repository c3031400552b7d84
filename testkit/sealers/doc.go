// Package sealers is the conformance suite of secrets.Source. It includes simulated cloud key
// services (doubles). The doubles verify the signatures, tokens, checksums and encryption contexts
// of requests. They seal with real ciphers, so that a changed or moved ciphertext does not open.
package sealers
