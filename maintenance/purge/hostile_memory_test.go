//go:build !race

package purge_test

import (
	"flag"
	"fmt"
	"testing"

	"moorage/manifests"
	"moorage/testkit/scale"
	"moorage/testkit/tablefiles"
)

var longFlag = flag.Bool("long", false, "lists of four million names and manifests of four million files, not of as many as show the bounds")

// A list of a few megabytes unpacks to millions of manifests. It blocks the purge after a few
// attempts, which take little memory. Nothing is deleted, and after a restart of the worker the
// purge is still blocked.
func TestAListOfMillionsOfManifestsBlocksItsPurge(t *testing.T) {
	manifests := manifests.ListedMax + 1
	if *longFlag {
		manifests = 4_000_000
	}
	peak := scale.Peak(t, func(t *testing.T) func() {
		in := newDropped(t, func(old *purged) {
			old.listed(old.file(purgedTable+"/metadata/snap.avro", tablefiles.HostileList(t, manifests, func(i int) string {
				return fmt.Sprintf("%s/metadata/%09d-m0.avro", purgedTable, i)
			})))
		})
		return func() { blocks(t, in, "over 262144 manifests") }
	})
	t.Logf("%d manifests take %d bytes above idle", manifests, peak)
	if peak > scale.AboveIdleMax {
		t.Errorf("%d manifests take %d bytes above idle, want at most %d", manifests, peak, scale.AboveIdleMax)
	}
}

// A manifest lists a million files, each with thousands of unneeded numbers. It is read in parts.
func TestAManifestOfMillionsOfFilesIsPurgedInLittleMemory(t *testing.T) {
	files := 300_000
	if *longFlag {
		files = 4_000_000
	}
	peak := scale.Peak(t, func(t *testing.T) func() {
		in := newDropped(t, func(old *purged) {
			at := purgedTable + "/metadata/m.avro"
			old.file(at, tablefiles.HostileManifest(t, files, 0, func(i int) string {
				return fmt.Sprintf("%s/data/%09d.parquet", purgedTable, i)
			}))
			old.file(purgedTable+"/metadata/wide.avro", tablefiles.HostileManifest(t, 3, 6<<20, func(i int) string {
				return fmt.Sprintf("%s/data/wide-%09d.parquet", purgedTable, i)
			}))
			old.listed(old.file(purgedTable+"/metadata/snap.avro", tablefiles.HostileList(t, 2, func(i int) string {
				return purgedTable + "/metadata/" + []string{"m.avro", "wide.avro"}[i]
			})))
		})
		return func() { in.purge() }
	})
	t.Logf("%d files take %d bytes above idle", files, peak)
	if peak > scale.AboveIdleMax {
		t.Errorf("%d files take %d bytes above idle, want at most %d", files, peak, scale.AboveIdleMax)
	}
}
