package catalog_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"moorage"
	"moorage/access"
	"moorage/catalog"
	"moorage/catalog/gate"
	"moorage/locks"
	"moorage/testkit/catalogkit"
)

// BenchmarkPostgresAccess loads tables alternately through a catalog without a guard and through
// one with a guard, which reads the epoch with each load. Each catalog has its own connections. The
// benchmark reports both medians and their difference.
func BenchmarkPostgresAccess(b *testing.B) {
	d := newBenchDatabase(b)
	open := d.newCatalog(b, locks.GrantAll{})
	const many = 1000
	createTables(open, many)
	guarded := d.newGuarded(b)
	load := func(c *catalog.Catalog, n int) (time.Duration, error) {
		start := time.Now()
		_, err := c.LoadTable(b.Context(), ident(fmt.Sprintf("t%d", n%many)))
		return time.Since(start), err
	}
	for _, clients := range clientCounts {
		b.Run(fmt.Sprintf("clients=%d", clients), func(b *testing.B) {
			took := make([][2][]time.Duration, clients)
			failed := make(chan error, clients)
			rounds := b.N/clients + 1
			b.ResetTimer()
			for client := range clients {
				go func() {
					for n := range rounds {
						for i, c := range [2]*catalog.Catalog{open.Catalog, guarded} {
							one, err := load(c, client*rounds+n)
							if err != nil {
								failed <- err
								return
							}
							took[client][i] = append(took[client][i], one)
						}
					}
					failed <- nil
				}()
			}
			for range clients {
				if err := <-failed; err != nil {
					b.Fatal(err)
				}
			}
			var off, on []time.Duration
			for _, each := range took {
				off, on = append(off, each[0]...), append(on, each[1]...)
			}
			slices.Sort(off)
			slices.Sort(on)
			offMedian, onMedian := off[len(off)/2].Seconds(), on[len(on)/2].Seconds()
			b.ReportMetric(1e6*offMedian, "off-µs")
			b.ReportMetric(1e6*onMedian, "on-µs")
			b.ReportMetric(100*(onMedian/offMedian-1), "longer-%")
		})
	}
}

// newGuarded enables access control, and returns the verbs for a caller with access to the
// warehouse. Its process shares the database with others.
func (d benchDatabase) newGuarded(b *testing.B) *catalog.Catalog {
	b.Helper()
	config := d.newCatalog(b, locks.GrantAll{}).Instance.Config
	config.Guard = gate.New(gate.Config{Store: config.Store})
	n, err := catalogkit.NewInstance(config)
	if err != nil {
		b.Fatal(err)
	}
	s := &catalogkit.Secured{Instance: n, T: b, Store: config.Store}
	if err := s.Admin().Enable(b.Context()); err != nil {
		b.Fatal(err)
	}
	s.Grant(catalogkit.OnWarehouse(), catalogkit.AnnName, access.Read)
	return s.As(moorage.Caller{Name: catalogkit.AnnName})
}
