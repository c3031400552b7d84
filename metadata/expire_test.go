package metadata_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	iceio "github.com/apache/iceberg-go/io"
	"github.com/apache/iceberg-go/table"

	"moorage/metadata"
)

// aged is a snapshot for expiryDocument, with its age in hours.
type aged struct {
	id, parent int64
	hours      int
}

// expiryDocument returns a table with snapshots and refs. refs are members of the JSON object of
// refs.
func expiryDocument(tb testing.TB, now time.Time, properties string, snapshots []aged, refs ...string) *metadata.Document {
	tb.Helper()
	var elements []string
	current := "-1"
	for i, s := range snapshots {
		parent := ""
		if s.parent != 0 {
			parent = fmt.Sprintf(`"parent-snapshot-id":%d,`, s.parent)
		}
		elements = append(elements, fmt.Sprintf(`{"snapshot-id":%d,%s"sequence-number":%d,"timestamp-ms":%d,"manifest-list":"s3://b/%d.avro","summary":{"operation":"append"}}`,
			s.id, parent, i+1, now.Add(-time.Duration(s.hours)*time.Hour).UnixMilli(), s.id))
	}
	for _, ref := range refs {
		if rest, ok := strings.CutPrefix(ref, `"main":{"snapshot-id":`); ok {
			current = rest[:strings.IndexAny(rest, ",}")]
		}
	}
	log := ""
	if current != "-1" {
		log = fmt.Sprintf(`{"timestamp-ms":%d,"snapshot-id":%s}`, now.UnixMilli(), current)
	}
	if properties == "" {
		properties = "{}"
	}
	raw := fmt.Sprintf(`{"format-version":2,"table-uuid":"9c12d441-03fe-4693-9a96-a0705ddf69c1","location":"s3://b/t","last-sequence-number":%d,
		"last-updated-ms":%d,"last-column-id":1,"schemas":[{"type":"struct","schema-id":0,"fields":[{"id":1,"name":"x","required":true,"type":"long"}]}],
		"current-schema-id":0,"partition-specs":[{"spec-id":0,"fields":[]}],"default-spec-id":0,"last-partition-id":999,
		"sort-orders":[{"order-id":0,"fields":[]}],"default-sort-order-id":0,"properties":%s,
		"current-snapshot-id":%s,"snapshot-log":[%s],"refs":{%s},"snapshots":[%s]}`, len(snapshots), now.UnixMilli(), properties, current, log, strings.Join(refs, ","), strings.Join(elements, ","))
	document, err := metadata.Parse([]byte(raw))
	if err != nil {
		tb.Fatalf("%v: %s", err, raw)
	}
	return document
}

func goes(e metadata.Expiry) (ids []int64) {
	for _, s := range e.Snapshots {
		ids = append(ids, s.ID)
	}
	return ids
}

// chain returns five snapshots, 50 to 10 hours old.
func chain() []aged {
	return []aged{{1, 0, 50}, {2, 1, 40}, {3, 2, 30}, {4, 3, 20}, {5, 4, 10}}
}

