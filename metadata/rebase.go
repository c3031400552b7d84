package metadata

import (
	"math"
	"slices"
	"strconv"
	"strings"

	"moorage/internal/jsontext"
)

// Append is a request that only adds data to a branch. Its meaning does not depend on the head that
// its client saw. After a refusal, the client would retry the same append on the new head. An
// Append does not contain its manifests' content. It is immutable, and safe for concurrent use.
type Append struct {
	Branch string
	// Snapshot is the new snapshot as it was sent. Its parent is the head that the client saw. If
	// the client saw no such branch, the snapshot has no parent.
	Snapshot Snapshot
	SchemaID int64
	// HasRows is true if the client assigned row ids, as it must from format version 3 on. The ids
	// are AddedRows consecutive numbers, beginning with FirstRowID.
	HasRows               bool
	FirstRowID, AddedRows int64

	step     Step
	asserted int // index of the requirement about the branch, in step's requirements
}

// guardedPrefixes and guardedKeys identify summary keys of writers that rely on being refused. Some
// of these writers compare the head's value of the key with their own value before they commit.
// Others publish a snapshot that was made earlier. Source: Kafka Connect's Coordinator, Flink's
// DynamicCommitter, Spark's StreamingWrite, Trino's materialized views, Java SnapshotSummary.
var (
	guardedPrefixes = []string{"kafka.connect.", "flink.", "spark.sql.streaming.", "dependsOn"}
	guardedKeys     = []string{"wap.id", "published-wap-id", "source-snapshot-id"}
)

// Append returns the step as an append. An append adds one snapshot and sets one branch to it, and
// requires the branch to be at the snapshot's parent. Append does not check other requirements. It
// returns false for any other step, and if the writer may rely on being refused.
func (s Step) Append() (Append, bool) {
	if len(s.Updates) != 2 {
		return Append{}, false
	}
	added, isSnapshot := s.Updates[0].op.(*addSnapshot)
	set, isRef := s.Updates[1].op.(setRef)
	if !isSnapshot || added.rebased || !isRef || set.ref.tag || set.ref.snapshotID != added.snapshot.id {
		return Append{}, false
	}
	asserted, ok := s.asserts(set.ref.name)
	sent := &added.snapshot
	if !ok || s.Requirements[asserted].head.snapshot != sent.parent || !sent.isPlainAppend() {
		return Append{}, false
	}
	return Append{
		Branch: set.ref.name, Snapshot: sent.export(), SchemaID: sent.schemaID.value,
		HasRows: sent.firstRowID.given, FirstRowID: sent.firstRowID.value, AddedRows: sent.addedRows.value,
		step: s, asserted: asserted,
	}, true
}

// asserts returns the index of the requirement about a ref. It returns false unless there is
// exactly one, or if the step requests a new table.
func (s Step) asserts(ref string) (at int, ok bool) {
	for i, r := range s.Requirements {
		switch {
		case r.kind == assertCreate, r.kind == assertRef && r.head.ref == ref && ok:
			return 0, false
		case r.kind == assertRef && r.head.ref == ref:
			at, ok = i, true
		}
	}
	return at, ok
}

// isPlainAppend reports whether a snapshot is an append with a schema id, an unencrypted manifest
// list, and no guarded key in its summary.
func (s *snapshot) isPlainAppend() bool {
	if !s.hasPlainList() || s.manifests != nil || !s.schemaID.given || s.summaryValue("operation") != "append" {
		return false
	}
	guarded := false
	reread(s.summary).eachString("summary", func(key, _ string) { //nolint:errcheck // it was read before
		guarded = guarded || slices.Contains(guardedKeys, key) ||
			slices.ContainsFunc(guardedPrefixes, func(prefix string) bool { return strings.HasPrefix(key, prefix) })
	})
	return !guarded
}

// hasPlainList reports whether the snapshot has a manifest list that is not encrypted.
func (s *snapshot) hasPlainList() bool { return s.manifestList != nil && !s.encrypted }

// Misfit explains why an append cannot be rebased on the head of its branch. Its text appears in
// logs and metrics.
type Misfit string

