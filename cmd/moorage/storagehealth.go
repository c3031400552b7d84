package main

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"moorage"
	"moorage/internal/cli"
	"moorage/internal/trace"
	"moorage/internal/worker"
	"moorage/management/client"
	"moorage/storage"
	"moorage/storage/file"
)

const (
	// healthInterval is the time between two measurements of the free space of disks.
	healthInterval = 30 * time.Second
	// freeLife is how long the last measurement is reported after a disk has stopped answering.
	freeLife = 3 * time.Minute
	// foldersMax is the maximum number of folders whose disks are measured.
	foldersMax = storage.WatchedMax + 1
)

// storageHealth is this node's view of storages: the outcome of calls, and the free space of local
// folders. It is safe for concurrent use.
type storageHealth struct {
	watch   *storage.Watch
	worker  *worker.Worker // measures disks, and records which storages no longer fail
	measure func(folder string) (bytes uint64, err error)
	now     func() time.Time

	mu      sync.Mutex // guards the fields below; no other lock is taken under it
	folders []string
	free    map[string]freeSpace // by folder
	asking  map[string]bool      // folders whose disks have not answered yet
}

// freeSpace is one measurement of a disk.
type freeSpace struct {
	bytes uint64
	at    time.Time
}

// newStorageHealth returns a storageHealth that measures calls to storages, in metrics and in the
// traces of tracer. It also measures the disk of the data folder.
func newStorageHealth(c cli.Config, metrics prometheus.Registerer, tracer *trace.Tracer, logger *slog.Logger,
) *storageHealth {
	ended := counter(metrics, "moorage_storage_calls_total",
		"Calls to the storages of warehouses, by warehouse (at most 30 names), call and outcome.",
		"warehouse", "call", "outcome")
	seconds := prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name:    "moorage_storage_call_duration_seconds",
		Help:    "Duration of calls to the storages of warehouses, by warehouse (at most 30 names) and call.",
		Buckets: []float64{0.001, 0.005, 0.02, 0.1, 0.5, 2, 10, 60},
	}, []string{"warehouse", "call"})
	h := &storageHealth{
		measure: file.FreeBytes, now: time.Now, folders: []string{c.Data}, free: make(map[string]freeSpace),
		asking: make(map[string]bool),
	}
	observe := func(ctx context.Context, warehouse, call, outcome string, took time.Duration) {
		tracer.Call(ctx, "storage."+call, outcome, took)
		ended.WithLabelValues(warehouse, call, outcome).Inc()
		seconds.WithLabelValues(warehouse, call).Observe(took.Seconds())
	}
	h.watch = storage.NewWatch(storage.WatchConfig{Logger: logger, Ended: observe})
	metrics.MustRegister(seconds, h)
	h.worker = worker.New(worker.Config{
		Name: "storage health", Run: h.look, Interval: healthInterval, Jitter: newJitter(), Logger: logger,
	})
	h.worker.Kick()
	return h
}

// sawFolder adds a folder to the folders whose disks are measured.
func (h *storageHealth) sawFolder(folder string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.folders) < foldersMax && !slices.Contains(h.folders, folder) {
		h.folders = append(h.folders, folder)
		h.worker.Kick()
	}
}

// look measures the free space of each disk. It skips a hanging disk until that answers again.
func (h *storageHealth) look(context.Context) error {
	h.watch.Failures() // Failures also logs which storages no longer fail
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, folder := range h.folders {
		if !h.asking[folder] {
			h.asking[folder] = true
			go h.ask(folder) // in the background, because a hanging system call cannot be cancelled
		}
	}
	return nil
}

// ask records the free space of a folder's disk.
func (h *storageHealth) ask(folder string) {
	bytes, err := h.measure(folder)
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.asking, folder)
	if err == nil {
		h.free[folder] = freeSpace{bytes, h.now()}
	}
}

// folderOf returns the folder of a location on this machine, or "" for other locations.
func folderOf(location string) string {
	parsed, err := storage.Parse(location)
	if err != nil || parsed.Scheme != storage.SchemeFile {
		return ""
	}
	return filepath.FromSlash(parsed.Path)
}

