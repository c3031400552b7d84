package metadata

import (
	"strconv"

	"moorage"
	"moorage/internal/jsontext"
)

// trimSnapshotLog drops obsolete entries of the log, and returns the remaining entries of this
// request. A new snapshot that was current only between two updates of the request gets no entry.
// If snapshots were removed, the log begins after the last entry whose snapshot is gone. A gap in
// the log would wrongly imply that an earlier snapshot was current at that time. Source: Java
// TableMetadata.Builder.updateSnapshotLog.
func (b *builder) trimSnapshotLog(between map[int64]bool) []snapshotLogEntry {
	edit := b.edit(snapshotLog)
	n := edit.base.len()
	idAt := func(i int) int64 {
		if i < n {
			return edit.base.at(i).id
		}
		return b.logged[i-n].snapshotID
	}
	first := 0
	for i := 0; b.removedSnapshots && i < n+len(b.logged); i++ {
		if !b.hasSnapshot(idAt(i)) {
			first = i + 1
		}
	}
	stays := func(i int) bool { return i >= first && b.hasSnapshot(idAt(i)) && !between[idAt(i)] }
	for i := range n {
		if !stays(i) {
			edit.dropAt(i)
		}
	}
	var entries []snapshotLogEntry
	for i, e := range b.logged {
		if stays(n + i) {
			entries = append(entries, e)
		}
	}
	return entries
}

// finishSnapshotLog appends the snapshots that became current in this request.
func (b *builder) finishSnapshotLog() error {
	var between map[int64]bool
	for _, id := range b.newMains {
		if id != b.currentSnapshotID {
			if between == nil {
				between = make(map[int64]bool)
			}
			between[id] = true
		}
	}
	entries := b.logged
	trim := len(between) > 0 || b.removedSnapshots
	if len(entries) == 0 && !trim {
		return nil // the log does not change, and the table's time never goes back
	}
	if trim {
		entries = b.trimSnapshotLog(between)
	}
	const usual = 4
	times := b.appendSnapshotLogTimes(make([]int64, 0, usual))
	for _, e := range entries {
		raw := strconv.AppendInt(append(b.text, `{"timestamp-ms":`...), e.timestampMS, 10)
		raw = strconv.AppendInt(append(raw, `,"snapshot-id":`...), e.snapshotID, 10)
		b.edit(snapshotLog).add(e.snapshotID, b.keep(append(raw, '}')))
		times = append(times, e.timestampMS)
	}
	if trim && b.hasSnapshot(b.currentSnapshotID) && b.lastLogged() != b.currentSnapshotID {
		return moorage.Errorf(moorage.KindValidation,
			"Cannot set invalid snapshot log: latest entry is not the current snapshot")
	}
	return checkLogTimes(times, b.lastUpdatedMS, snapshotLog)
}

// appendSnapshotLogTimes appends the times in the base's snapshot log that must be checked against
// their neighbours. If entries are removed, these are the times of all remaining entries, which
// have new neighbours. Otherwise it is only the last time, because the others were checked before.
func (b *builder) appendSnapshotLogTimes(times []int64) []int64 {
	list := b.base.arrays[snapshotLog]
	timeOf := func(e element) int64 {
		entry, _ := readSnapshotLogEntry(reread(b.base.elementRaw(snapshotLog, e)))
		return entry.timestampMS
	}
	edit := b.edit(snapshotLog)
	switch {
	case edit.drops > 0:
		for _, e := range edit.remaining() {
			times = append(times, timeOf(e))
		}
	case list.len() > 0:
		times = append(times, timeOf(list.at(list.len()-1)))
	}
	return times
}

// lastLogged returns the id of the snapshot in the last entry of the snapshot log.
func (b *builder) lastLogged() int64 {
	last := int64(noSnapshot)
	for id := range b.elements(snapshotLog) {
		last = id
	}
	return last
}

const (
	propPreviousVersionsMax    = "write.metadata.previous-versions-max"
	previousVersionsMaxDefault = 100
	propDeleteAfterCommit      = "write.metadata.delete-after-commit.enabled"
	// TrimMax is the maximum number of entries that one commit drops from a table's metadata log if
	// it also deletes their files. The next commits drop the others.
	TrimMax = 8
)

// finishMetadataLog appends the file of the base, and drops the oldest entries beyond the maximum.
// If the catalog deletes their files after the commit, it drops at most TrimMax entries. Source:
// Java TableMetadata.Builder.addPreviousFile.
func (b *builder) finishMetadataLog() error {
	list := b.base.arrays[metadataLog]
	times := make([]int64, 0, 2)
	if list.len() > 0 {
		times = append(times, b.base.metadataLoggedMS)
	}
	if !b.creating && b.env.BaseLocation != "" {
		entriesMax, err := b.previousVersionsMax()
		if err != nil {
			return err
		}
		edit := b.edit(metadataLog)
		drop := max(0, list.len()-entriesMax+1)
		if deletes, err := strconv.ParseBool(b.props[propDeleteAfterCommit]); err == nil && deletes {
			drop = min(drop, TrimMax)
		}
		for i := range drop {
			edit.dropAt(i)
		}
		raw := strconv.AppendInt(append(b.text, `{"timestamp-ms":`...), b.base.lastUpdatedMS, 10)
		raw = jsontext.AppendQuoted(append(raw, `,"metadata-file":`...), b.env.BaseLocation)
		edit.add(0, b.keep(append(raw, '}')))
		b.metadataLoggedMS = b.base.lastUpdatedMS
		times = append(times, b.metadataLoggedMS)
	}
	return checkLogTimes(times, b.lastUpdatedMS, metadataLog)
}

// previousVersionsMax returns the number of earlier files that the log keeps, at least one.
func (b *builder) previousVersionsMax() (int, error) {
	text, ok := b.props[propPreviousVersionsMax]
	if !ok {
		return previousVersionsMaxDefault, nil
	}
	n, err := strconv.ParseInt(text, 10, 32)
	if err != nil {
		return 0, illegal("Invalid value of property %s, not an integer: %s", propPreviousVersionsMax,
			jsontext.Clip(text))
	}
	return max(1, int(n)), nil
}
