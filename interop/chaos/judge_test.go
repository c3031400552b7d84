package chaos

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/apache/iceberg-go"
	icebergio "github.com/apache/iceberg-go/io"
	"github.com/apache/iceberg-go/table"

	"moorage/management/client"
)

// judge checks that the files that tables reach exist. It reads them with iceberg-go and the file
// system, and asks the server only for the current metadata. It is for use by one goroutine.
type judge struct {
	*world
	// named caches the files that each manifest names. Manifests never change.
	named map[string][]string
	looks int
	files int // existing files, counted over all checks
	// runs are the ended jobs that the judge has seen.
	runs map[string]client.MaintenanceRun
}

func newJudge(w *world) *judge {
	return &judge{world: w, named: make(map[string][]string), runs: make(map[string]client.MaintenanceRun)}
}

// run checks one table after the other until ctx ends. The error names a live file that is missing,
// or a blocked job.
func (j *judge) run(ctx context.Context) error {
	for turn := 0; sleep(ctx, j.judgePause) == nil; turn++ {
		name, at := j.tables[turn%len(j.tables)], turn%len(j.nodes)
		if err := j.look(ctx, name, at); err != nil {
			return err
		}
		if status, err := j.status(ctx, name, at); err == nil { // otherwise the node is down
			if err := j.note(name, status); err != nil {
				return err
			}
		}
	}
	return nil
}

// look checks one table. If a file is missing, look loads the table again: the file's snapshot must
// have expired by then.
func (j *judge) look(ctx context.Context, name string, at int) error {
	loaded, err := j.load(ctx, name, at)
	if err != nil {
		return nil //nolint:nilerr // the node is gone; the next look asks another
	}
	var missing error
	for _, snapshot := range loaded.Metadata().Snapshots() {
		if _, err := j.reach(loaded, snapshot); err != nil {
			missing = errors.Join(missing, j.unlessExpired(ctx, name, snapshot.SnapshotID, err))
		}
	}
	for file := range j.beside(loaded) {
		if _, err := os.Stat(local(file)); err != nil {
			missing = errors.Join(missing, fmt.Errorf("%s: a metadata file: %w", name, err))
		}
	}
	j.looks++
	return missing
}

func (j *judge) load(ctx context.Context, name string, at int) (*table.Table, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	return j.direct.catalogs[at].LoadTable(ctx, table.Identifier{namespace, name})
}

// unlessExpired returns missing unless the snapshot has expired by now or names other statistics.
func (j *judge) unlessExpired(ctx context.Context, name string, id int64, missing error) error {
	for at := 0; ctx.Err() == nil; at++ {
		again, err := j.load(ctx, name, at%len(j.nodes))
		if err != nil {
			_ = sleep(ctx, readPause) // fails only if ctx ends
			continue
		}
		snapshot := again.SnapshotByID(id)
		if snapshot == nil {
			return nil
		}
		if _, err := j.reach(again, *snapshot); err == nil {
			return nil
		}
		return fmt.Errorf("%s: snapshot %d, which is in the table, misses a file: %w", name, id, missing)
	}
	return nil
}

// beside returns the files that the metadata itself names, without manifest lists and statistics.
func (j *judge) beside(loaded *table.Table) map[string]bool {
	files := map[string]bool{loaded.MetadataLocation(): true}
	for entry := range loaded.Metadata().PreviousFiles() {
		files[entry.MetadataFile] = true
	}
	return files
}

// reach returns the files that a snapshot reaches. They must exist.
func (j *judge) reach(loaded *table.Table, snapshot table.Snapshot) ([]string, error) {
	body, err := os.ReadFile(local(snapshot.ManifestList))
	if err != nil {
		return nil, err
	}
	manifests, err := iceberg.ReadManifestList(bytes.NewReader(body))
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", snapshot.ManifestList, err)
	}
	reached := []string{snapshot.ManifestList}
	for _, m := range manifests {
		reached = append(reached, m.FilePath())
		names, known := j.named[m.FilePath()]
		if !known {
			if names, err = namedBy(m); err != nil {
				return nil, err
			}
			j.named[m.FilePath()] = names
		}
		reached = append(reached, names...)
	}
	for statistics := range loaded.Metadata().Statistics() {
		if statistics.SnapshotID == snapshot.SnapshotID {
			reached = append(reached, statistics.StatisticsPath)
		}
	}
	for _, file := range reached {
		if _, err := os.Stat(local(file)); err != nil {
			return nil, err
		}
	}
	j.files += len(reached)
	return reached, nil
}

