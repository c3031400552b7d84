package activity

import (
	"math/bits"
	"time"
)

const (
	// latencyUnit is the width of the first buckets. Each following group of latencyParts buckets
	// is twice as wide.
	latencyUnit  = 16 * time.Microsecond
	latencyParts = 4
	// The buckets cover durations up to about a minute, which is longer than the limit of a commit.
	latencyBuckets = latencyParts * 21
)

// latencies is a histogram of durations. The upper bound of a bucket is at most a quarter above its
// lower bound.
type latencies [latencyBuckets]uint32

func (l *latencies) add(took time.Duration) { l[bucketOf(took)]++ }

// bucketOf returns the index of the bucket of a duration.
func bucketOf(took time.Duration) int {
	units := uint64(max(took, 0) / latencyUnit)
	if units < latencyParts {
		return int(units)
	}
	group := bits.Len64(units) - bits.Len(latencyParts) // 0 for units below 2*latencyParts
	return min(latencyParts*(group+1)+int(units>>group)-latencyParts, latencyBuckets-1)
}

// boundOf returns the upper bound of a bucket.
func boundOf(bucket int) time.Duration {
	group := max(bucket/latencyParts-1, 0)
	within := bucket - latencyParts*group
	return latencyUnit * time.Duration(within+1) << group
}

// percentile returns the upper bound of the bucket that contains the percentile called percent. It
// returns zero if l is empty.
func (l *latencies) percentile(percent uint64) time.Duration {
	all := uint64(0)
	for _, n := range l {
		all += uint64(n)
	}
	if all == 0 {
		return 0
	}
	wanted, seen := (all*percent+99)/100, uint64(0)
	for bucket, n := range l {
		if seen += uint64(n); seen >= wanted {
			return boundOf(bucket)
		}
	}
	return boundOf(latencyBuckets - 1)
}
