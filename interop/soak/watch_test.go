package soak

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// The sampled series, besides the rows of each table. Each node has its own series.
const (
	seriesHeap        = "live heap (MiB)"
	seriesResident    = "resident memory (MiB)"
	seriesGoroutines  = "goroutines"
	seriesThreads     = "threads"
	seriesDescriptors = "descriptors"
	seriesConnections = "connections of the database"
	seriesRows        = "rows"
	seriesFiles       = "files"
)

// sampleTimeout bounds the wait for a node's metrics. A hanging node is skipped.
const sampleTimeout = 2 * time.Second

// sample has the values at one time.
type sample struct {
	at     time.Duration
	values map[string]float64
}

// watch takes samples. It is safe for concurrent use.
type watch struct {
	world *world
	began time.Time

	mu      sync.Mutex // guards samples; a leaf
	samples []sample
}

// run samples until done is closed.
func (w *watch) run(ctx context.Context, every time.Duration, done <-chan struct{}) error {
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	for {
		if err := w.look(ctx); err != nil {
			return err
		}
		select {
		case <-ticker.C:
		case <-done:
			return nil
		}
	}
}

// look takes one sample.
func (w *watch) look(ctx context.Context) error {
	values := map[string]float64{}
	for i, n := range w.world.all() {
		w.lookAt(ctx, n, suffixOf(i), values)
	}
	files, err := countFiles(w.world.data)
	if err != nil {
		return err
	}
	values[seriesFiles] = float64(files)
	if err := w.countRows(ctx, values); err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.samples = append(w.samples, sample{time.Since(w.began), values})
	return nil
}

// between returns the samples between two times.
func (w *watch) between(from, to time.Duration) (found []sample) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, s := range w.samples {
		if s.at >= from && s.at < to {
			found = append(found, s)
		}
	}
	return found
}

// rest waits for a calm, in which each node is sampled. It returns the samples.
func (w *watch) rest(ctx context.Context) (samples []sample) {
	from := time.Since(w.began)
	for wait := calm; ; wait = time.Second {
		err := pause(ctx, wait)
		now := time.Since(w.began)
		samples = w.between(from, now)
		if err != nil || w.areAllIn(samples) || now-from > calmMax {
			return samples
		}
	}
}

// areAllIn reports whether each node is in one of the samples.
func (w *watch) areAllIn(samples []sample) bool {
	for i := range w.world.all() {
		isIn := func(s sample) bool { _, there := s.values[seriesGoroutines+suffixOf(i)]; return there }
		if !slices.ContainsFunc(samples, isIn) {
			return false
		}
	}
	return true
}

// suffixOf returns the suffix of the series of a node.
func suffixOf(i int) string { return fmt.Sprintf(", node %d", i) }

// lookAt adds a node's own metrics to values, or nothing if the node does not answer.
func (w *watch) lookAt(ctx context.Context, n *node, suffix string, values map[string]float64) {
	ctx, cancel := context.WithTimeout(ctx, sampleTimeout)
	defer cancel()
	status, body, err := w.world.get(ctx, n.uri+"/metrics")
	if err != nil || status != 200 {
		return
	}
	const mebibyte = 1 << 20
	metrics := parseMetrics(body)
	// The runtime sets its next heap goal to twice the live heap after a collection, by default.
	values[seriesHeap+suffix] = metrics["go_memstats_next_gc_bytes"] / 2 / mebibyte
	values[seriesResident+suffix] = metrics["process_resident_memory_bytes"] / mebibyte
	values[seriesGoroutines+suffix] = metrics["go_goroutines"]
	values[seriesDescriptors+suffix] = metrics["process_open_fds"]
	if threads, err := countThreads(int(n.pid.Load())); err == nil {
		values[seriesThreads+suffix] = float64(threads)
	}
}

// parseMetrics returns the metrics without labels.
func parseMetrics(text []byte) map[string]float64 {
	metrics := map[string]float64{}
	for lines := bufio.NewScanner(bytes.NewReader(text)); lines.Scan(); {
		name, value, _ := strings.Cut(lines.Text(), " ")
		if number, err := strconv.ParseFloat(value, 64); err == nil && !strings.HasPrefix(name, "#") {
			metrics[name] = number
		}
	}
	return metrics
}

// countThreads returns the number of threads of a process.
func countThreads(pid int) (int, error) {
	tasks, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", pid))
	return len(tasks), err
}

// countFiles returns the number of files below folder.
func countFiles(folder string) (count int, err error) {
	err = filepath.WalkDir(folder, func(_ string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() {
			count++
		}
		if os.IsNotExist(err) {
			return nil // it was deleted meanwhile
		}
		return err
	})
	return count, err
}

// countRows adds the numbers of connections, and of rows in each table of the database.
func (w *watch) countRows(ctx context.Context, values map[string]float64) error {
	const connections = "SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend' AND application_name <> $1"
	var count int64
	if err := w.world.sql.QueryRow(ctx, connections, applicationName).Scan(&count); err != nil {
		return fmt.Errorf("count connections: %w", err)
	}
	values[seriesConnections] = float64(count)
	tables, err := w.world.tables(ctx)
	if err != nil {
		return err
	}
	for _, table := range tables {
		if err := w.world.sql.QueryRow(ctx, "SELECT count(*) FROM "+table).Scan(&count); err != nil {
			return fmt.Errorf("count the rows of %s: %w", table, err)
		}
		values[seriesRows+" of "+table] = float64(count)
	}
	return nil
}

// tables returns the tables of the database.
func (w *world) tables(ctx context.Context) (names []string, err error) {
	rows, err := w.sql.Query(ctx, "SELECT tablename FROM pg_tables WHERE tablename LIKE 'moorage\\_%' ORDER BY tablename")
	if err != nil {
		return nil, fmt.Errorf("list tables: %w", err)
	}
	defer rows.Close()
	for rows.Next() {
		var name string
		if err := rows.Scan(&name); err != nil {
			return nil, err
		}
		names = append(names, name)
	}
	return names, rows.Err()
}

// peak returns the largest window minimum of a series between two times, or NaN without samples.
// The minimum of a window is the value after a garbage collection.
func peak(samples []sample, series string, from, to, window time.Duration) float64 {
	largest := math.NaN()
	for start := from; start < to; start += window {
		least := math.NaN()
		for _, s := range samples {
			value, there := s.values[series]
			if there && s.at >= start && s.at < min(start+window, to) && !(value >= least) {
				least = value
			}
		}
		if !math.IsNaN(least) && !(least <= largest) {
			largest = least
		}
	}
	return largest
}
