package metadata

import (
	"strconv"
	"strings"
	"time"

	"moorage"
	"moorage/internal/jsontext"
)

// ownPrefix is the prefix of the properties and summary keys that this catalog defines.
const ownPrefix = "moorage."

// PropAppendRebase is the table property that permits the server to rebase a late append on the
// present head of its branch. Its values are AppendRebaseOn, AppendRebaseOnAll and AppendRebaseOff.
const (
	PropAppendRebase = ownPrefix + "append-rebase"
	// AppendRebaseOn permits rebases for requests that opt in. If Java's RowDelta and
	// OverwriteFiles only add files, their requests look like appends. But these operations rely on
	// being refused, after which they validate again. So a table property is not enough: the
	// request must opt in.
	AppendRebaseOn = "on"
	// AppendRebaseOnAll permits rebases for every request. Users must not run MERGE, UPDATE or
	// INSERT OVERWRITE on such a table.
	AppendRebaseOnAll = "on-all"
	// AppendRebaseOff forbids rebases. It is the only possible value in a setting of a warehouse or
	// of the server.
	AppendRebaseOff = "off"
)

// CheckAppendRebase returns KindBadRequest for an invalid value of a table's PropAppendRebase.
func CheckAppendRebase(value string) error {
	switch value {
	case AppendRebaseOn, AppendRebaseOnAll, AppendRebaseOff:
		return nil
	}
	return moorage.Errorf(moorage.KindBadRequest, "Invalid %s: %s is not on, on-all or off",
		PropAppendRebase, jsontext.Clip(value))
}

// PropPurgeDelay is the property of a warehouse for the time between a drop with purge and the
// purge. During that time the table can be restored. The value is a duration such as 12h or 7d, or
// 0. The default is the time for which a table dropped without a purge can be restored.
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