func TestPlanExpire(t *testing.T) {
	t.Parallel()
	now := time.UnixMilli(testNowMS)
	const main = `"main":{"snapshot-id":5,"type":"branch"}`
	for name, tt := range map[string]struct {
		snapshots []aged
		refs      []string
		retention metadata.Retention
		want      []int64
		refsGo    []string
	}{
		"by age":                   {chain(), []string{main}, metadata.Retention{MaxSnapshotAge: 25 * time.Hour, MinSnapshots: 1}, []int64{1, 2, 3}, nil},
		"exactly as old stays":     {chain(), []string{main}, metadata.Retention{MaxSnapshotAge: 30 * time.Hour, MinSnapshots: 1}, []int64{1, 2}, nil},
		"by count":                 {chain(), []string{main}, metadata.Retention{MinSnapshots: 4}, []int64{1}, nil},
		"the head stays":           {chain(), []string{main}, metadata.Retention{MinSnapshots: 0}, []int64{1, 2, 3, 4}, nil},
		"all young":                {chain(), []string{main}, metadata.Retention{MaxSnapshotAge: 100 * time.Hour, MinSnapshots: 1}, nil, nil},
		"a tag holds one":          {chain(), []string{main, `"t":{"snapshot-id":2,"type":"tag"}`}, metadata.Retention{MinSnapshots: 1}, []int64{1, 3, 4}, nil},
		"a branch holds its own":   {chain(), []string{main, `"b":{"snapshot-id":2,"type":"branch","min-snapshots-to-keep":2}`}, metadata.Retention{MinSnapshots: 1}, []int64{3, 4}, nil},
		"main's own limits win":    {chain(), []string{`"main":{"snapshot-id":5,"type":"branch","min-snapshots-to-keep":3,"max-snapshot-age-ms":1}`}, metadata.Retention{MaxSnapshotAge: time.Hour * 1000, MinSnapshots: 5}, []int64{1, 2}, nil},
		"refs go by age":           {chain(), []string{main, `"t":{"snapshot-id":2,"type":"tag"}`, `"u":{"snapshot-id":4,"type":"tag"}`}, metadata.Retention{MinSnapshots: 1, MaxRefAge: 30 * time.Hour}, []int64{1, 2, 3}, []string{"t"}},
		"a ref's own age wins":     {chain(), []string{main, `"t":{"snapshot-id":2,"type":"tag","max-ref-age-ms":1}`}, metadata.Retention{MinSnapshots: 1}, []int64{1, 2, 3, 4}, []string{"t"}},
		"main never goes":          {chain(), []string{`"main":{"snapshot-id":1,"type":"branch","max-ref-age-ms":1}`}, metadata.Retention{MinSnapshots: 1, MaxRefAge: time.Hour}, []int64{2, 3, 4, 5}, nil},
		"unreferenced while young": {[]aged{{1, 0, 50}, {2, 1, 5}, {3, 1, 30}, {4, 1, 4}}, []string{`"main":{"snapshot-id":4,"type":"branch"}`}, metadata.Retention{MaxSnapshotAge: 10 * time.Hour, MinSnapshots: 1}, []int64{1, 3}, nil},
		"a missing parent":         {[]aged{{3, 2, 30}, {5, 3, 10}}, []string{main}, metadata.Retention{MinSnapshots: 9}, nil, nil},
		"an old one on top":        {[]aged{{1, 0, 10}, {2, 1, 50}, {5, 2, 5}}, []string{main}, metadata.Retention{MaxSnapshotAge: 20 * time.Hour, MinSnapshots: 1}, []int64{1, 2}, nil},
		"new to the server":        {chain(), []string{main}, metadata.Retention{MinSnapshots: 1, SeenSequence: 2}, []int64{1, 2}, nil},
		"none":                     {nil, nil, metadata.Retention{MinSnapshots: 1}, nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := expiryDocument(t, now, "", tt.snapshots, tt.refs...)
			got := metadata.PlanExpire(d, tt.retention, now)
			if !slices.Equal(goes(got), tt.want) || !slices.Equal(got.Refs, tt.refsGo) {
				t.Errorf("%v and %q go, want %v and %q", goes(got), got.Refs, tt.want, tt.refsGo)
			}
			if len(got.Kept)+len(got.Snapshots) != len(tt.snapshots) || got.IsEmpty() != (len(tt.want)+len(tt.refsGo) == 0) {
				t.Errorf("%d stay and %d go of %d", len(got.Kept), len(got.Snapshots), len(tt.snapshots))
			}
			next, err := d.Apply(got.Updates(), metadata.Env{Now: now, BaseLocation: "s3://b/t/metadata/1.metadata.json"})
			if err != nil {
				t.Fatal(err)
			}
			for _, id := range tt.want {
				if next.HasSnapshot(id) {
					t.Errorf("%d is still there", id)
				}
			}
			if again := metadata.PlanExpire(next, tt.retention, now); !again.IsEmpty() {
				t.Errorf("a second time %v and %q go", goes(again), again.Refs)
			}
		})
	}
}

