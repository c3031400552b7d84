package tablefiles

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/apache/iceberg-go"

	"moorage/storage"
)

// Version is the format version of the tables.
const Version = 2

// entry is a file that a snapshot reads. Two entries with the same path stand for two deletion
// vectors in one Puffin file, or for a file that was added twice.
type entry struct {
	path    string
	deletes bool
}

// Snapshot is a snapshot of a History.
type Snapshot struct {
	ID, Parent, Sequence, TimestampMS int64
	List                              string
	Statistics                        string // empty if there is none
	manifests                         []stored
}

// stored is a manifest with its live entries.
type stored struct {
	file    iceberg.ManifestFile
	deletes bool
	live    []entry
}

// History makes the snapshots and files of one table. Only one goroutine may use it.
type History struct {
	tb       testing.TB
	store    storage.Store
	location string
	random   *rand.Rand
	clock    int64

	Snapshots []*Snapshot
	Heads     map[string]*Snapshot // the head of each branch
	Tags      map[string]*Snapshot
	Files     []string // all files that were made
	added     []entry  // every entry that was ever added
	serial    int
}

// New returns an empty history of a table at location. The first snapshot will have the time
// startMS.
func New(tb testing.TB, store storage.Store, location string, random *rand.Rand, startMS int64) *History {
	return &History{
		tb: tb, store: store, location: location, random: random, clock: startMS,
		Heads: map[string]*Snapshot{}, Tags: map[string]*Snapshot{},
	}
}

// NowMS returns the time of the last change.
func (h *History) NowMS() int64 { return h.clock }

// Step makes a random change, and returns the updates that commit it, as JSON. Its time is stepMS
// after the previous change.
func (h *History) Step(stepMS int64) []string {
	h.clock += stepMS
	branch := "main"
	if len(h.Heads) > 1 && h.random.IntN(3) == 0 {
		branch = fmt.Sprintf("b%d", 1+h.random.IntN(len(h.Heads)-1))
	}
	head := h.Heads[branch]
	if head == nil {
		return h.Append(branch, 2)
	}
	switch h.random.IntN(14) {
	case 0, 1, 2:
		return h.Append(branch, 1+h.random.IntN(3))
	case 3, 4:
		return h.remove(branch, 1, 0)
	case 5:
		return h.remove(branch, 2, 1) // compaction
	case 6:
		return h.merge(branch)
	case 7:
		return h.readd(branch)
	case 8:
		return h.twice(branch)
	case 9:
		return h.vectors(branch)
	case 10:
		return h.removeVector(branch)
	case 11:
		return h.branch()
	case 12:
		return h.tag()
	default:
		return h.rollback(branch)
	}
}

// Append adds files to a branch.
func (h *History) Append(branch string, count int) []string {
	var entries []entry
	for range count {
		entries = append(entries, h.data())
	}
	return h.append(branch, entries)
}

// Replace adds a snapshot that shares no manifest with the previous one. It has count new
// manifests, each with a data file that does not exist. Replace returns the updates that commit it,
// as JSON.
func (h *History) Replace(branch string, count int) []string {
	return h.commit(branch, func(s *Snapshot) {
		s.manifests = nil
		for range count {
			h.serial++
			path := storage.Join(h.location, "data", fmt.Sprintf("f-%05d.parquet", h.serial))
			s.manifests = append(s.manifests, h.manifest(s, []entry{{path, false}}, nil, nil))
		}
	})
}

func (h *History) append(branch string, entries []entry) []string {
	return h.commit(branch, func(s *Snapshot) {
		s.manifests = append(s.manifests, h.manifest(s, entries, nil, nil))
	})
}

// readd adds a file that was added before. The branch may no longer have the file.
func (h *History) readd(branch string) []string {
	return h.append(branch, []entry{h.pick(h.added, false)})
}

// AddAgain adds to a branch the data file at path, which was added before.
func (h *History) AddAgain(branch, path string) []string {
	return h.append(branch, []entry{{path, false}})
}

// twice adds a file that the branch already has.
func (h *History) twice(branch string) []string {
	return h.append(branch, []entry{h.pick(h.Heads[branch].live(), false)})
}

// vectors adds two deletion vectors in one Puffin file.
func (h *History) vectors(branch string) []string {
	shared := entry{h.create("data", "puffin"), true}
	return h.append(branch, []entry{shared, shared})
}

