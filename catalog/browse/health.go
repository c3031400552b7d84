package browse

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"
	"time"

	"moorage"
	"moorage/access"
	"moorage/catalog/directory"
	"moorage/catalog/gate"
	"moorage/metadata"
	"moorage/storage"
)

// The limits of Health. Each finding states its limit.
const (
	// filesMin is the minimum number of files or manifests for a judgement of their mean size.
	filesMin = 50
	// A mean file size below these fractions of the target size is SeverityWarn or SeverityBad.
	smallPartWarn, smallPartBad = 0.25, 0.05
	// Fractions of the rows that are deleted.
	deletedPartWarn, deletedPartBad = 0.05, 0.20

	snapshotsMax     = 1000
	metadataBytesMax = 16 << 20
	manifestsMax     = 500
	manifestBytesMin = 512 << 10
	// smallFileBytes is the size below which a data file counts as small.
	smallFileBytes = 32_000_000
	// targetBytesDefault is the target file size of engines if the table has no property for it.
	// Source: Java TableProperties.
	targetBytesDefault = 512 << 20
	propTargetBytes    = "write.target-file-size-bytes"
)

// Severity is how bad a finding is.
type Severity string

// The severities.
const (
	SeverityOK   Severity = "ok"
	SeverityWarn Severity = "warn" // readers are slower than they could be
	SeverityBad  Severity = "bad"
)

// Remedy is an operator's possible action about a finding.
type Remedy int

// The remedies.
const (
	RemedyNone       Remedy = iota
	RemedyCompact           // compaction of the table's files
	RemedyExpire            // expiry of snapshots
	RemedyManifests         // rewriting the manifests
	RemedyPartitions        // a coarser partition spec
	RemedyRollback          // going back to a version whose files exist
	RemedyLocation          // allowing the location of the files in the warehouse
)

// Symptom is a finding of Health about one aspect of a table.
type Symptom struct {
	Severity Severity
	What     string // the aspect, such as "small files"
	Fact     string
	Limit    string // the limit of SeverityOK; empty if there is none
	Remedy   Remedy // RemedyNone if the severity is SeverityOK
}

// Health is the state of a table.
type Health struct {
	MetadataLocation string
	Snapshot         int64 // of the branch main; -1 without a snapshot
	Symptoms         []Symptom
	Shape            *Shape // nil unless the manifests were read
}

// Health judges the files, snapshots and manifests of a table. It reads the table's document, and
// the manifest list of the current snapshot. If deep is true it also reads the manifests, within
// bounds: see Shape. Files outside the table's claimed locations are not read, because they may
// belong to a table that is hidden from the caller. The caller needs access.Describe on the table.
//
// Errors: KindNoSuchTable; KindTooManyRequests if other deep looks take up all the room.
func (b *Browse) Health(ctx context.Context, ident moorage.Identifier, deep bool) (Health, error) {
	health, err := b.health(ctx, ident, deep)
	return health, moorage.Annotate("browse.Health", ident.String(), err)
}

func (b *Browse) health(ctx context.Context, ident moorage.Identifier, deep bool) (health Health, err error) {
	asked := gate.LoadHealth.Needs(gate.OfObject, gate.Always)
	found, document, err := b.tableFor(ctx, gate.LoadHealth, asked, ident)
	if err != nil {
		return health, err
	}
	if deep {
		done, err := b.beginDeep(ctx, found.Pointer.Warehouse)
		if err != nil {
			return health, err
		}
		defer done()
	}
	f, err := b.factsOf(ctx, found, document, deep)
	if errors.Is(err, storage.ErrNotFound) {
		// The files of a snapshot are deleted only after another version has become current.
		now, newer, err := b.tableFor(ctx, gate.LoadHealth, asked, ident)
		if err != nil {
			return health, err
		}
		if now.Pointer.MetadataLocation != found.Pointer.MetadataLocation {
			found, document = now, newer
			if f, err = b.factsOf(ctx, found, document, deep); err != nil && !errors.Is(err, storage.ErrNotFound) {
				return health, err
			}
		}
	} else if err != nil {
		return health, err
	}
	return Health{
		MetadataLocation: found.Pointer.MetadataLocation, Snapshot: document.Summary().Snapshot,
		Symptoms: f.judge(), Shape: f.shape,
	}, nil
}

// tableFor returns a table with its present document, if the caller may use v on the table.
func (b *Browse) tableFor(ctx context.Context, v gate.Verb, asked access.Privileges, ident moorage.Identifier) (
	found *directory.Found, document *metadata.Document, err error) {
	err = b.ledger.Retry(ctx, moorage.KindUnavailable, func(int) error {
		if found, err = b.directory.FindFor(ctx, b.asker(v), asked, directory.Table(), ident); err != nil {
			return err
		}
		read, err := b.documents.Glance(ctx, found)
		if err == nil {
			document = read.(*metadata.Document)
		}
		return err
	})
	return found, document, err
}

