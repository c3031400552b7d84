package browse_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/apache/iceberg-go"

	"moorage"
	"moorage/catalog"
	"moorage/catalog/browse"
	"moorage/internal/jsontext"
	"moorage/manifests"
	"moorage/metadata"
	memoryregistry "moorage/registry/memory"
	"moorage/testkit"
)

// judged is the table under test. It is partitioned by month of the column d.
type judged struct {
	*world
	ident    moorage.Identifier
	location string
	schema   []byte
	spec     []byte
	snapshot int64
	madeMS   int64  // when the table was created
	list     []byte // of the last snapshot
}

const monthSpec = `{"spec-id":0,"fields":[{"source-id":2,"field-id":1000,"name":"d_month","transform":"month"}]}`

func newJudged(t *testing.T, properties map[string]string) *judged {
	t.Helper()
	w := newWorld(t, memoryregistry.New(rand.Reader))
	w.namespace("w/a")
	j := &judged{world: w, ident: identOf("w/a/t"), spec: []byte(monthSpec)}
	made, err := w.CreateTable(w.ctx, j.ident, catalog.CreateTableRequest{
		Schema: []byte(`{"type":"struct","schema-id":0,"fields":[{"id":1,"name":"id","required":true,"type":"long"},` +
			`{"id":2,"name":"d","required":true,"type":"date"}]}`),
		PartitionSpec: j.spec, Properties: properties,
	})
	testkit.Must(t, err)
	var parts struct {
		Schemas []json.RawMessage `json:"schemas"`
		Specs   []json.RawMessage `json:"partition-specs"`
	}
	testkit.Must(t, json.Unmarshal(made.Document.Raw(), &parts))
	j.madeMS = made.Document.LastUpdatedMS()
	j.location, j.schema, j.spec = made.Document.Location(), parts.Schemas[0], parts.Specs[0]
	return j
}

// dataFiles returns count data files of the given size, in the partition of a month.
func dataFiles(count int, bytes int64, month int32) (files []manifests.AuthoredFile) {
	for i := range count {
		files = append(files, manifests.AuthoredFile{
			Path: fmt.Sprintf("file:///w/a/t/data/%d-%d-%d.parquet", month, bytes, i), Rows: 10, Bytes: bytes,
			Partition: map[int]any{1000: month},
		})
	}
	return files
}

func deleteFiles(rows int64) []manifests.AuthoredFile {
	return []manifests.AuthoredFile{{
		Path: fmt.Sprintf("file:///w/a/t/data/%d-deletes.parquet", rows), Deletes: true, Rows: rows, Bytes: 100,
		Partition: map[int]any{1000: int32(600)},
	}}
}

// add commits a snapshot with files. The snapshot's summary has the totals.
func (j *judged) add(totals map[string]int64, files ...manifests.AuthoredFile) {
	j.t.Helper()
	authored := manifests.Authored{
		Schema: j.schema, Spec: j.spec, SnapshotID: j.snapshot + 1, Sequence: j.snapshot + 1, Base: j.list, Files: files,
		Manifest: fmt.Sprintf("%s/metadata/%d-m0.avro", j.location, j.snapshot+1),
	}
	if j.snapshot > 0 {
		parent := j.snapshot
		authored.Parent = &parent
	}
	manifest, list, err := authored.Encode()
	testkit.Must(j.t, err)
	testkit.Must(j.t, j.files.Create(j.ctx, authored.Manifest, manifest))
	j.commit(list, totals)
}

// commit commits a snapshot with a manifest list.
func (j *judged) commit(list []byte, totals map[string]int64) {
	j.t.Helper()
	at := fmt.Sprintf("%s/metadata/snap-%d.avro", j.location, j.snapshot+1)
	testkit.Must(j.t, j.files.Create(j.ctx, at, list))
	j.commitAt(at, totals)
	j.list = list
}

func (j *judged) commitAt(list string, totals map[string]int64) {
	j.t.Helper()
	summary := map[string]string{"operation": "append"}
	for key, n := range totals {
		summary[key] = strconv.FormatInt(n, 10)
	}
	j.snapshot++
	snapshot := map[string]any{
		"snapshot-id": j.snapshot, "sequence-number": j.snapshot, "timestamp-ms": j.madeMS + j.snapshot,
		"manifest-list": list, "summary": summary, "schema-id": 0,
	}
	if j.snapshot > 1 {
		snapshot["parent-snapshot-id"] = j.snapshot - 1
	}
	j.update(map[string]any{"action": "add-snapshot", "snapshot": snapshot},
		map[string]any{"action": "set-snapshot-ref", "ref-name": "main", "type": "branch", "snapshot-id": j.snapshot})
}

