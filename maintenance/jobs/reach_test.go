package jobs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"moorage/internal/jsontext"
	"moorage/metadata"
	"moorage/storage"
	"moorage/storage/memory"
	"moorage/testkit"
	"moorage/testkit/tablefiles"
)

const (
	location = "s3://b/t"
	startMS  = 1_760_000_000_000
	current  = location + "/metadata/00009.metadata.json"
)

var must = testkit.Must

func claims(t testing.TB) []storage.Location {
	t.Helper()
	claim, err := storage.Parse(location)
	must(t, err)
	return []storage.Location{claim}
}

func empty(t testing.TB) *metadata.Document {
	t.Helper()
	document, err := metadata.Create(metadata.CreateTable{
		Location: location, Schema: []byte(`{"type":"struct","fields":[{"id":1,"name":"id","type":"long","required":false}]}`),
	}, metadata.Env{Now: time.UnixMilli(startMS), NewUUID: func() string { return "9c12d441-03fe-4693-9a96-a0705ddf69c1" }})
	must(t, err)
	return document
}

func apply(t testing.TB, document *metadata.Document, nowMS int64, updates ...string) *metadata.Document {
	t.Helper()
	checked, err := jsontext.Check([]byte("[" + strings.Join(updates, ",") + "]"))
	must(t, err)
	decoded, err := metadata.DecodeUpdates(checked)
	must(t, err)
	next, err := document.Apply(decoded, metadata.Env{Now: time.UnixMilli(nowMS), BaseLocation: current})
	must(t, err)
	return next
}

// world is a table with a history. A part of the history has expired.
type world struct {
	store          *memory.Store
	history        *tablefiles.History
	present        *metadata.Document
	expired        expiredParts
	live, everDead map[string]bool // the files according to the model
}

func newWorld(t testing.TB, seed uint64, steps int) *world {
	t.Helper()
	random := rand.New(rand.NewPCG(seed, 1))
	w := &world{store: memory.New()}
	w.history = tablefiles.New(t, w.store, location, random, startMS)
	before := empty(t)
	for range steps {
		updates := w.history.Step(1000)
		before = apply(t, before, w.history.NowMS(), updates...)
	}
	kept := map[int64]bool{}
	for _, refs := range []map[string]*tablefiles.Snapshot{w.history.Heads, w.history.Tags} {
		for _, s := range refs {
			kept[s.ID] = true
		}
	}
	gone := map[int64]bool{}
	var ids []string
	for _, s := range w.history.Snapshots {
		if kept[s.ID] || random.IntN(4) == 0 {
			kept[s.ID] = true
			continue
		}
		gone[s.ID] = true
		ids = append(ids, fmt.Sprint(s.ID))
		if s.Statistics != "" {
			w.expired.Statistics = append(w.expired.Statistics, s.Statistics)
		}
	}
	for snapshot := range before.Snapshots() {
		if gone[snapshot.ID] {
			w.expired.Snapshots = append(w.expired.Snapshots, snapshot)
		}
	}
	w.present = apply(t, before, w.history.NowMS(), `{"action":"remove-snapshots","snapshot-ids":[`+strings.Join(ids, ",")+`]}`)
	w.live, w.everDead = w.history.Reach(kept), w.history.Reach(gone)
	return w
}

func (w *world) doomed(t testing.TB, set *pathSet) []doomedFile {
	t.Helper()
	must(t, readReached(t.Context(), w.store, w.present, current, set))
	var doomed []doomedFile
	_, err := eachDoomed(t.Context(), w.store, w.expired, set, claims(t), func(f doomedFile) error {
		doomed = append(doomed, f)
		return nil
	})
	must(t, err)
	return doomed
}

// TestDoomedAgreesWithTheModel: the files that only expired snapshots reach are doomed. No file of
// a remaining snapshot is doomed. Files that were removed longer ago may be doomed too.
func TestDoomedAgreesWithTheModel(t *testing.T) {
	t.Parallel()
	total := 0
	for seed := range uint64(24) {
		w := newWorld(t, seed, 12+int(seed%20))
		got := map[string]bool{}
		order := []fileKind{kindContent, kindManifest, kindList, kindStatistics}
		last := 0
		for _, f := range w.doomed(t, newPathSet(0)) {
			if w.live[f.Location] {
				t.Errorf("seed %d: the live file %s is doomed", seed, f.Location)
			}
			if at := slices.Index(order, f.Kind); at < last {
				t.Errorf("seed %d: %s comes after a %s", seed, f.Kind, order[last])
			} else {
				last = at
			}
			got[f.Location] = true
		}
		for path := range w.everDead {
			if !w.live[path] && !got[path] {
				t.Errorf("seed %d: %s is not doomed", seed, path)
			}
		}
		total += len(got)
	}
	if total < 100 {
		t.Errorf("only %d files are doomed: the histories are too short", total)
	}
}

