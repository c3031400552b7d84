package metadata

import (
	"slices"
	"strings"
	"time"
)

// Table properties for the retention of snapshots, and the property that forbids the deletion of
// files. Source: Java TableProperties.
const (
	PropMaxSnapshotAge = "history.expire.max-snapshot-age-ms"
	PropMinSnapshots   = "history.expire.min-snapshots-to-keep"
	PropMaxRefAge      = "history.expire.max-ref-age-ms"
	PropCollects       = "gc.enabled"
)

// Collects reports whether files of the table may be deleted: gc.enabled is not set, or is "true"
// in upper or lower case. Source: Java PropertyUtil.propertyAsBoolean, which is
// Boolean.parseBoolean.
func (d *Document) Collects() bool {
	value, set := d.Property(PropCollects)
	return !set || strings.EqualFold(value, "true")
}

// Retention holds the defaults for the retention of a table's history. The table itself can
// override them.
type Retention struct {
	MaxSnapshotAge time.Duration
	MinSnapshots   int           // how many snapshots a branch keeps, including its head; at least 1
	MaxRefAge      time.Duration // maximum age of refs other than main; 0 means that they never expire
	// If SeenSequence is not 0, all snapshots with a higher sequence number stay. The server has
	// known these snapshots only for a short time, whatever the clocks of their clients showed.
	SeenSequence int64
}

// Expiry holds the refs and snapshots of a table that expire, and the reason why each other
// snapshot stays.
type Expiry struct {
	Refs      []string   // in the order of the document
	Snapshots []Snapshot // in the order of the document
	Kept      []KeptSnapshot
	KeptRefs  []string
}

// KeptSnapshot is a snapshot that stays.
type KeptSnapshot struct {
	ID  int64
	Why Why
}

// Why explains why a snapshot stays.
type Why string

// The reasons, strongest first.
const (
	WhyHead   Why = "head of a branch"
	WhyTag    Why = "tagged"
	WhyCount  Why = "among the last of a branch"
	WhyYoung  Why = "younger than the limit"
	WhyUnseen Why = "new to the server"
)

// IsEmpty reports whether nothing expires.
func (e Expiry) IsEmpty() bool { return len(e.Refs)+len(e.Snapshots) == 0 }

// Updates returns the updates that remove everything that expires.
func (e Expiry) Updates() []Update {
	var updates []Update
	for _, name := range e.Refs {
		updates = append(updates, Update{action: "remove-snapshot-ref", op: removeRef{name}})
	}
	if len(e.Snapshots) > 0 {
		ids := make([]int64, len(e.Snapshots))
		for i, snapshot := range e.Snapshots {
			ids[i] = snapshot.ID
		}
		updates = append(updates, Update{action: "remove-snapshots", op: removeSnapshots{ids}})
	}
	return updates
}

// PlanExpire returns the refs and snapshots of d that have expired at time now. A ref other than
// main expires when its snapshot is too old. In each remaining branch, snapshots stay, from the
// head backwards, as long as they are within the minimum count or young enough. The snapshots of
// tags stay. Snapshots that no ref reaches stay while they are young. A ref's own limits override
// those in r. Source: table specification, snapshot retention policy; Java
// RemoveSnapshots.internalApply.
func PlanExpire(d *Document, r Retention, now time.Time) Expiry {
	p := expiryPlan{document: d, retention: r, nowMS: now.UnixMilli(), byID: make(map[int64]Snapshot)}
	for snapshot := range d.Snapshots() {
		p.byID[snapshot.ID] = snapshot
	}
	return p.plan()
}

// expiryPlan is one call of PlanExpire.
type expiryPlan struct {
	document   *Document
	retention  Retention
	nowMS      int64
	byID       map[int64]Snapshot
	stays      map[int64]Why
	referenced map[int64]bool // snapshots reached by remaining refs
	expiry     Expiry
}