// The reasons. Fits means that the append can be rebased.
const (
	Fits              Misfit = ""
	MisfitFormat      Misfit = "format"      // version 1, or rows without ids from version 3 on
	MisfitRepeated    Misfit = "repeated"    // the table already has a snapshot with the same id
	MisfitBranch      Misfit = "branch"      // no such branch, or it is a tag
	MisfitRetention   Misfit = "retention"   // the append would change the branch's retention of snapshots
	MisfitSchema      Misfit = "schema"      // the data was not written with the current schema
	MisfitRequirement Misfit = "requirement" // another requirement of the step does not hold
	MisfitParent      Misfit = "parent"      // the head does not descend from the snapshot that the client saw
	MisfitDistance    Misfit = "distance"    // more than 256 snapshots were added since then
	MisfitList        Misfit = "list"        // a snapshot has no manifest list, or an encrypted one
	MisfitTime        Misfit = "time"        // the time is ahead of the server's clock, or before the log of main
	MisfitRows        Misfit = "rows"        // the ids of its rows would exceed 64 bits
)

// betweenMax is the maximum number of snapshots added since the snapshot that the client saw. The
// catalog has to read the manifests of each of them.
const betweenMax = 256

// Onto is the head of a branch, on which an append is rebased. It is immutable.
type Onto struct {
	FormatVersion int
	Head          Snapshot
	// Seen is the snapshot that the client saw at the head, or the zero value if the client saw no
	// branch.
	Seen Snapshot
	// Between lists the snapshots added since then: the head, its parent, and so on, up to but
	// excluding Seen. All of them have manifest lists. It is empty if the head is Seen.
	Between []Snapshot
	// SequenceNumber is the sequence number of the new snapshot. FirstRowID is the id of its first
	// row, from format version 3 on.
	SequenceNumber, FirstRowID int64

	base *Document
	head *snapshot
}

// HasSpec reports whether the table has a partition spec with that id.
func (o Onto) HasSpec(id int64) bool {
	for _, e := range o.base.arrays[partitionSpecs].all(0) {
		if e.id == id {
			return true
		}
	}
	return false
}

// Onto returns the new base of append a: the head of its branch after all requests in the chain. If
// the append cannot be rebased on this head, Onto returns the reason. Then the caller must treat
// the append like any other request. A repeated request does not fit, so call IsReplay first. For
// the head in a document, begin a new chain.
func (c *Chain) Onto(a Append) (Onto, Misfit) {
	b := c.b
	branch, misfit := a.branchIn(b)
	if misfit != Fits {
		return Onto{}, misfit
	}
	head := b.snapshot(branch.snapshotID) // not nil, because refs point to snapshots of the table
	if misfit := a.fitsRows(b); misfit != Fits {
		return Onto{}, misfit
	}
	if misfit := a.fitsTime(b, head); misfit != Fits {
		return Onto{}, misfit
	}
	o := Onto{
		FormatVersion: b.formatVersion, Head: head.export(), base: b.base, head: head,
		SequenceNumber: b.lastSequenceNumber + 1, FirstRowID: b.nextRowID,
	}
	misfit = o.walk(b, a)
	return o, misfit
}

// branchIn returns the branch that append a moves, in the present state of b.
func (a Append) branchIn(b *builder) (*ref, Misfit) {
	branch := b.ref(a.Branch)
	if branch == nil || branch.tag {
		return nil, MisfitBranch
	}
	want := a.step.Updates[1].op.(setRef).ref
	want.snapshotID = branch.snapshotID
	others := slices.Delete(slices.Clone(a.step.Requirements), a.asserted, a.asserted+1)
	switch {
	case b.hasSnapshot(a.Snapshot.ID):
		return nil, MisfitRepeated
	case !branch.sameAs(&want):
		return nil, MisfitRetention
	case a.SchemaID != int64(b.currentSchemaID):
		return nil, MisfitSchema
	case Check(b.next, others) != nil:
		return nil, MisfitRequirement
	}
	return branch, Fits
}

func (a Append) fitsRows(b *builder) Misfit {
	switch {
	case b.formatVersion < 2, b.formatVersion >= 3 && !a.HasRows:
		return MisfitFormat
	case b.formatVersion >= 3 && a.AddedRows > math.MaxInt64-b.nextRowID:
		return MisfitRows
	}
	return Fits
}