// A full set still contains all its paths. Its only errors keep files that could be deleted.
func TestSetErrsTowardsKeeping(t *testing.T) {
	t.Parallel()
	set := newPathSetWith(20_000, 100)
	name := func(i int) string { return fmt.Sprintf("s3://b/t/data/%d.parquet", i) }
	for i := range 20_000 {
		set.Add(name(i))
	}
	if set.IsExact() || set.Len() != 20_000 {
		t.Fatalf("exact: %v, %d paths", set.IsExact(), set.Len())
	}
	wrong := 0
	for i := range 40_000 {
		switch has := set.Has(name(i)); {
		case !has && i < 20_000:
			t.Fatalf("%s is lost", name(i))
		case has && i >= 20_000:
			wrong++
		}
	}
	if wrong > 200 {
		t.Errorf("%d of 20,000 paths are taken for live", wrong)
	}
	for _, spelling := range []string{"s3a://b/t/data/1.parquet", "s3n://b/t/data/1.parquet"} {
		if !set.Has(spelling) {
			t.Errorf("%s is another place", spelling)
		}
	}
	for seed := range uint64(4) {
		w := newWorld(t, seed, 20)
		for _, f := range w.doomed(t, newPathSetWith(10, 3)) {
			if w.live[f.Location] {
				t.Errorf("the live file %s is doomed", f.Location)
			}
		}
	}
}

// TestLiveSideMustBeReadable damages each list and manifest of the live versions in turn. The file
// is missing, cut at any point, or empty. Each time, the search for live files must fail. If the
// file belongs to expired snapshots, it is skipped.
func TestLiveSideMustBeReadable(t *testing.T) {
	t.Parallel()
	for seed := range uint64(2) {
		w := newWorld(t, seed, 10)
		for path := range w.live {
			if !strings.HasSuffix(path, ".avro") {
				continue
			}
			whole, err := storage.ReadAll(t.Context(), w.store, path, 1<<20)
			must(t, err)
			for _, cut := range []int{-1, 0, 3, len(whole) / 2, len(whole) - 20, len(whole) - 1} {
				damaged := damaged{w.store, path, whole, cut}
				err := readReached(t.Context(), damaged, w.present, current, newPathSet(0))
				if _, ok := errors.AsType[*unreadableError](err); !ok {
					t.Errorf("%s cut at %d of %d: %v", path, cut, len(whole), err)
				}
			}
			err = readReached(t.Context(), broken{w.store, path}, w.present, current, newPathSet(0))
			if _, ok := errors.AsType[*unreadableError](err); ok || !errors.Is(err, errBroken) {
				t.Errorf("a storage that fails at %s is %v", path, err)
			}
		}
		set := newPathSet(0)
		must(t, readReached(t.Context(), w.store, w.present, current, set))
		for path := range w.everDead {
			if w.live[path] || !strings.HasSuffix(path, ".avro") {
				continue
			}
			whole, err := storage.ReadAll(t.Context(), w.store, path, 1<<20)
			must(t, err)
			kept, err := eachDoomed(t.Context(), damaged{w.store, path, whole, -1}, w.expired, set, claims(t),
				func(f doomedFile) error {
					if w.live[f.Location] {
						t.Errorf("without %s the live file %s is doomed", path, f.Location)
					}
					return nil
				})
			if err != nil || kept.Skipped == 0 {
				t.Errorf("without %s: %+v, %v", path, kept, err)
			}
		}
	}
}

// If no catalog knows a table, its missing lists and manifests are skipped. The files listed in the
// others are live. A damaged list or manifest is an error.
func TestWhatIsLeftOfATable(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 3, 10)
	left := func(files opener) (*pathSet, error) {
		set := newPathSet(0)
		manifests, err := readManifestsLeft(t.Context(), files, w.present, nil)
		if err == nil {
			err = addLiveLeft(t.Context(), files, manifests, set)
		}
		return set, err
	}
	whole, err := left(w.store)
	must(t, err)
	for path := range w.live {
		if !strings.HasSuffix(path, ".avro") {
			continue
		}
		body, err := storage.ReadAll(t.Context(), w.store, path, 1<<20)
		must(t, err)
		without, err := left(damaged{w.store, path, body, -1})
		if err != nil || without.Len() == 0 || without.Len() > whole.Len() {
			t.Errorf("without %s: %v, and %d of %d files are live", path, err, without.Len(), whole.Len())
		}
		_, err = left(damaged{w.store, path, body, len(body) / 2})
		if _, ok := errors.AsType[*unreadableError](err); !ok {
			t.Errorf("%s cut in the middle: %v", path, err)
		}
	}
}

