package catalog_test

import (
	"fmt"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/apache/iceberg-go"
	"golang.org/x/sync/errgroup"

	"moorage"
	"moorage/catalog"
	"moorage/metadata"
	"moorage/storage/file"
	"moorage/testkit/catalogkit"
)

// BenchmarkAppendRebase measures concurrent appends by 32 clients to the same version of a table,
// which has a given number of manifests. Each append has its own manifest and list, which are
// written while the timer is stopped. Compare with property, in which as many clients set one
// property each. cpu-ms/op is the processor time of the whole process while the timer runs.
func BenchmarkAppendRebase(b *testing.B) {
	const clients = 32
	for _, manifests := range []int{1, 100, 1500} {
		for _, what := range []string{"append", "property"} {
			b.Run(fmt.Sprintf("manifests=%d/%s", manifests, what), func(b *testing.B) {
				f, folder := newDiskCatalog(b)
				e := &engine{b, must1(file.New([]string{"file://" + filepath.Join(folder, "warehouse")}))(b), 2}
				requests := make([]catalog.CommitRequest, clients)
				var used time.Duration
				for round := 0; round*clients < b.N; round++ {
					b.StopTimer()
					name := ident(fmt.Sprintf("t%d", round))
					seen := e.tableOf(f, name, manifests)
					for i := range requests {
						if requests[i] = catalogkit.SetProperty(b, fmt.Sprintf("p%d", i), "yes"); what == "append" {
							requests[i] = e.write(e.draft(seen, int64(i+2), fmt.Sprint(i)))
						}
					}
					began := cpuTime(b)
					b.StartTimer()
					var group errgroup.Group
					for _, request := range requests {
						group.Go(func() error {
							_, err := f.Commit(f.Ctx, name, request)
							return err
						})
					}
					must(b, group.Wait())
					b.StopTimer()
					used += cpuTime(b) - began
					b.StartTimer()
				}
				b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "commits/s")
				b.ReportMetric(used.Seconds()*1000/float64(b.N), "cpu-ms/op")
			})
		}
	}
}

// cpuTime returns the processor time that this process has used.
func cpuTime(b *testing.B) time.Duration {
	b.Helper()
	var usage syscall.Rusage
	must(b, syscall.Getrusage(syscall.RUSAGE_SELF, &usage))
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

// tableOf creates a table whose snapshot has the given number of manifests. The manifest files
// themselves do not exist, because manifests known to all appends are not read.
func (e *engine) tableOf(f *catalogkit.Fixture, name moorage.Identifier, manifests int) *catalog.Table {
	e.tb.Helper()
	empty := must1(f.CreateTable(f.Ctx, name, catalog.CreateTableRequest{
		Schema: []byte(catalogkit.Schema), Properties: rebaseProperty(metadata.AppendRebaseOnAll),
	}))(e.tb)
	d := e.draft(empty, 1, "first")
	for i := range manifests - 1 {
		d.kept = append(d.kept, iceberg.NewManifestFile(2, fmt.Sprintf("%s/metadata/kept-%d.avro", empty.Document.Location(), i), 5000, 0, 1).
			SequenceNum(1, 1).AddedFiles(1).AddedRows(10).Build())
	}
	return must1(f.Commit(f.Ctx, name, e.write(d)))(e.tb)
}