// freeOf returns the free space by folder, without measurements older than freeLife.
func (h *storageHealth) freeOf() map[string]uint64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	found := make(map[string]uint64, len(h.free))
	for folder, seen := range h.free {
		if h.now().Sub(seen.at) <= freeLife {
			found[folder] = seen.bytes
		}
	}
	return found
}

// healthOf returns the observed health of a warehouse's storage.
func (h *storageHealth) healthOf(warehouse, location string) *client.StorageHealth {
	found := &client.StorageHealth{Failing: []client.StorageFailure{}}
	for _, each := range h.watch.FailuresOf(warehouse) {
		found.Failing = append(found.Failing, client.StorageFailure{
			Calls: each.Calls, Since: each.Since.UTC(), Last: each.Last.UTC(), Error: each.Error,
		})
	}
	if free, ok := h.freeOf()[folderOf(location)]; ok {
		found.FreeBytes = &free
	}
	return found
}

// details returns what GET /readyz?verbose reports about storages. It leaves out the reasons of
// failures, which are in the log.
func (h *storageHealth) details(named bool) map[string]string {
	failures := h.watch.Failures()
	if !named {
		if len(failures) == 0 {
			return map[string]string{"storages": "none fails"}
		}
		return map[string]string{"storages": "some fail: ask with a key that may read /metrics, or see the log"}
	}
	found := make(map[string]string)
	for _, each := range failures {
		found["storage of "+each.Warehouse+", "+each.Calls] = fmt.Sprintf(
			"fails since %s, last at %s; the log says why",
			each.Since.UTC().Format(time.RFC3339), each.Last.UTC().Format(time.RFC3339))
	}
	for folder, bytes := range h.freeOf() {
		found["free on the disk of "+folder] = moorage.SizeOf(bytes)
	}
	return found
}

// findings returns findings about the storages that fail now, and about the free space on the disks
// of local folders.
func (h *storageHealth) findings() (found []client.Finding) {
	for _, each := range h.watch.Failures() {
		found = append(found, client.Finding{
			Level: client.LevelBad, What: "storage of warehouse " + each.Warehouse,
			Fact: fmt.Sprintf("%s fail since %s, last at %s: %s", each.Calls, each.Since.UTC().Format(time.RFC3339),
				each.Last.UTC().Format(time.RFC3339), moorage.OneLine(each.Error)),
			Remedy: "Repair the storage, or its secret: moorage warehouse validate " +
				moorage.ShellWord(each.Warehouse),
		})
	}
	free := h.freeOf()
	for _, folder := range slices.Sorted(maps.Keys(free)) {
		found = append(found, client.Finding{
			Level: client.LevelOK, What: "disk of " + folder, Fact: moorage.SizeOf(free[folder]) + " free",
		})
	}
	return found
}

// Describe implements prometheus.Collector. It describes no metrics, because the labels of these
// metrics change.
func (h *storageHealth) Describe(chan<- *prometheus.Desc) {}

// Collect implements prometheus.Collector.
func (h *storageHealth) Collect(to chan<- prometheus.Metric) {
	failing := prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "moorage_storage_failing_seconds",
		Help: "How long the storage of a warehouse has been failing. Absent while it works.",
	}, []string{"warehouse", "calls"})
	longest := make(map[[2]string]float64)
	for _, each := range h.watch.Failures() {
		labels := [2]string{each.Label, each.Calls}
		longest[labels] = max(longest[labels], h.now().Sub(each.Since).Seconds())
	}
	for labels, seconds := range longest {
		failing.WithLabelValues(labels[0], labels[1]).Set(seconds)
	}
	failing.Collect(to)
	free := prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "moorage_disk_free_bytes",
		Help: "Free space on the disks of --data, and of the local folders of at most 30 warehouses.",
	}, []string{"folder"})
	for folder, bytes := range h.freeOf() {
		free.WithLabelValues(folder).Set(float64(bytes))
	}
	free.Collect(to)
}