// damaged is a store with one file that is cut, or missing if cut is negative.
type damaged struct {
	*memory.Store
	path  string
	whole []byte
	cut   int
}

// Open implements opener.
func (d damaged) Open(ctx context.Context, at string) (io.ReadCloser, storage.Info, error) {
	if at != d.path {
		return d.Store.Open(ctx, at)
	}
	if d.cut < 0 {
		return nil, storage.Info{}, storage.ErrNotFound
	}
	return io.NopCloser(strings.NewReader(string(d.whole[:d.cut]))), storage.Info{Bytes: int64(len(d.whole))}, nil
}

var errBroken = errors.New("the network is away")

// broken is a store that fails in the middle of one file.
type broken struct {
	*memory.Store
	path string
}

// Open implements opener.
func (b broken) Open(ctx context.Context, at string) (io.ReadCloser, storage.Info, error) {
	body, info, err := b.Store.Open(ctx, at)
	if at == b.path && err == nil {
		body = io.NopCloser(io.MultiReader(io.LimitReader(body, 20), failing{}))
	}
	return body, info, err
}

type failing struct{}

// Read implements io.Reader.
func (failing) Read([]byte) (int, error) { return 0, errBroken }

// A manifest may be a complete file and yet have fewer live files than its list states. Then it was
// cut between two blocks before it was stored.
func TestManifestWithFewerFilesThanListed(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 3, 1)
	manifests, cost, err := readManifests(t.Context(), w.store, w.present, nil)
	must(t, err)
	if len(manifests) != 1 || cost.Files != 2 || cost.Lists != 1 || cost.Bytes != manifests[0].Bytes {
		t.Fatalf("%d manifests, %+v", len(manifests), cost)
	}
	one := memory.New()
	lone := tablefiles.New(t, one, location, rand.New(rand.NewPCG(3, 1)), startMS)
	lone.Append("main", 1)
	manifest := lone.Files[1]
	body, err := storage.ReadAll(t.Context(), one, manifest, 1<<20)
	must(t, err)
	shorter := replaced{w.store, manifests[0].Path(), body}
	err = readReached(t.Context(), shorter, w.present, current, newPathSet(0))
	if _, ok := errors.AsType[*unreadableError](err); !ok {
		t.Errorf("a manifest with one file instead of two: %v", err)
	}
}

// replaced is a store in which one file has a different body.
type replaced struct {
	*memory.Store
	path string
	body []byte
}

// Open implements opener.
func (r replaced) Open(ctx context.Context, at string) (io.ReadCloser, storage.Info, error) {
	if at == r.path {
		return io.NopCloser(strings.NewReader(string(r.body))), storage.Info{Bytes: int64(len(r.body))}, nil
	}
	return r.Store.Open(ctx, at)
}

func TestOwn(t *testing.T) {
	t.Parallel()
	for path, want := range map[string]bool{
		"s3://b/t/data/a.parquet":               true,
		"s3a://b/t/data/a.parquet":              true,
		"s3://b/t/metadata/snap-1.avro":         true,
		"s3://b/t/metadata/1.metadata.json":     false,
		"s3://b/t/metadata/v1.gz.metadata.json": false,
		"s3://b/t/metadata/v1.metadata.json.gz": false,
		"s3://b/t/metadata/version-hint.text":   false,
		"s3://b/t/data/snap.json":               false,
		"s3://b/t":                              false,
		"s3://b/t2/data/a.parquet":              false,
		"s3://c/t/data/a.parquet":               false,
		"file:///b/t/data/a.parquet":            false,
		"s3://b/t/../u/a.parquet":               false,
		"relative":                              false,
		"":                                      false,
	} {
		if got := isOwn(claims(t), path); got != want {
			t.Errorf("IsOwn(%q) = %v", path, got)
		}
	}
}

// readReached reads the manifests of a document, and adds to set all files that the document
// reaches.
func readReached(ctx context.Context, files opener, document *metadata.Document, location string, set *pathSet) error {
	listed, _, err := readManifests(ctx, files, document, nil)
	if err != nil {
		return err
	}
	return addReached(ctx, files, document, location, listed, set)
}
