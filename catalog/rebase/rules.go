package rebase

import (
	"hash/maphash"
	"slices"

	"moorage/manifests"
	"moorage/metadata"
)

// The reasons of this package for not moving an append. Package metadata defines further reasons.
// All of them are label values of a metric.
const (
	misfitUnread   metadata.Misfit = "unread"   // a file is missing, damaged, too long, or not within the claims
	misfitReplaced metadata.Misfit = "replaced" // a manifest that the append merged is no longer in the head
	// The append's manifests lack files of the manifests that they replace.
	misfitLost      metadata.Misfit = "lost"
	misfitManifest  metadata.Misfit = "manifest"  // one of its manifests does more than add files
	misfitNumbers   metadata.Misfit = "numbers"   // files of the append have sequence numbers that are not allowed
	misfitTwice     metadata.Misfit = "twice"     // the head already has one of the append's files or manifests
	misfitRowIDs    metadata.Misfit = "row-ids"   // rows without ids, or ids beyond the requested ones
	misfitDifferent metadata.Misfit = "different" // the lists have fields that cannot be carried over
	misfitMany      metadata.Misfit = "many"      // too many manifests or bytes
)

const (
	// manifestsMax is the maximum number of manifests that an append may add.
	manifestsMax = 64
	// foreignMax bounds the manifests that were added after the client read the table, because all
	// of them are read.
	foreignMax = 1024
)

// merge is the result of comparing three manifest lists: the list of the append, the list of the
// snapshot that its client saw, and the list of the head.
type merge struct {
	own     []*manifests.Entry // added by the append
	kept    []*manifests.Entry // kept from the head
	foreign []*manifests.Entry // data manifests of the head that the client did not see
}

// mergeOf compares the lists. seen is nil if the client saw no snapshot.
func mergeOf(a metadata.Append, o metadata.Onto, sent, seen, head *manifests.List) (m merge, misfit metadata.Misfit) {
	isOwn := func(e *manifests.Entry) bool { return e.SnapshotID == a.Snapshot.ID }
	for _, e := range sent.Entries() {
		if isOwn(e) {
			m.own = append(m.own, e)
		} else if !containsPath(seen, e) {
			return m, misfitReplaced
		}
	}
	var replaced []*manifests.Entry     // of seen
	gone := map[*manifests.Entry]bool{} // the same manifests as entries of the head
	if seen != nil {
		for _, e := range seen.Entries() {
			if other, ok := sent.Match(e); ok && !isOwn(other) {
				continue
			}
			now, ok := head.Match(e)
			if !ok {
				return m, misfitReplaced
			}
			replaced, gone[now] = append(replaced, e), true
		}
	}
	if len(m.own) > manifestsMax {
		return m, misfitMany
	}
	m.kept = head.Entries()
	if len(gone) > 0 {
		m.kept = slices.DeleteFunc(slices.Clone(m.kept), func(e *manifests.Entry) bool { return gone[e] })
	}
	for _, e := range head.Entries() {
		if e.Content == manifests.Data && !containsPath(seen, e) {
			m.foreign = append(m.foreign, e)
		}
	}
	if len(m.foreign) > foreignMax {
		return m, misfitMany
	}
	if misfit := m.sums(replaced); misfit != metadata.Fits {
		return m, misfit
	}
	if misfit := m.ownFit(a, o, head); misfit != metadata.Fits {
		return m, misfit
	}
	return m, m.rowsFit(a, o, head)
}

// containsPath reports whether list, which may be nil, has an entry with the path of e.
func containsPath(list *manifests.List, e *manifests.Entry) bool {
	if list == nil {
		return false
	}
	_, ok := list.Match(e)
	return ok
}

// sums checks that the manifests of the append contain all files of the manifests that it replaces.
func (m merge) sums(replaced []*manifests.Entry) metadata.Misfit {
	own, known := manifests.Sum(m.own)
	gone, knownGone := manifests.Sum(replaced)
	if !known || !knownGone || own.ExistingFiles != gone.LiveFiles() || own.ExistingRows != gone.LiveRows() {
		return misfitLost
	}
	return metadata.Fits
}