func (j *judged) update(updates ...map[string]any) {
	j.t.Helper()
	text, err := json.Marshal(updates)
	testkit.Must(j.t, err)
	checked, err := jsontext.Check(text)
	testkit.Must(j.t, err)
	decoded, err := metadata.DecodeUpdates(checked)
	testkit.Must(j.t, err)
	_, err = j.Commit(j.ctx, j.ident, catalog.CommitRequest{Updates: decoded})
	testkit.Must(j.t, err)
}

func (j *judged) health(deep bool) browse.Health {
	j.t.Helper()
	health, err := j.Browse().Health(j.ctx, j.ident, deep)
	testkit.Must(j.t, err)
	return health
}

// want fails the test unless the symptom called what has this severity, this remedy, and a fact
// that contains words.
func (j *judged) want(deep bool, what string, severity browse.Severity, remedy browse.Remedy, words string) {
	j.t.Helper()
	health := j.health(deep)
	for _, s := range health.Symptoms {
		if s.What != what {
			continue
		}
		if s.Severity != severity || s.Remedy != remedy || !strings.Contains(s.Fact, words) {
			j.t.Errorf("%s (deep %t) is %+v; want %s, with %q", what, deep, s, severity, words)
		}
		return
	}
	j.t.Errorf("%s (deep %t) is not in %+v", what, deep, health.Symptoms)
}

func totals(files, bytes, rows int64) map[string]int64 {
	return map[string]int64{"total-data-files": files, "total-files-size": bytes, "total-records": rows}
}