// A cycle of parents, which no engine makes, does not loop forever.
func TestPlanExpireOfARing(t *testing.T) {
	t.Parallel()
	now := time.UnixMilli(testNowMS)
	d := expiryDocument(t, now, "", []aged{{1, 2, 50}, {2, 1, 40}}, `"main":{"snapshot-id":2,"type":"branch"}`)
	if got := goes(metadata.PlanExpire(d, metadata.Retention{MinSnapshots: 1}, now)); !slices.Equal(got, []int64{1}) {
		t.Errorf("%v go", got)
	}
}

// expiryCase is a table and a retention made of bytes.
type expiryCase struct {
	snapshots []aged
	refs      []string
	retention metadata.Retention
}

func randomExpiry(random *rand.Rand) expiryCase {
	var c expiryCase
	count := 1 + random.IntN(12)
	for i := range count {
		parent := int64(0)
		if i > 0 && random.IntN(8) > 0 {
			parent = int64(1 + random.IntN(i))
			if random.IntN(2) == 0 {
				parent = int64(i)
			}
		}
		c.snapshots = append(c.snapshots, aged{int64(i + 1), parent, 2 * random.IntN(60)})
	}
	limits := func(branch bool) string {
		var all string
		if branch && random.IntN(3) == 0 {
			all += fmt.Sprintf(`,"min-snapshots-to-keep":%d`, 1+random.IntN(4))
		}
		if branch && random.IntN(3) == 0 {
			all += fmt.Sprintf(`,"max-snapshot-age-ms":%d`, (1+2*random.IntN(60))*3_600_000)
		}
		if random.IntN(3) == 0 {
			all += fmt.Sprintf(`,"max-ref-age-ms":%d`, (1+2*random.IntN(60))*3_600_000)
		}
		return all
	}
	for _, name := range []string{"main", "b1", "b2", "t1", "t2"}[:1+random.IntN(5)] {
		kind := "branch"
		if name[0] == 't' {
			kind = "tag"
		}
		c.refs = append(c.refs, fmt.Sprintf(`%q:{"snapshot-id":%d,"type":%q%s}`, name, 1+random.IntN(count), kind, limits(kind == "branch")))
	}
	c.retention = metadata.Retention{
		MaxSnapshotAge: time.Duration(1+2*random.IntN(60)) * time.Hour, MinSnapshots: 1 + random.IntN(4),
	}
	if random.IntN(2) == 0 {
		c.retention.MaxRefAge = time.Duration(1+2*random.IntN(60)) * time.Hour
	}
	return c
}

// FuzzPlanExpire compares PlanExpire with iceberg-go's ExpireSnapshots, and with a naive version of
// the five steps in the table specification. Ages are an even number of hours and limits an odd
// one, so that the clocks need not agree exactly.
func FuzzPlanExpire(f *testing.F) {
	for seed := range uint64(400) {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, seed uint64) {
		now := time.Now()
		c := randomExpiry(rand.New(rand.NewPCG(seed, 7)))
		r := c.retention
		properties := fmt.Sprintf(`{"history.expire.max-snapshot-age-ms":"%d","history.expire.min-snapshots-to-keep":"%d"`, r.MaxSnapshotAge.Milliseconds(), r.MinSnapshots)
		if r.MaxRefAge > 0 {
			properties += fmt.Sprintf(`,"history.expire.max-ref-age-ms":"%d"`, r.MaxRefAge.Milliseconds())
		}
		d := expiryDocument(t, now, properties+"}", c.snapshots, c.refs...)
		got := metadata.PlanExpire(d, r, now)
		next, err := d.Apply(got.Updates(), metadata.Env{Now: now, BaseLocation: "s3://b/t/metadata/1.metadata.json"})
		if err != nil {
			t.Fatal(err)
		}
		if theirs, ours := oracleExpire(t, d), left(next); !slices.Equal(theirs, ours) {
			t.Errorf("%+v\nleaves %v, iceberg-go %v", c, ours, theirs)
		}
		if naive, ours := naiveExpire(c, now), left(next); !slices.Equal(naive, ours) {
			t.Errorf("%+v\nleaves %v, the specification %v", c, ours, naive)
		}
	})
}