// ownFit checks the entries in the manifest list for the manifests that the append adds.
func (m merge) ownFit(a metadata.Append, o metadata.Onto, head *manifests.List) metadata.Misfit {
	for _, e := range m.own {
		_, there := head.Match(e)
		switch {
		case there:
			return misfitTwice
		case e.Content != manifests.Data, e.DeletedFiles != 0, e.DeletedRows != 0, !o.HasSpec(e.SpecID):
			return misfitManifest
		case e.SequenceNumber != a.Snapshot.SequenceNumber, e.MinSequenceNumber > e.SequenceNumber:
			return misfitNumbers
		}
	}
	return metadata.Fits
}

// rowsFit checks row ids, which exist from format version 3 on.
func (m merge) rowsFit(a metadata.Append, o metadata.Onto, head *manifests.List) metadata.Misfit {
	if o.FormatVersion < 3 {
		return metadata.Fits
	}
	for _, e := range head.Entries() {
		if e.Content == manifests.Data && !e.FirstRowID.Valid {
			return misfitRowIDs
		}
	}
	left := a.AddedRows
	for _, e := range m.own {
		at := e.FirstRowID.Value - a.FirstRowID // the position of the manifest's first row in the append
		rows := e.LiveRows()
		if !e.FirstRowID.Valid || e.FirstRowID.Value < a.FirstRowID || rows > left || at > a.AddedRows-rows {
			return misfitRowIDs
		}
		left -= rows
	}
	return metadata.Fits
}

// contents summarises the files of a manifest.
type contents struct {
	length, snapshot    int64 // of the manifest, from its list
	counts              manifests.Counts
	paths               []uint64 // sorted hashes of the paths of files, whatever their status
	others              bool     // the manifest has files that are not data files, or files with status deleted
	numbered            bool     // an added file has its own numbers, or another snapshot
	unnumbered, noRowID bool     // an existing file has no numbers, or no row id
}

// pathSeed is the seed of all path hashes.
var pathSeed = maphash.MakeSeed()

// pathBytes is the memory for each path in contents.
const pathBytes = 8

func (c *contents) size() int { return pathBytes*cap(c.paths) + 128 }

// readContents reads the manifest of e from raw, and subtracts its unpacked length from *left.
func readContents(reader *manifests.Reader, e *manifests.Entry, raw []byte, left *int) (*contents, error) {
	c := &contents{length: e.Length, snapshot: e.SnapshotID}
	for f, err := range reader.Files(e, raw, left) {
		if err != nil {
			return nil, err
		}
		c.add(e, f)
	}
	slices.Sort(c.paths)
	c.paths = slices.Clip(c.paths)
	return c, nil
}

func (c *contents) add(e *manifests.Entry, f manifests.File) {
	c.paths = append(c.paths, maphash.String(pathSeed, f.Path))
	c.others = c.others || f.Content != manifests.Data || f.Status == manifests.Deleted
	switch f.Status {
	case manifests.Added:
		c.counts.AddedFiles++
		c.counts.AddedRows += f.Rows
		c.numbered = c.numbered || f.SequenceNumber.Valid || f.FileSequenceNumber.Valid || f.FirstRowID.Valid ||
			f.SnapshotID.Valid && f.SnapshotID.Value != e.SnapshotID
	case manifests.Existing:
		c.counts.ExistingFiles++
		c.counts.ExistingRows += f.Rows
		c.unnumbered = c.unnumbered || !f.SnapshotID.Valid || !f.SequenceNumber.Valid || !f.FileSequenceNumber.Valid
		c.noRowID = c.noRowID || !f.FirstRowID.Valid
	}
}

// fits checks the files of a manifest that an append adds.
func (c *contents) fits(e *manifests.Entry, formatVersion int) metadata.Misfit {
	switch {
	case c.others, c.counts != e.Counts:
		return misfitManifest
	case c.numbered, c.unnumbered, formatVersion >= 3 && c.noRowID:
		return misfitNumbers
	}
	return metadata.Fits
}

// meets reports whether any path occurs in both manifests. Paths with equal hashes count as equal.
// A hash collision only makes the server refuse an append unnecessarily.
func (c *contents) meets(other *contents) bool {
	few, many := c.paths, other.paths
	if len(few) > len(many) {
		few, many = many, few
	}
	return slices.ContainsFunc(few, func(path uint64) bool {
		_, found := slices.BinarySearch(many, path)
		return found
	})
}