// fitsTime checks that the rebased snapshot can have its new time, which is no earlier than that of
// head. A chain would refuse an unsuitable time with KindIllegalArgument, after which clients do
// not retry.
func (a Append) fitsTime(b *builder, head *snapshot) Misfit {
	at := max(a.Snapshot.TimestampMS, head.timestampMS)
	if isEarlier(b.nowMS, at) {
		return MisfitTime
	}
	if a.Branch != mainBranch {
		return Fits
	}
	// After a rollback, the last time in the log may be later than the head's time.
	times := b.appendSnapshotLogTimes(nil)
	for _, entry := range b.logged {
		times = append(times, entry.timestampMS)
	}
	if n := len(times); n > 0 && isEarlier(at, times[n-1]) {
		return MisfitTime
	}
	return Fits
}

// walk follows the parents from the head to the snapshot that a's client saw. If the client saw no
// branch, it goes to the first snapshot. The table must still have all of these snapshots.
func (o *Onto) walk(b *builder, a Append) Misfit {
	for at := o.head; ; {
		seen := a.Snapshot.HasParent && at.id == a.Snapshot.ParentID
		switch {
		case !at.hasPlainList():
			return MisfitList
		case seen:
			o.Seen = at.export()
			return Fits
		case len(o.Between) == betweenMax:
			return MisfitDistance
		}
		o.Between = append(o.Between, at.export())
		if !at.parent.given {
			if a.Snapshot.HasParent {
				return MisfitParent
			}
			return Fits
		}
		if at = b.snapshot(at.parent.value); at == nil {
			return MisfitParent
		}
	}
}

// snapshot returns the snapshot with an id, from the base or the added snapshots. It returns nil if
// there is no such snapshot.
func (b *builder) snapshot(id int64) *snapshot {
	if s, added := b.addedSnapshots[id]; added {
		return s
	}
	all := b.base.arrays[snapshots]
	i, ok := b.base.snapshotAt.find(all, id)
	if !ok || b.edits[snapshots].isDropped(i) {
		return nil
	}
	s := b.base.snapshot(all.at(i))
	return &s
}

// On returns the step of append a, rebased on o. list is the location of the new manifest list, and
// manifestsKept is the number of the head's manifests in it. The step requires that o.Head is still
// the head. Step.Append returns false for the new step.
//
// The snapshot gets the new parent, sequence number, manifest list and first row id. Its time is no
// earlier than the head's. In its summary, the totals continue from the head's totals. The key
// manifests-kept, if present, gets its new value, and the key moorage.rebased is added. All other
// bytes are as the client sent them.
func (a Append) On(o Onto, list string, manifestsKept int) Step {
	sent := a.step.Updates[0].op.(*addSnapshot)
	number := func(n int64) string { return strconv.FormatInt(n, 10) }
	r := jsontext.Reread(sent.raw)
	fields, _ := r.Fields("snapshot") // it was read before
	patches := []jsontext.Patch{
		fields.Set("parent-snapshot-id", number(o.Head.ID)),
		fields.Set("sequence-number", number(o.SequenceNumber)),
		fields.Set("timestamp-ms", number(max(a.Snapshot.TimestampMS, o.Head.TimestampMS))),
		fields.Set("manifest-list", jsontext.Quote(list)),
	}
	if o.FormatVersion >= 3 {
		patches = append(patches, fields.Set("first-row-id", number(o.FirstRowID)))
	}
	at, _ := fields.Find("summary") // Step.Append has verified that there is a summary
	summary, _ := fields.Object(at, "summary")
	as := sentAs(sent.snapshot.parent, a.Snapshot.ManifestList)
	patches = append(patches, summary.Set(rebasedKey, jsontext.Quote(as)))
	if _, says := summary.Find("manifests-kept"); says {
		patches = append(patches, summary.Set("manifests-kept", jsontext.Quote(strconv.Itoa(manifestsKept))))
	}
	patches = append(patches, totalPatches(summary, o.head)...)

	made := &addSnapshot{raw: jsontext.ApplyPatches(sent.raw, patches), rebased: true}
	made.snapshot, _ = readSnapshot(reread(made.raw)) // the values have the same types
	step := Step{Requirements: slices.Clone(a.step.Requirements), Updates: slices.Clone(a.step.Updates)}
	step.Requirements[a.asserted] = requireRef(refHead{a.Branch, optional{o.Head.ID, true}})
	step.Updates[0].op = made
	return step
}
