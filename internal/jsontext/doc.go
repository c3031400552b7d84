// Package jsontext reads JSON text without building a tree of it.
//
// The catalog keeps metadata documents and parts of request bodies as the bytes that a client sent.
// Other programs read those bytes later. So this package refuses text that JSON readers interpret
// differently. It applies the rules of RFC 8259, and three rules of RFC 7493: valid UTF-8, no lone
// surrogate, and no key twice in one object, at any depth. It bounds the depth and, in bodies, the
// number of keys, because both cost more than the text itself.
//
// Text from outside must pass Check. It returns a Checked, which only this package can make. So a
// function that takes a Checked does not check for such faults again. A Reader reads text in one
// pass. A Reader from NewReader makes all checks, and a Reader from Checked.Reader checks only the
// depth.
//
// Package encoding/json accepts invalid UTF-8, repeated keys and lone surrogates.
// go-json-experiment/jsontext refuses them. But it copies each value out of its buffer, and does
// not report where a key begins, which a splice of the document needs.
package jsontext
