package main

import (
	"cmp"
	"runtime/metrics"
	"slices"

	"github.com/prometheus/client_golang/prometheus"

	"moorage/management/client"
	"moorage/registry/postgres"
)

// state returns the state of this node.
func (n *node) state() client.NodeState {
	state := client.NodeState{
		Version: version(), Members: n.peers.count(), Store: callTimes(n.metered.calls), HeapBytes: heapBytes(),
	}
	used, most := n.catalog.Documents().CacheBytes()
	state.Cached = &client.CacheUse{Bytes: used, BytesMax: most}
	if database, ok := n.store.(*postgres.Store); ok {
		use := database.Connections()
		state.Connections = &client.Connections{Used: use.Used, Idle: use.Idle, Max: use.Max}
	}
	return state
}

// heapBytes returns the memory of Go objects, both reachable ones and garbage.
func heapBytes() int64 {
	samples := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	metrics.Read(samples)
	if samples[0].Value.Kind() != metrics.KindUint64 {
		return 0
	}
	return int64(samples[0].Value.Uint64())
}

// callTimes returns the durations of calls since the start of the process, the most frequent calls
// first.
func callTimes(calls callMetrics) []client.CallTimes {
	gathered := prometheus.NewRegistry()
	if err := gathered.Register(calls.seconds); err != nil {
		return nil
	}
	families, err := gathered.Gather()
	if err != nil {
		return nil
	}
	byCall := map[string]client.CallTimes{}
	for _, family := range families {
		for _, metric := range family.GetMetric() {
			labels := map[string]string{}
			for _, pair := range metric.GetLabel() {
				labels[pair.GetName()] = pair.GetValue()
			}
			times, histogram := byCall[labels["call"]], metric.GetHistogram()
			times.Call = labels["call"]
			if labels["outcome"] != outcome(nil) {
				times.Failed += int64(histogram.GetSampleCount())
				byCall[times.Call] = times
				continue
			}
			var bounds []bucket
			for _, each := range histogram.GetBucket() {
				bounds = append(bounds, bucket{each.GetUpperBound(), each.GetCumulativeCount()})
			}
			times.Count = int64(histogram.GetSampleCount())
			times.P50 = 1000 * quantile(0.5, histogram.GetSampleCount(), bounds)
			times.P99 = 1000 * quantile(0.99, histogram.GetSampleCount(), bounds)
			byCall[times.Call] = times
		}
	}
	all := []client.CallTimes{}
	for _, times := range byCall {
		all = append(all, times)
	}
	slices.SortFunc(all, func(a, b client.CallTimes) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Call, b.Call))
	})
	return all
}

// bucket is a bucket of a histogram: the number of values up to bound.
type bucket struct {
	bound float64
	count uint64
}

// quantile estimates the q-quantile of the values in a histogram. It assumes that values are evenly
// distributed within a bucket. Values beyond the last bucket count as the bound of that bucket.
func quantile(q float64, all uint64, buckets []bucket) float64 {
	wanted := q * float64(all)
	var below bucket
	for _, b := range buckets {
		if float64(b.count) >= wanted && b.count > below.count {
			share := (wanted - float64(below.count)) / float64(b.count-below.count)
			return below.bound + share*(b.bound-below.bound)
		}
		below = b
	}
	return below.bound
}