// facts are the input of Health's judgement. An unknown number is metadata.Unsaid.
type facts struct {
	targetBytes        int64
	files, bytes       int64 // of the data files
	rows, deletedRows  int64
	snapshots          int64
	snapshotsSpan      time.Duration // from the first snapshot to the last
	metadataBytes      int64
	manifests          int64
	manifestBytes      int64
	outside, encrypted int64 // the numbers of lists and manifests that are not read for this reason
	unreadable         error // why the list or a manifest cannot be read; nil if all can be read
	shape              *Shape
}

// documentFacts returns the facts found in a table's document.
func documentFacts(document *metadata.Document) facts {
	summary := document.Summary()
	f := facts{
		targetBytes: targetBytesDefault, files: summary.Files, bytes: summary.Bytes, rows: summary.Rows,
		deletedRows: metadata.Unsaid, snapshots: summary.Snapshots, metadataBytes: int64(len(document.Raw())),
	}
	if text, set := document.Property(propTargetBytes); set {
		if n, err := strconv.ParseInt(text, 10, 64); err == nil && n > 0 {
			f.targetBytes = n
		}
	}
	for _, key := range []string{"total-position-deletes", "total-equality-deletes"} {
		if n := document.HeadTotal(key); n != metadata.Unsaid {
			f.deletedRows = max(f.deletedRows, 0) + n
		}
	}
	var first, last int64
	for snapshot := range document.Snapshots() {
		if first == 0 || snapshot.TimestampMS < first {
			first = snapshot.TimestampMS
		}
		last = max(last, snapshot.TimestampMS)
	}
	f.snapshotsSpan = time.Duration(last-first) * time.Millisecond
	return f
}

// judge returns the symptoms shown by the facts.
func (f *facts) judge() []Symptom {
	all := []Symptom{f.judgeFiles(), f.judgeDeletes(), f.judgeSnapshots(), f.judgeMetadata(), f.judgeManifests()}
	if f.shape != nil && f.shape.Partitions > 1 {
		all = append(all, f.judgeCrowded(), f.judgeLone())
	}
	if f.unreadable != nil {
		unreadable := Symptom{
			Severity: SeverityBad, What: "unreadable", Remedy: RemedyRollback,
			Fact: moorage.OneLine(f.unreadable.Error()),
		}
		if errors.Is(f.unreadable, storage.ErrOutside) || errors.Is(f.unreadable, storage.ErrLocation) {
			unreadable.Remedy = RemedyLocation // the files may exist
		}
		all = append(all, unreadable)
	}
	if unread := f.outside + f.encrypted; unread > 0 {
		all = append(all, Symptom{
			Severity: SeverityOK, What: "not read",
			Fact: fmt.Sprintf("%s outside the table's locations, %d encrypted",
				moorage.Counted(int(f.outside), "metadata file"), f.encrypted),
		})
	}
	return all
}

// judgeFiles judges the mean size of the data files.
func (f *facts) judgeFiles() Symptom {
	s := Symptom{
		Severity: SeverityOK, What: "small files",
		Limit: fmt.Sprintf("a mean below %d %% of the target size, with %d files or more; bad below %d %%",
			percent(smallPartWarn), filesMin, percent(smallPartBad)),
	}
	if f.files < 0 || f.bytes < 0 {
		s.Fact = "the summary of the snapshot does not have the number and size of the files: --deep counts them"
		return s
	}
	s.Fact = moorage.Counted(int(f.files), "file")
	if f.shape != nil && f.shape.Stopped == "" {
		s.Fact = fmt.Sprintf("%d of %s below %s", f.shape.Small, s.Fact, moorage.SizeOf(smallFileBytes))
	}
	if f.files > 0 {
		s.Fact += fmt.Sprintf(", mean %s, target %s", moorage.SizeOf(uint64(f.bytes/f.files)),
			moorage.SizeOf(uint64(f.targetBytes)))
	}
	s.judgeMean(f.files, f.bytes, f.targetBytes)
	return s
}

// judgeMean sets the severity for a number of files with the total size bytes.
func (s *Symptom) judgeMean(files, bytes, target int64) {
	if files < filesMin {
		return
	}
	switch part := float64(bytes) / float64(files) / float64(target); {
	case part < smallPartBad:
		s.Severity, s.Remedy = SeverityBad, RemedyCompact
	case part < smallPartWarn:
		s.Severity, s.Remedy = SeverityWarn, RemedyCompact
	}
}