// TestHealth produces each symptom, and a healthy table for comparison.
func TestHealth(t *testing.T) {
	t.Parallel()
	const target = 512 << 20
	t.Run("small files", func(t *testing.T) {
		t.Parallel()
		for bytes, want := range map[int64]browse.Severity{
			target / 100: browse.SeverityBad, target / 5: browse.SeverityWarn, target / 2: browse.SeverityOK,
		} {
			j := newJudged(t, nil)
			remedy := browse.RemedyCompact
			if want == browse.SeverityOK {
				remedy = browse.RemedyNone
			}
			j.add(totals(50, 50*bytes, 500), dataFiles(50, bytes, 600)...)
			j.want(false, "small files", want, remedy, "50 files, mean "+moorage.SizeOf(uint64(bytes)))
			j.want(true, "small files", want, remedy, "of 50 files below 32.0 MB, mean")
		}
		j := newJudged(t, map[string]string{"write.target-file-size-bytes": "1000"})
		j.add(totals(50, 50*900, 500), dataFiles(50, 900, 600)...)
		j.want(false, "small files", browse.SeverityOK, browse.RemedyNone, "target 1.0 kB")
		few := newJudged(t, nil)
		few.add(totals(49, 49, 49), dataFiles(49, 1, 600)...)
		few.want(true, "small files", browse.SeverityOK, browse.RemedyNone, "49 of 49 files")
	})
	t.Run("totals that the summary lacks", func(t *testing.T) {
		t.Parallel()
		j := newJudged(t, nil)
		j.add(nil, dataFiles(60, 5, 600)...)
		j.want(false, "small files", browse.SeverityOK, browse.RemedyNone, "--deep")
		j.want(false, "deletes", browse.SeverityOK, browse.RemedyNone, "--deep")
		j.want(true, "small files", browse.SeverityBad, browse.RemedyCompact, "60 of 60 files")
		j.want(true, "deletes", browse.SeverityOK, browse.RemedyNone, "no deleted rows")
	})
	t.Run("deletes", func(t *testing.T) {
		t.Parallel()
		j := newJudged(t, nil)
		j.add(totals(100, 100, 1000), dataFiles(100, 1, 600)...)
		of := totals(100, 100, 1000)
		deleted := int64(0)
		for _, step := range []struct {
			rows   int64
			want   browse.Severity
			remedy browse.Remedy
		}{{50, browse.SeverityOK, browse.RemedyNone}, {1, browse.SeverityWarn, browse.RemedyCompact}, {200, browse.SeverityBad, browse.RemedyCompact}} {
			deleted += step.rows
			of["total-position-deletes"], of["total-equality-deletes"] = deleted-1, 1
			j.add(of, deleteFiles(step.rows)...)
			words := fmt.Sprintf("%d rows, %.1f %%", deleted, float64(deleted)/10)
			j.want(false, "deletes", step.want, step.remedy, words)
			j.want(true, "deletes", step.want, step.remedy, words)
		}
	})
	t.Run("snapshots", func(t *testing.T) {
		t.Parallel()
		j := newJudged(t, nil)
		j.add(nil, dataFiles(1, 1, 600)...)
		j.want(false, "snapshots", browse.SeverityOK, browse.RemedyNone, "1 in 0 minutes")
		var updates []map[string]any
		for id := 2; id <= 1001; id++ {
			updates = append(updates, map[string]any{"action": "add-snapshot", "snapshot": map[string]any{
				"snapshot-id": id, "parent-snapshot-id": id - 1, "sequence-number": id, "timestamp-ms": j.madeMS - int64(id)*3_600_000,
				"manifest-list": j.location + "/metadata/snap-1.avro", "summary": map[string]string{"operation": "append"}, "schema-id": 0,
			}})
		}
		j.update(updates...)
		j.want(false, "snapshots", browse.SeverityWarn, browse.RemedyExpire, "1001 in 41 days")
	})
	t.Run("metadata", func(t *testing.T) {
		t.Parallel()
		j := newJudged(t, nil)
		j.want(true, "metadata", browse.SeverityOK, browse.RemedyNone, "the metadata file has ")
		j.update(map[string]any{"action": "set-properties", "updates": map[string]string{"long": strings.Repeat("x", 17<<20)}})
		j.want(false, "metadata", browse.SeverityWarn, browse.RemedyExpire, "17.8 MB")
	})
	t.Run("manifests", func(t *testing.T) {
		t.Parallel()
		for _, c := range []struct {
			count  int
			bytes  int64
			want   browse.Severity
			remedy browse.Remedy
		}{
			{49, 1000, browse.SeverityOK, browse.RemedyNone}, {50, 1000, browse.SeverityWarn, browse.RemedyManifests},
			{500, 1 << 20, browse.SeverityOK, browse.RemedyNone}, {501, 1 << 20, browse.SeverityWarn, browse.RemedyManifests},
		} {
			j := newJudged(t, nil)
			j.commit(j.listOf(c.count, c.bytes, j.location), nil)
			j.want(false, "manifests", c.want, c.remedy, fmt.Sprintf("%d manifests, mean %s", c.count, moorage.SizeOf(uint64(c.bytes))))
		}
	})
	t.Run("partitions", func(t *testing.T) {
		t.Parallel()
		j := newJudged(t, nil)
		j.add(nil, append(dataFiles(49, 1000, 600), dataFiles(1, 400<<20, 601)...)...)
		j.want(true, "crowded partitions", browse.SeverityOK, browse.RemedyNone, "2 partitions")
		j.want(true, "partitions with one file", browse.SeverityOK, browse.RemedyNone, "0 of 2 partitions")
		j.add(nil, dataFiles(1, 1000, 600)...)
		j.want(true, "crowded partitions", browse.SeverityBad, browse.RemedyCompact, "d_month=2020-01 has 50 files, mean 1.0 kB")
		var lone []manifests.AuthoredFile
		for month := range int32(50) {
			lone = append(lone, dataFiles(1, 1000, 400+month)...)
		}
		j.add(nil, lone...)
		j.want(true, "partitions with one file", browse.SeverityWarn, browse.RemedyPartitions, "50 of 52 partitions")
	})
	t.Run("unreadable", func(t *testing.T) {
		t.Parallel()
		j := newJudged(t, nil)
		j.commitAt(j.location+"/metadata/none.avro", nil)
		j.want(false, "unreadable", browse.SeverityBad, browse.RemedyRollback, "none.avro")
		j.commit([]byte("no list"), nil)
		j.want(false, "unreadable", browse.SeverityBad, browse.RemedyRollback, "snap-2.avro")
		j.commit(j.listOf(1, 1000, j.location), nil)
		j.want(true, "unreadable", browse.SeverityBad, browse.RemedyRollback, "m-0.avro")
	})
	t.Run("not read", func(t *testing.T) {
		t.Parallel()
		j := newJudged(t, nil)
		j.commit(j.listOf(2, 1000, "file:///w/other"), nil)
		j.want(true, "not read", browse.SeverityOK, browse.RemedyNone, "2 metadata files outside the table's locations")
		j.commitAt("file:///w/other/snap.avro", nil)
		j.want(false, "not read", browse.SeverityOK, browse.RemedyNone, "1 metadata file outside the table's locations")
	})
}

