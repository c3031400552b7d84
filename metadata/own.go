package metadata

import (
	"moorage"
	"moorage/internal/jsontext"
)

// ownPrefix begins the names of properties, and of keys in the summaries of snapshots, that the
// catalog gives a meaning to.
const ownPrefix = "moorage."

// PropAppendRebase is the table property that permits the server to put appends that come too late
// for their snapshot on top of the present one. The values follow.
const (
	PropAppendRebase = ownPrefix + "append-rebase"
	// AppendRebaseOn permits it for requests that ask for it themselves. Java's RowDelta and
	// OverwriteFiles look like appends on the wire when they only add files, and rely on the
	// refusal to validate again. So the table cannot consent in the name of all its writers.
	AppendRebaseOn = "on"
	// AppendRebaseOnAll permits it for every request. No MERGE, UPDATE or INSERT OVERWRITE may
	// run on such a table.
	AppendRebaseOnAll = "on-all"
	// AppendRebaseOff refuses it. It is the only value for a warehouse and the server.
	AppendRebaseOff = "off"
)

// CheckAppendRebase refuses a value of PropAppendRebase that a table cannot have: KindBadRequest.
func CheckAppendRebase(value string) error {
	switch value {
	case AppendRebaseOn, AppendRebaseOnAll, AppendRebaseOff:
		return nil
	}
	return moorage.Errorf(moorage.KindBadRequest, "Invalid %s: %s is not on, on-all or off",
		PropAppendRebase, jsontext.Clip(value))
}
