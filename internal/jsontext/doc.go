// Package jsontext reads JSON text without building a tree of it.
//
// Metadata documents and request bodies are kept as the bytes that a client sent, and other readers
// see those bytes later. So this package refuses text that readers interpret differently. It
// applies the rules of RFC 8259, and three rules of RFC 7493: valid UTF-8, no lone surrogate, and
// no key twice in one object, at any depth. It bounds the depth and, in bodies, the number of keys,
// because both cost more than the text itself.
//
// Check is the only entry for text from outside. It returns a Checked, which nothing else can make,
// so a function that takes a Checked does not check for such faults again. A Reader reads text in
// one pass: NewReader is strict, Checked.Reader trusts.
//
// Package encoding/json accepts invalid UTF-8, repeated keys and lone surrogates.
// go-json-experiment/jsontext refuses them. But it copies each value out of its buffer, and does
// not report where a key begins, which a splice of the document needs.
package jsontext