// removeVector removes one vector; the other vector of its Puffin file stays.
func (h *History) removeVector(branch string) []string {
	return h.commit(branch, func(s *Snapshot) {
		for i, m := range s.manifests {
			if m.deletes && len(m.live) > 1 {
				s.manifests[i] = h.manifest(s, nil, m.live[1:], m.live[:1])
				return
			}
		}
	})
}

// remove removes up to count files from all manifests of a branch. It also adds the number of new
// files in adds.
func (h *History) remove(branch string, count, adds int) []string {
	return h.commit(branch, func(s *Snapshot) {
		gone := map[entry]bool{}
		for range count {
			gone[h.pick(s.live(), false)] = true
		}
		for i, m := range s.manifests {
			var kept, removed []entry
			for _, e := range m.live {
				if gone[e] {
					removed = append(removed, e)
				} else {
					kept = append(kept, e)
				}
			}
			if len(removed) > 0 {
				s.manifests[i] = h.manifest(s, nil, kept, removed)
			}
		}
		for range adds {
			s.manifests = append(s.manifests, h.manifest(s, []entry{h.data()}, nil, nil))
		}
		s.manifests = slices.DeleteFunc(s.manifests, func(m stored) bool {
			return len(m.live) == 0 && h.random.IntN(2) == 0
		})
	})
}

// merge merges the data manifests of a branch into one.
func (h *History) merge(branch string) []string {
	return h.commit(branch, func(s *Snapshot) {
		var data []entry
		s.manifests = slices.DeleteFunc(s.manifests, func(m stored) bool {
			if !m.deletes {
				data = append(data, m.live...)
			}
			return !m.deletes
		})
		if len(data) > 0 {
			s.manifests = append(s.manifests, h.manifest(s, nil, data, nil))
		}
	})
}

func (h *History) branch() []string {
	name := fmt.Sprintf("b%d", len(h.Heads))
	h.Heads[name] = h.any()
	return []string{setRef(name, "branch", h.Heads[name].ID)}
}

func (h *History) tag() []string {
	name := fmt.Sprintf("t%d", h.random.IntN(4))
	h.Tags[name] = h.any()
	return []string{setRef(name, "tag", h.Tags[name].ID)}
}

// rollback sets a branch to the parent of its head.
func (h *History) rollback(branch string) []string {
	for _, s := range h.Snapshots {
		if s.ID == h.Heads[branch].Parent {
			h.Heads[branch] = s
			return []string{setRef(branch, "branch", s.ID)}
		}
	}
	return h.Append(branch, 1)
}

func (h *History) any() *Snapshot { return h.Snapshots[h.random.IntN(len(h.Snapshots))] }

// commit adds a snapshot to a branch. change sets its manifests.
func (h *History) commit(branch string, change func(*Snapshot)) []string {
	n := int64(len(h.Snapshots) + 1)
	s := &Snapshot{ID: 1000 + n, Sequence: n, TimestampMS: h.clock}
	parent := ""
	var parentID *int64
	if head := h.Heads[branch]; head != nil {
		s.Parent, s.manifests = head.ID, slices.Clone(head.manifests)
		parent, parentID = fmt.Sprintf(`"parent-snapshot-id":%d,`, s.Parent), &s.Parent
	}
	change(s)
	files := make([]iceberg.ManifestFile, 0, len(s.manifests))
	for _, m := range s.manifests {
		files = append(files, m.file)
	}
	var body bytes.Buffer
	if err := iceberg.WriteManifestList(Version, &body, s.ID, parentID, &s.Sequence, 0, files); err != nil {
		h.tb.Fatal(err)
	}
	// Read the list back, for the sequence numbers.
	listed, err := iceberg.ReadManifestList(bytes.NewReader(body.Bytes()))
	h.must(err)
	for i := range s.manifests {
		s.manifests[i].file = listed[i]
	}
	s.List = h.createAs("metadata", "snap-", "avro", body.Bytes())
	h.Snapshots = append(h.Snapshots, s)
	h.Heads[branch] = s
	updates := []string{fmt.Sprintf(`{"action":"add-snapshot","snapshot":{"snapshot-id":%d,%s"sequence-number":%d,`+
		`"timestamp-ms":%d,"manifest-list":%q,"summary":{"operation":"overwrite"},"schema-id":0}}`,
		s.ID, parent, s.Sequence, s.TimestampMS, s.List), setRef(branch, "branch", s.ID)}
	if h.random.IntN(4) == 0 {
		s.Statistics = h.create("metadata", "stats")
		updates = append(updates, fmt.Sprintf(`{"action":"set-statistics","statistics":{"snapshot-id":%d,`+
			`"statistics-path":%q,"file-size-in-bytes":4,"file-footer-size-in-bytes":4,"blob-metadata":[]}}`,
			s.ID, s.Statistics))
	}
	return updates
}

