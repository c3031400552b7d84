package metadata

import (
	"strconv"
	"strings"
	"time"

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

// PropPurgeDelay is the property of a warehouse that says how long the purge of a dropped table
// waits, so that the table can come back: a duration such as 12h or 7d, or 0. Without it the purge
// waits as long as a table that was dropped without a purge can come back.
const PropPurgeDelay = ownPrefix + "purge-delay"

// purgeDelayMax is far longer than a table is missed.
const purgeDelayMax = 10 * 365 * 24 * time.Hour

// ParsePurgeDelay reads a value of PropPurgeDelay. Anything else is KindBadRequest.
func ParsePurgeDelay(value string) (time.Duration, error) {
	delay, err := time.ParseDuration(value)
	if days, ok := strings.CutSuffix(value, "d"); ok {
		var n int64
		n, err = strconv.ParseInt(days, 10, 16)
		delay = time.Duration(n) * 24 * time.Hour
	}
	if err != nil || delay < 0 || delay > purgeDelayMax {
		return 0, moorage.Errorf(moorage.KindBadRequest,
			"Invalid %s: %s is no duration from 0 to %d days, such as 12h or 7d", PropPurgeDelay,
			jsontext.Clip(value), purgeDelayMax/(24*time.Hour))
	}
	return delay, nil
}
