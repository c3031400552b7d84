package metadata

import (
	"moorage"
	"moorage/internal/jsontext"
)

// ownPrefix begins the names of properties, and of keys in the summaries of snapshots, that the
// catalog gives a meaning to.
const ownPrefix = "moorage."

// PropAppendRebase says whether appends to a table that come too late for their snapshot are put on
// top of the present one. A warehouse may say it for its tables. The values follow.
const (
	PropAppendRebase = ownPrefix + "append-rebase"
	AppendRebaseOn   = "on"
	AppendRebaseOff  = "off"
)

// CheckAppendRebase refuses a value of PropAppendRebase that is none: KindBadRequest.
func CheckAppendRebase(value string) error {
	if value == AppendRebaseOn || value == AppendRebaseOff {
		return nil
	}
	return moorage.Errorf(moorage.KindBadRequest, "Invalid %s: %s is neither on nor off",
		PropAppendRebase, jsontext.Clip(value))
}