func setRef(name, kind string, id int64) string {
	return fmt.Sprintf(`{"action":"set-snapshot-ref","ref-name":%q,"type":%q,"snapshot-id":%d}`, name, kind, id)
}

// manifest writes a manifest of s.
func (h *History) manifest(s *Snapshot, added, existing, removed []entry) stored {
	deletes := slices.ContainsFunc(slices.Concat(added, existing, removed), func(e entry) bool { return e.deletes })
	content := iceberg.ManifestContentData
	if deletes {
		content = iceberg.ManifestContentDeletes
	}
	schema := iceberg.NewSchema(0, iceberg.NestedField{ID: 1, Name: "id", Type: iceberg.PrimitiveTypes.Int64})
	var body bytes.Buffer
	writer, err := iceberg.NewManifestWriter(Version, &body, *iceberg.UnpartitionedSpec, schema, s.ID,
		iceberg.WithManifestWriterContent(content))
	h.must(err)
	for _, group := range []struct {
		entries []entry
		status  iceberg.ManifestEntryStatus
		write   func(iceberg.ManifestEntry) error
	}{
		{added, iceberg.EntryStatusADDED, writer.Add}, {existing, iceberg.EntryStatusEXISTING, writer.Existing},
		{removed, iceberg.EntryStatusDELETED, writer.Delete},
	} {
		for _, e := range group.entries {
			file, err := iceberg.NewDataFileBuilder(*iceberg.UnpartitionedSpec, e.content(), e.path,
				iceberg.ParquetFile, nil, nil, nil, 1, 4)
			h.must(err)
			named := iceberg.NewManifestEntry(group.status, &s.ID, &s.Sequence, &s.Sequence, file.Build())
			h.must(group.write(named))
		}
	}
	h.must(writer.Close())
	path := h.createAs("metadata", "m-", "avro", body.Bytes())
	file, err := writer.ToManifestFile(path, int64(body.Len()), iceberg.WithManifestFileContent(content))
	h.must(err)
	h.added = append(h.added, added...)
	return stored{file, deletes, slices.Concat(added, existing)}
}

func (e entry) content() iceberg.ManifestEntryContent {
	if e.deletes {
		return iceberg.EntryContentPosDeletes
	}
	return iceberg.EntryContentData
}

func (h *History) data() entry { return entry{h.create("data", "parquet"), false} }

// pick returns one of entries, or a new data file if entries has no suitable one.
func (h *History) pick(entries []entry, deletes bool) entry {
	entries = slices.DeleteFunc(slices.Clone(entries), func(e entry) bool { return e.deletes != deletes })
	if len(entries) == 0 {
		return h.data()
	}
	return entries[h.random.IntN(len(entries))]
}

func (h *History) create(folder, suffix string) string {
	return h.createAs(folder, "f-", suffix, []byte("body"))
}

func (h *History) createAs(folder, prefix, suffix string, body []byte) string {
	h.serial++
	path := storage.Join(h.location, folder, fmt.Sprintf("%s%05d.%s", prefix, h.serial, suffix))
	h.must(h.store.Create(h.tb.Context(), path, body))
	h.Files = append(h.Files, path)
	return path
}

func (h *History) must(err error) {
	h.tb.Helper()
	if err != nil {
		h.tb.Fatal(err)
	}
}

func (s *Snapshot) live() (all []entry) {
	for _, m := range s.manifests {
		all = append(all, m.live...)
	}
	return all
}

// Reach returns all files that the snapshots with these ids reach.
func (h *History) Reach(ids map[int64]bool) map[string]bool {
	reached := map[string]bool{}
	for _, s := range h.Snapshots {
		if !ids[s.ID] {
			continue
		}
		reached[s.List] = true
		if s.Statistics != "" {
			reached[s.Statistics] = true
		}
		for _, m := range s.manifests {
			reached[m.file.FilePath()] = true
		}
		for _, e := range s.live() {
			reached[e.path] = true
		}
	}
	return reached
}