func (p *expiryPlan) plan() Expiry {
	p.stays, p.referenced = make(map[int64]Why), make(map[int64]bool)
	var left []*ref
	for i := range p.document.refs {
		r := &p.document.refs[i]
		if !p.refStays(r) {
			p.expiry.Refs = append(p.expiry.Refs, r.name)
			continue
		}
		left = append(left, r)
		p.expiry.KeptRefs = append(p.expiry.KeptRefs, r.name)
	}
	for _, r := range left {
		p.keepOf(r)
	}
	for snapshot := range p.document.Snapshots() {
		switch {
		case p.retention.SeenSequence > 0 && snapshot.SequenceNumber > p.retention.SeenSequence:
			p.keep(snapshot.ID, WhyUnseen)
		case !p.referenced[snapshot.ID] && p.isYoung(snapshot, p.maxAgeMS(optional{})):
			p.keep(snapshot.ID, WhyYoung)
		}
	}
	for snapshot := range p.document.Snapshots() {
		if why, stays := p.stays[snapshot.ID]; stays {
			p.expiry.Kept = append(p.expiry.Kept, KeptSnapshot{snapshot.ID, why})
		} else {
			p.expiry.Snapshots = append(p.expiry.Snapshots, snapshot)
		}
	}
	return p.expiry
}

// refStays reports whether a ref is young enough. A ref whose snapshot is missing is removed.
func (p *expiryPlan) refStays(r *ref) bool {
	if r.name == mainBranch {
		return true
	}
	snapshot, ok := p.byID[r.snapshotID]
	if !ok {
		return false
	}
	limit := p.retention.MaxRefAge.Milliseconds()
	if r.maxRefAge.given {
		limit = r.maxRefAge.value
	} else if limit == 0 {
		return true
	}
	return p.nowMS-snapshot.TimestampMS <= limit
}

// keepOf marks the snapshots kept by a remaining ref.
func (p *expiryPlan) keepOf(r *ref) {
	p.referenced[r.snapshotID] = true
	if r.tag {
		p.keep(r.snapshotID, WhyTag)
		return
	}
	p.keep(r.snapshotID, WhyHead)
	count := int64(p.retention.MinSnapshots)
	if r.minToKeep.given {
		count = r.minToKeep.value
	}
	limit, walks := p.maxAgeMS(r.maxAgeMS), true
	kept := int64(0)
	seen := make(map[int64]bool)
	for id := r.snapshotID; !seen[id]; { // stop at a cycle of parents
		snapshot, ok := p.byID[id]
		if !ok {
			return
		}
		seen[id] = true
		p.referenced[id] = true
		switch {
		case !walks:
		case kept < count:
			p.keep(id, WhyCount)
		case p.isYoung(snapshot, limit):
			p.keep(id, WhyYoung)
		default:
			walks = false
		}
		kept++
		if !snapshot.HasParent {
			return
		}
		id = snapshot.ParentID
	}
}

func (p *expiryPlan) maxAgeMS(own optional) int64 {
	if own.given {
		return own.value
	}
	return p.retention.MaxSnapshotAge.Milliseconds()
}

func (p *expiryPlan) isYoung(snapshot Snapshot, limitMS int64) bool {
	return snapshot.TimestampMS >= p.nowMS-limitMS
}

// keep marks a snapshot as kept. If there are several reasons, the strongest is recorded.
func (p *expiryPlan) keep(id int64, why Why) {
	order := []Why{WhyHead, WhyTag, WhyCount, WhyYoung, WhyUnseen}
	if old, ok := p.stays[id]; !ok || slices.Index(order, why) < slices.Index(order, old) {
		p.stays[id] = why
	}
}

// StatisticsOf returns the paths of the statistics files, and partition statistics files, of the
// snapshots with these ids.
func (d *Document) StatisticsOf(ids map[int64]bool) []string {
	var paths []string
	for _, a := range []arrayName{statistics, partitionStatistics} {
		for _, e := range d.arrays[a].all(0) {
			if ids[e.id] {
				paths = append(paths, statisticsPath(d.elementRaw(a, e)))
			}
		}
	}
	return paths
}

// HasEncryption reports whether the table or one of its snapshots is encrypted, so that the server
// cannot read its manifests.
func (d *Document) HasEncryption() bool {
	if _, set := d.Property(propEncryptionKeyID); set || d.arrays[encryptionKeys].len() > 0 {
		return true
	}
	for snapshot := range d.Snapshots() {
		if snapshot.Encrypted {
			return true
		}
	}
	return false
}