// listOf returns a list of count manifests in a folder. Each has bytesOfOne bytes.
func (j *judged) listOf(count int, bytesOfOne int64, folder string) []byte {
	j.t.Helper()
	var files []iceberg.ManifestFile
	for i := range count {
		files = append(files, iceberg.NewManifestFile(2, fmt.Sprintf("%s/metadata/m-%d.avro", folder, i), bytesOfOne, 0, j.snapshot+1).
			AddedFiles(1).AddedRows(1).Build())
	}
	var body bytes.Buffer
	number := j.snapshot + 1
	testkit.Must(j.t, iceberg.WriteManifestList(2, &body, number, nil, &number, 0, files))
	return body.Bytes()
}

// A deep look returns the sizes of files, and the partitions with the worst first.
func TestHealthShape(t *testing.T) {
	t.Parallel()
	j := newJudged(t, nil)
	if shape := j.health(true).Shape; shape == nil || shape.Files != 0 || len(shape.Worst) != 0 {
		t.Errorf("without a snapshot: %+v", shape)
	}
	var files []manifests.AuthoredFile
	for month := range int32(12) {
		files = append(files, dataFiles(int(month)+1, 2_000_000, 600+month)...)
	}
	j.add(nil, append(files, dataFiles(3, 600_000_000, 700)...)...)
	j.add(nil, deleteFiles(7)...)
	health := j.health(true)
	shape := *health.Shape
	if health.Snapshot != 2 || shape.Manifests != 2 || shape.Files != 81 || shape.Small != 78 || shape.Bytes != 78*2_000_000+3*600_000_000 ||
		shape.Rows != 810 || shape.Deletes != 1 || shape.DeleteRows != 7 || shape.Partitions != 13 || shape.Lone != 1 || shape.Stopped != "" {
		t.Errorf("got %+v", shape)
	}
	wantSizes := []browse.SizeClass{
		{Below: 1_000_000}, {Below: 8_000_000, Files: 78, Bytes: 156_000_000}, {Below: 32_000_000}, {Below: 128_000_000}, {Below: 512_000_000},
		{Files: 3, Bytes: 1_800_000_000},
	}
	if !slices.Equal(shape.Sizes, wantSizes) {
		t.Errorf("sizes are %+v", shape.Sizes)
	}
	counted := func(classes []browse.CountClass) (all []int64) {
		for _, class := range classes {
			all = append(all, class.Count)
		}
		return all
	}
	if got := counted(shape.ByRows); !slices.Equal(got, []int64{81, 0, 0, 0, 0, 0}) {
		t.Errorf("files by rows: %v", got)
	}
	if got := counted(shape.ByFiles); !slices.Equal(got, []int64{1, 5, 7, 0, 0, 0}) {
		t.Errorf("partitions by files: %v", got)
	}
	var names []string
	for _, p := range shape.Worst {
		names = append(names, p.Name)
	}
	if len(names) != 10 || names[0] != "d_month=2020-12" || names[9] != "d_month=2020-03" {
		t.Errorf("the worst are %q", names)
	}
	if got := j.health(false); got.Shape != nil {
		t.Errorf("a look that is not deep has the shape %+v", got.Shape)
	}
}

// Health is refused for a table that the caller may not describe, and for a view.
func TestHealthOfOthers(t *testing.T) {
	t.Parallel()
	j := newJudged(t, nil)
	j.view("w/a/v")
	for _, name := range []string{"w/a/v", "w/a/none", "w/none/t", "none/a/t"} {
		if _, err := j.Browse().Health(j.ctx, identOf(name), false); moorage.KindOf(err) != moorage.KindNoSuchTable &&
			moorage.KindOf(err) != moorage.KindNoSuchWarehouse {
			t.Errorf("%s: %v", name, err)
		}
	}
	ctx, cancel := context.WithCancel(j.ctx)
	cancel()
	if _, err := j.Browse().Health(ctx, j.ident, true); err == nil {
		t.Error("a request that has ended got an answer")
	}
}
