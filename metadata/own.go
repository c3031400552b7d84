package metadata

import (
	"strconv"
	"strings"
	"time"

	"moorage"
	"moorage/internal/jsontext"
)

// ownPrefix begins the names of the catalog's own properties, and of its own keys in the summaries
// of snapshots.
const ownPrefix = "moorage."

// PropAppendRebase is the table property that permits the server to rebase a late append on the
// present head of its branch. The values follow.
const (
	PropAppendRebase = ownPrefix + "append-rebase"
	// AppendRebaseOn permits it for requests that opt in. Java's RowDelta and OverwriteFiles look
	// like appends on the wire when they only add files. They rely on the refusal to validate
	// again. So the table cannot consent for all its writers.
	AppendRebaseOn = "on"
	// AppendRebaseOnAll permits it for every request. No MERGE, UPDATE or INSERT OVERWRITE may
	// run on such a table.
	AppendRebaseOnAll = "on-all"
	// AppendRebaseOff refuses it. It is the only value for a warehouse and the server.
	AppendRebaseOff = "off"
)

// CheckAppendRebase refuses an invalid value of a table's PropAppendRebase: KindBadRequest.
func CheckAppendRebase(value string) error {
	switch value {
	case AppendRebaseOn, AppendRebaseOnAll, AppendRebaseOff:
		return nil
	}
	return moorage.Errorf(moorage.KindBadRequest, "Invalid %s: %s is not on, on-all or off",
		PropAppendRebase, jsontext.Clip(value))
}

// PropPurgeDelay is the property of a warehouse for the time until the purge of a dropped table, in
// which the table can be restored. It is a duration such as 12h or 7d, or 0. By default the purge
// waits as long as a table that was dropped without a purge can be restored.
const PropPurgeDelay = ownPrefix + "purge-delay"

// purgeDelayMax is far longer than any useful delay.
const purgeDelayMax = 10 * 365 * 24 * time.Hour

// ParsePurgeDelay parses a value of PropPurgeDelay. An invalid value is KindBadRequest.
func ParsePurgeDelay(value string) (time.Duration, error) {
	delay, err := time.ParseDuration(value)
	if days, ok := strings.CutSuffix(value, "d"); ok {
		var n int64
		n, err = strconv.ParseInt(days, 10, 16)
		delay = time.Duration(n) * 24 * time.Hour
	}
	if err != nil || delay < 0 || delay > purgeDelayMax {
		return 0, moorage.Errorf(moorage.KindBadRequest,
			"Invalid %s: %s is not a duration from 0 to %d days, such as 12h or 7d", PropPurgeDelay,
			jsontext.Clip(value), purgeDelayMax/(24*time.Hour))
	}
	return delay, nil
}
