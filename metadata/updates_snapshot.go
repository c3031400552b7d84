package metadata

import (
	"math"

	"moorage"
	"moorage/internal/jsontext"
)

type addSnapshot struct {
	snapshot snapshot
	raw      []byte
	rebased  bool // the catalog has rebased the snapshot that the client sent
}

func decodeAddSnapshot(o jsontext.Fields) (updateOp, error) {
	c, err := valueOf(o, "snapshot")
	if err != nil {
		return nil, err
	}
	s, err := readSnapshot(c)
	if err == nil {
		err = s.checkSummaryKeys()
	}
	return &addSnapshot{snapshot: s, raw: c.Raw()}, err
}

// apply adds a snapshot that no ref points to yet. Source: Java TableMetadata.Builder.addSnapshot.
func (u *addSnapshot) apply(b *builder) error {
	if err := b.checkReady(); err != nil {
		return err
	}
	s, raw := &u.snapshot, u.raw
	if b.formatVersion == 1 && s.sequenceNumber != 0 {
		var err error
		if s, raw, err = u.unnumbered(); err != nil {
			return err
		}
	}
	if b.hasSnapshot(s.id) {
		return moorage.Errorf(moorage.KindValidation, "Snapshot already exists for id: %d", s.id)
	}
	if err := b.checkSequence(s); err != nil {
		return err
	}
	if isEarlier(b.nowMS, s.timestampMS) {
		return illegal("Invalid snapshot timestamp %d: more than a minute after the server's time %d",
			s.timestampMS, b.nowMS)
	}
	if err := b.takeRows(s); err != nil {
		return err
	}
	// A snapshot without parent may have a lower number than other snapshots.
	b.lastSequenceNumber = max(b.lastSequenceNumber, s.sequenceNumber)
	b.latestSnapshotMS = max(b.latestSnapshotMS, s.timestampMS)
	b.edit(snapshots).add(s.id, raw)
	if b.addedSnapshots == nil {
		b.addedSnapshots = make(map[int64]*snapshot)
	}
	b.addedSnapshots[s.id] = s
	b.changed = true
	return nil
}

// unnumbered returns the snapshot with sequence number 0, as format version 1 requires. Clients
// that number every snapshot send another number, which Java refuses.
func (u *addSnapshot) unnumbered() (*snapshot, []byte, error) {
	members, err := jsontext.ParseFields(u.raw, "snapshot")
	if err != nil {
		return nil, nil, err
	}
	s := u.snapshot
	s.sequenceNumber = 0
	return &s, jsontext.ApplyPatches(u.raw, []jsontext.Patch{members.Set("sequence-number", "0")}), nil
}

// checkSequence refuses a sequence number that another commit has used. When the client retries
// after a refresh, it sends a higher number.
func (b *builder) checkSequence(s *snapshot) error {
	switch {
	case b.formatVersion == 1 || s.sequenceNumber > b.lastSequenceNumber || !s.parent.given:
		return nil
	}
	return moorage.Errorf(moorage.KindCommitFailed,
		"Cannot add snapshot with sequence number %d older than last sequence number %d",
		s.sequenceNumber, b.lastSequenceNumber)
}

// takeRows assigns row ids to the snapshot. No other snapshot may get the same ids. If first-row-id
// is above next-row-id, the Java reference still adds added-rows to next-row-id. So it could assign
// ids twice. Here the ids of the next snapshot follow the ids of this snapshot. Source: table
// specification, "Row Lineage".
func (b *builder) takeRows(s *snapshot) error {
	if b.formatVersion < 3 {
		return nil
	}
	first, added := s.firstRowID, s.addedRows
	switch {
	case !first.given || s.manifestList == nil:
		return moorage.Errorf(moorage.KindValidation, "Cannot add a snapshot: first-row-id is null")
	case first.value < b.nextRowID:
		return moorage.Errorf(moorage.KindCommitFailed,
			"Cannot add a snapshot, first-row-id is behind table next-row-id: %d < %d", first.value, b.nextRowID)
	case added.value > math.MaxInt64-first.value:
		return illegal("Cannot add a snapshot, its row ids exceed 64 bits: %d + %d", first.value, added.value)
	}
	b.nextRowID = first.value + added.value
	return nil
}

type setRef struct{ ref ref }

func decodeSetRef(o jsontext.Fields) (updateOp, error) {
	var u setRef
	c := reread(o.Raw())
	err := c.record(func(key []byte) (err error) {
		if string(key) == "ref-name" {
			u.ref.name, err = c.string("ref-name")
			return err
		}
		known, err := u.ref.member(c, key)
		if err == nil && !known {
			err = c.Skip()
		}
		return err
	}, "ref-name", "snapshot-id", "type")
	return u, err
}

