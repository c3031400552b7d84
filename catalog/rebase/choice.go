package rebase

import (
	"moorage"
	"moorage/metadata"
)

// Header is the HTTP header in which a request consents to a rebase of its append, or refuses it.
const Header = "X-Moorage-Append-Rebase"

// Choice is a request's choice for an append whose branch has moved.
type Choice int8

// The choices.
const (
	Unset Choice = iota // the header is absent; only on-all in the table permits the rebase
	On                  // rebase the append onto the head, if the table permits that
	Off                 // refuse the append
)

// ParseChoice parses "on" or "off". For any other text, the error is KindBadRequest.
func ParseChoice(name, text string) (Choice, error) {
	switch text {
	case metadata.AppendRebaseOn:
		return On, nil
	case metadata.AppendRebaseOff:
		return Off, nil
	}
	return Off, moorage.Errorf(moorage.KindBadRequest,
		"Invalid %s: %s is neither on nor off", name, moorage.Cut(text, moorage.ShownBytesMax))
}

// consents reports whether a table, according to its property, and a request together permit a
// rebase. An unknown value of the property counts as off. No request can set such a value, but a
// registered table can have one.
func consents(property string, request Choice) bool {
	switch property {
	case metadata.AppendRebaseOnAll:
		return request != Off
	case metadata.AppendRebaseOn:
		return request == On
	}
	return false
}