// namedBy returns the live files that a manifest names.
func namedBy(m iceberg.ManifestFile) (names []string, err error) {
	for entry, err := range m.Entries(disk{}, true) {
		if err != nil {
			return nil, err
		}
		names = append(names, entry.DataFile().FilePath())
	}
	return names, nil
}

// disk opens files by any spelling of their locations. It refuses to remove files.
type disk struct{}

// Open implements icebergio.IO.
func (disk) Open(name string) (icebergio.File, error) { return os.Open(local(name)) }

// Remove implements icebergio.IO.
func (disk) Remove(name string) error { return fmt.Errorf("%s is to stay", name) }

// local returns the path of a location: Java begins it with file:/ and one slash.
func local(location string) string {
	return "/" + strings.TrimLeft(strings.TrimPrefix(location, "file:"), "/")
}

// surplus returns the files in the tables' folders that no snapshot reaches. It ignores metadata
// files and hidden files, which maintenance never deletes.
func (j *judge) surplus(ctx context.Context) (files []string, err error) {
	for _, name := range j.tables {
		loaded, err := j.load(ctx, name, 0)
		if err != nil {
			return nil, err
		}
		live := make(map[string]bool)
		for _, snapshot := range loaded.Metadata().Snapshots() {
			reached, err := j.reach(loaded, snapshot)
			if err != nil {
				return nil, err
			}
			for _, file := range reached {
				live[local(file)] = true
			}
		}
		// Statistics may be added after their snapshot has expired.
		for statistics := range loaded.Metadata().Statistics() {
			live[local(statistics.StatisticsPath)] = true
		}
		for statistics := range loaded.Metadata().PartitionStatistics() {
			live[local(statistics.StatisticsPath)] = true
		}
		err = filepath.WalkDir(local(loaded.Location()), func(path string, entry fs.DirEntry, err error) error {
			if err == nil && !entry.IsDir() && !live[path] && isTabular(path) {
				files = append(files, path)
			}
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	return files, nil
}

// isTabular reports whether maintenance may delete a file.
func isTabular(path string) bool {
	return !strings.Contains(path, ".metadata.json") && !strings.Contains(path, "/.") && !strings.Contains(path, "/_")
}

// awaitOrder runs maintenance on all tables until only reachable files are left. Meanwhile, jobs
// delete snapshots, files and folders that surplus has just listed.
func (j *judge) awaitOrder(ctx context.Context, span time.Duration) error {
	var left []string
	var failure error // of the last search
	for deadline := time.Now().Add(span); time.Now().Before(deadline); {
		for i, name := range j.tables {
			j.world.look(ctx, i, name, "snapshots")
			j.world.look(ctx, i, name, "orphans")
			status, err := j.status(ctx, name, i%len(j.nodes))
			if err == nil {
				err = j.note(name, status)
			}
			if err != nil {
				return err
			}
		}
		if left, failure = j.surplus(ctx); failure == nil && len(left) == 0 {
			return nil
		}
		if err := sleep(ctx, time.Second); err != nil {
			return err
		}
	}
	if failure != nil {
		return failure
	}
	slices.Sort(left)
	return fmt.Errorf("%d files are left that no snapshot reaches, such as %s\n%s\n%s", len(left), left[0],
		j.output("maintain", "status"), j.output("doctor"))
}

// plant creates files that nothing references, and returns their number.
func (j *judge) plant(ctx context.Context) (count int, err error) {
	for _, name := range j.tables {
		loaded, err := j.load(ctx, name, 0)
		if err != nil {
			return count, err
		}
		for _, stray := range []string{"data/stray.parquet", "metadata/stray.avro", "data/deep/er/stray.puffin"} {
			path := filepath.Join(local(loaded.Location()), stray)
			if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
				return count, err
			}
			if err := os.WriteFile(path, []byte("stray"), 0o644); err != nil {
				return count, err
			}
			count++
		}
	}
	return count, nil
}

// note records the ended jobs of a table; a status lists the most recent ones. The error names a
// blocked job.
func (j *judge) note(name string, status client.MaintenanceStatus) error {
	for _, run := range status.Runs {
		j.runs[run.Job] = run
	}
	for _, kind := range status.Kinds {
		if kind.State == "Blocked" {
			return fmt.Errorf("%s of %s is blocked: %s", kind.Kind, name, kind.Why)
		}
	}
	return nil
}

// counts returns the numbers of ended jobs by kind and outcome, and the number of files that they
// deleted.
func (j *judge) counts() (jobs map[string]int, files int64) {
	jobs = make(map[string]int)
	for _, run := range j.runs {
		jobs[run.Kind+" "+run.Outcome]++
		files += run.Files
	}
	return jobs, files
}