// judgeDeletes judges how many rows are deleted by delete files.
func (f *facts) judgeDeletes() Symptom {
	s := Symptom{
		Severity: SeverityOK, What: "deletes",
		Limit: fmt.Sprintf("more than %d %% of the rows; bad above %d %%", percent(deletedPartWarn),
			percent(deletedPartBad)),
	}
	switch {
	case f.deletedRows < 0 || f.rows < 0:
		s.Fact = "the summary of the snapshot lacks the number of deleted rows: --deep counts them"
		return s
	case f.deletedRows == 0:
		s.Fact = "no deleted rows"
		return s
	}
	part := float64(f.deletedRows) / float64(max(f.rows, 1))
	s.Fact = fmt.Sprintf("delete files have %s, %.1f %% of the rows", moorage.Counted(int(f.deletedRows), "row"),
		math.Min(part*100, 100))
	switch {
	case part > deletedPartBad:
		s.Severity, s.Remedy = SeverityBad, RemedyCompact
	case part > deletedPartWarn:
		s.Severity, s.Remedy = SeverityWarn, RemedyCompact
	}
	return s
}

func (f *facts) judgeSnapshots() Symptom {
	s := Symptom{
		Severity: SeverityOK, What: "snapshots", Limit: fmt.Sprintf("more than %d", snapshotsMax),
		Fact: fmt.Sprintf("%d in %s", f.snapshots, spanText(f.snapshotsSpan)),
	}
	if f.snapshots > snapshotsMax {
		s.Severity, s.Remedy = SeverityWarn, RemedyExpire
	}
	return s
}

func (f *facts) judgeMetadata() Symptom {
	s := Symptom{
		Severity: SeverityOK, What: "metadata", Limit: fmt.Sprintf("more than %d MiB", metadataBytesMax>>20),
		Fact: "the metadata file has " + moorage.SizeOf(uint64(f.metadataBytes)),
	}
	if f.metadataBytes > metadataBytesMax {
		s.Severity, s.Remedy = SeverityWarn, RemedyExpire
	}
	return s
}

// judgeManifests judges the number of manifests that a reader must read, and their mean size.
func (f *facts) judgeManifests() Symptom {
	s := Symptom{
		Severity: SeverityOK, What: "manifests",
		Limit: fmt.Sprintf("more than %d, or a mean below %d KiB with %d or more", manifestsMax,
			manifestBytesMin>>10, filesMin),
		Fact: moorage.Counted(int(f.manifests), "manifest"),
	}
	if f.manifests == 0 {
		return s
	}
	areSmall := false
	if f.manifestBytes >= 0 {
		mean := f.manifestBytes / f.manifests
		s.Fact += ", mean " + moorage.SizeOf(uint64(mean))
		areSmall = f.manifests >= filesMin && mean < manifestBytesMin
	}
	if f.manifests > manifestsMax || areSmall {
		s.Severity, s.Remedy = SeverityWarn, RemedyManifests
	}
	return s
}

// judgeCrowded judges the mean file size in each partition.
func (f *facts) judgeCrowded() Symptom {
	s := Symptom{
		Severity: SeverityOK, What: "crowded partitions",
		Limit: fmt.Sprintf("one with %d files or more, and a mean below %d %% of the target size; bad below %d %%",
			filesMin, percent(smallPartWarn), percent(smallPartBad)),
		Fact: moorage.Counted(f.shape.Partitions, "partition"),
	}
	for _, p := range f.shape.Worst {
		one := s
		one.judgeMean(p.Files, p.Bytes, f.targetBytes)
		one.Fact = fmt.Sprintf("%s has %s, mean %s", p.Name, moorage.Counted(int(p.Files), "file"),
			moorage.SizeOf(uint64(p.Bytes/max(p.Files, 1))))
		if one.Severity == SeverityBad || one.Severity == SeverityWarn && s.Severity == SeverityOK {
			s = one
		}
		if s.Severity == SeverityBad {
			break
		}
	}
	return s
}

// judgeLone judges how many partitions have only one small file. If many do, the partition spec is
// too fine.
func (f *facts) judgeLone() Symptom {
	s := Symptom{
		Severity: SeverityOK, What: "partitions with one file",
		Limit: fmt.Sprintf("%d or more with one file below %s, and more than half of all", filesMin,
			moorage.SizeOf(smallFileBytes)),
		Fact: fmt.Sprintf("%d of %s", f.shape.Lone, moorage.Counted(f.shape.Partitions, "partition")),
	}
	if f.shape.Lone >= filesMin && f.shape.Lone*2 > f.shape.Partitions {
		s.Severity, s.Remedy = SeverityWarn, RemedyPartitions
	}
	return s
}

func percent(part float64) int { return int(math.Round(part * 100)) }

// spanText formats a duration in its largest unit.
func spanText(span time.Duration) string {
	const day = 24 * time.Hour
	switch {
	case span >= 2*day:
		return moorage.Counted(int(span/day), "day")
	case span >= 2*time.Hour:
		return moorage.Counted(int(span/time.Hour), "hour")
	}
	return moorage.Counted(int(span/time.Minute), "minute")
}
