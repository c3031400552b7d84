package jobs

import (
	"testing"
)

// TestSetOfQueries: a live file whose name contains '?' or '#' is found under every spelling of its
// location. A path that ends before that character counts as a look-alike, because some engines cut
// it there.
func TestSetOfQueries(t *testing.T) {
	t.Parallel()
	set := newLookAlikeSet(0)
	set.Add("s3a://b/t/data/a?b.parquet")
	set.Add("s3://b/t/p=#/c.parquet")
	for _, there := range []string{"s3://b/t/data/a?b.parquet", "s3n://b/t/data/a?b.parquet", "s3a://b/t/p=#/c.parquet"} {
		if !set.Has(there) {
			t.Errorf("%s is not there", there)
		}
	}
	for _, missing := range []string{"s3://b/t/data/a", "s3://b/t/data/a?", "s3://b/t/p=#/d.parquet"} {
		if set.Has(missing) {
			t.Errorf("%s is there", missing)
		}
	}
	if !set.HasElsewhere("s3://other/t/data/a?b.parquet") || set.HasElsewhere("s3://other/t/data/a?c.parquet") {
		t.Error("the path in another bucket is not told from others")
	}
	for location, looks := range map[string]bool{
		"s3://b/t/data/a": true, "s3://b/t/data/a%3Fb.parquet": true, "s3://b/t/p=": true,
		"s3://b/t/data/a?c.parquet": false, "s3://b/t/p=#/d.parquet": false,
	} {
		if set.LooksLike(location) != looks {
			t.Errorf("%s looks like one that is there: %t", location, !looks)
		}
	}
}