// left returns the remaining snapshots and refs of a document, as texts.
func left(d *metadata.Document) (all []string) {
	for s := range d.Snapshots() {
		all = append(all, fmt.Sprint(s.ID))
	}
	for _, name := range metadata.PlanExpire(d, metadata.Retention{MaxSnapshotAge: 1 << 60, MinSnapshots: 1}, time.UnixMilli(0)).KeptRefs {
		all = append(all, "ref "+name)
	}
	slices.Sort(all)
	return all
}

// oracleExpire returns what remains of d after iceberg-go's expiry.
func oracleExpire(t *testing.T, d *metadata.Document) (all []string) {
	t.Helper()
	meta, err := table.ParseMetadataBytes(d.Raw())
	if err != nil {
		t.Fatal(err)
	}
	files := func(context.Context) (iceio.IO, error) { return iceio.LocalFS{}, nil }
	transaction := table.New(table.Identifier{"t"}, meta, "s3://b/t/metadata/1.metadata.json", files, nil).NewTransaction()
	if err := transaction.ExpireSnapshots(table.WithPostCommit(false)); err != nil {
		t.Fatal(err)
	}
	staged, err := transaction.StagedTable()
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range staged.Metadata().Snapshots() {
		all = append(all, fmt.Sprint(s.SnapshotID))
	}
	for name := range staged.Metadata().Refs() {
		all = append(all, "ref "+name)
	}
	slices.Sort(all)
	return all
}

// naiveExpire follows the five steps of the table specification, and a sixth one in Java: a
// snapshot that no ref reaches stays while it is young.
func naiveExpire(c expiryCase, now time.Time) (all []string) {
	type naiveRef struct {
		snapshot            int64
		branch              bool
		keep                int
		snapshotAge, refAge time.Duration
	}
	refs := map[string]naiveRef{}
	for _, text := range c.refs {
		name, rest, _ := strings.Cut(strings.TrimPrefix(text, `"`), `":`)
		r := naiveRef{keep: c.retention.MinSnapshots, snapshotAge: c.retention.MaxSnapshotAge, refAge: c.retention.MaxRefAge}
		if r.refAge == 0 {
			r.refAge = 1 << 62
		}
		number := func(member string) (n int64, ok bool) {
			_, after, ok := strings.Cut(rest, `"`+member+`":`)
			if ok {
				_, _ = fmt.Sscanf(after, "%d", &n)
			}
			return n, ok
		}
		r.snapshot, _ = number("snapshot-id")
		r.branch = strings.Contains(rest, `"branch"`)
		if n, ok := number("min-snapshots-to-keep"); ok {
			r.keep = int(n)
		}
		if n, ok := number("max-snapshot-age-ms"); ok {
			r.snapshotAge = time.Duration(n) * time.Millisecond
		}
		if n, ok := number("max-ref-age-ms"); ok {
			r.refAge = time.Duration(n) * time.Millisecond
		}
		refs[name] = r
	}
	byID := map[int64]aged{}
	for _, s := range c.snapshots {
		byID[s.id] = s
	}
	age := func(id int64) time.Duration { return time.Duration(byID[id].hours) * time.Hour }
	retained, reached := map[int64]bool{}, map[int64]bool{} // 1
	for name, r := range refs {                             // 2
		if name != "main" && age(r.snapshot) > r.refAge {
			delete(refs, name)
		}
	}
	for name, r := range refs { // 3
		all = append(all, "ref "+name)
		retained[r.snapshot], reached[r.snapshot] = true, true
	}
	for _, r := range refs { // 4
		stopped := false
		for at, n := r.snapshot, 0; r.branch && at != 0; at, n = byID[at].parent, n+1 {
			reached[at] = true
			if stopped = stopped || age(at) > r.snapshotAge && n >= r.keep; !stopped {
				retained[at] = true
			}
		}
	}
	for _, s := range c.snapshots { // 5, and Java's
		if retained[s.id] || !reached[s.id] && age(s.id) <= c.retention.MaxSnapshotAge {
			all = append(all, fmt.Sprint(s.id))
		}
	}
	slices.Sort(all)
	return all
}