// apply moves or creates a branch or tag. Source: Java TableMetadata.Builder.setRef.
func (u setRef) apply(b *builder) error {
	if err := u.ref.check(); err != nil {
		return err
	}
	old := b.ref(u.ref.name)
	if old != nil && old.sameAs(&u.ref) {
		return nil
	}
	if !b.hasSnapshot(u.ref.snapshotID) {
		return moorage.Errorf(moorage.KindValidation,
			"Cannot set %s to unknown snapshot: %d", jsontext.Clip(u.ref.name), u.ref.snapshotID)
	}
	if u.ref.name == mainBranch && u.ref.tag {
		return moorage.Errorf(moorage.KindValidation, "Cannot set main to a tag, it must be a branch")
	}
	if err := b.guardLineage(old, u.ref.snapshotID); err != nil {
		return err
	}
	if u.ref.name == mainBranch {
		b.setMain(u.ref.snapshotID)
	}
	b.putRef(u.ref)
	b.changed = true
	return nil
}

// setMain makes a snapshot current and adds it to the snapshot log. For a new snapshot, the entry
// has the snapshot's time. For an older snapshot, which is a rollback, the entry has the present
// time.
func (b *builder) setMain(id int64) {
	b.currentSnapshotID = id
	at := b.nowMS
	if s, added := b.addedSnapshots[id]; added && !b.settled[id] {
		at = s.timestampMS
		b.newMains = append(b.newMains, id)
	}
	b.logged = append(b.logged, snapshotLogEntry{at, id})
}

// guardLineage refuses to set a branch to a new snapshot that is not based on the branch's head.
// Otherwise, files added by another writer in between would be lost. Two cases are allowed: a
// rollback to a snapshot that the table already had, and a replacement, in which the branch was
// removed earlier in the request.
func (b *builder) guardLineage(old *ref, id int64) error {
	there := b.settled[id] || b.base.HasSnapshot(id)
	if old == nil || old.tag || old.snapshotID == id || b.removedRefs[old.name] || there {
		return nil
	}
	for steps := b.edits[snapshots].len(); steps > 0; steps-- {
		parent := b.parent(id)
		if !parent.given {
			break
		}
		if parent.value == old.snapshotID {
			return nil
		}
		id = parent.value
	}
	return moorage.Errorf(moorage.KindCommitFailed,
		"Cannot set branch %s: the new snapshot does not descend from its head %d", jsontext.Clip(old.name),
		old.snapshotID)
}

// parent returns the parent of a snapshot. It is absent if the snapshot does not exist.
func (b *builder) parent(id int64) optional {
	if s, ok := b.addedSnapshots[id]; ok {
		return s.parent
	}
	if parent, ok := b.parents[id]; ok {
		return parent
	}
	var parent optional
	all := b.base.arrays[snapshots]
	if i, ok := b.base.snapshotAt.find(all, id); ok {
		s := b.base.snapshot(all.at(i))
		parent = s.parent
	}
	if b.parents == nil {
		b.parents = make(map[int64]optional)
	}
	b.parents[id] = parent
	return parent
}

type removeRef struct{ name string }

func decodeRemoveRef(o jsontext.Fields) (updateOp, error) {
	name, _, err := o.Str("ref-name")
	return removeRef{name}, err
}

func (u removeRef) apply(b *builder) error {
	b.dropRef(u.name)
	return nil
}

type removeSnapshots struct{ ids []int64 }

func decodeRemoveSnapshots(o jsontext.Fields) (updateOp, error) {
	c, err := valueOf(o, "snapshot-ids")
	if err != nil {
		return nil, err
	}
	ids, err := c.longList("snapshot-ids")
	return removeSnapshots{ids}, err
}

// apply removes snapshots with their statistics, and the refs that point to them. It ignores
// unknown ids. Source: Java TableMetadata.Builder.rewriteSnapshotsInternal.
func (u removeSnapshots) apply(b *builder) error {
	gone := make(map[int64]bool, len(u.ids))
	for _, id := range u.ids {
		if b.hasSnapshot(id) {
			gone[id] = true
		}
	}
	if len(gone) > 0 {
		isGone := func(id int64) bool { return gone[id] }
		b.edit(snapshots).drop(isGone)
		b.edit(statistics).drop(isGone)
		b.edit(partitionStatistics).drop(isGone)
		for id := range gone {
			delete(b.addedSnapshots, id)
		}
		b.removedSnapshots = true
		b.changed = true
	}
	var dangling []string
	for i := range b.refs {
		if !b.hasSnapshot(b.refs[i].snapshotID) {
			dangling = append(dangling, b.refs[i].name)
		}
	}
	for _, name := range dangling {
		b.dropRef(name)
	}
	return nil
}
