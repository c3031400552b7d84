package locks_test

import (
	"fmt"
	"slices"
	"strings"

	"moorage/locks"
)

// place is a path of the test tree with its segments spelled out, because the model must not rely
// on package locks.
type place struct {
	path     locks.Path
	segments []string
}

// tree returns a tree of depth four with all types of segments. Parents come before children.
func tree() []place {
	var places []place
	add := func(path locks.Path, segments ...string) { places = append(places, place{path, segments}) }

	w := locks.Warehouse("w")
	add(w, "w")
	add(locks.Warehouse("w").Pointer("1"), "w", "pointer 1")
	for _, name := range []string{"a", "#1"} {
		ns := w.Namespace(name)
		add(ns, "w", name)
		add(ns.Shard(1), "w", name, "shard 1")
		add(ns.Namespace("b"), "w", name, "b")
		add(ns.Namespace("b").Shard(0), "w", name, "b", "shard 0")
		add(ns.Namespace("b").Namespace("c"), "w", name, "b", "c")
	}
	return places
}

// contains reports whether other is p or below it.
func (p place) contains(other place) bool {
	return len(p.segments) <= len(other.segments) && slices.Equal(p.segments, other.segments[:len(p.segments)])
}

// related reports whether one of the two places contains the other.
func (p place) related(other place) bool { return p.contains(other) || other.contains(p) }

// wish is a request over the test tree.
type wish struct {
	reads, writes []place
}

func (w wish) request() locks.Request {
	var request locks.Request
	for _, p := range w.reads {
		request.Reads = append(request.Reads, p.path)
	}
	for _, p := range w.writes {
		request.Writes = append(request.Writes, p.path)
	}
	return request
}

func (w wish) String() string {
	var words []string
	for _, p := range w.reads {
		words = append(words, fmt.Sprintf("R(%s)", p.path))
	}
	for _, p := range w.writes {
		words = append(words, fmt.Sprintf("W(%s)", p.path))
	}
	return strings.Join(words, " ")
}

// mustExclude is the rule of lineage: W(p) excludes R and W on every ancestor and descendant of p
// and on p.
func (w wish) mustExclude(other wish) bool {
	return anyRelated(w.writes, other.writes) || anyRelated(w.writes, other.reads) || anyRelated(w.reads, other.writes)
}

// mayExclude is the same rule as the four modes can express it: a place that is read, and below
// which the same wish writes, counts as written.
func (w wish) mayExclude(other wish) bool { return w.widened().mustExclude(other.widened()) }

func (w wish) widened() wish {
	wide := wish{reads: w.reads, writes: slices.Clone(w.writes)}
	for _, p := range w.reads {
		if slices.ContainsFunc(w.writes, p.contains) {
			wide.writes = append(wide.writes, p)
		}
	}
	return wide
}

func anyRelated(some, others []place) bool {
	return slices.ContainsFunc(some, func(p place) bool { return slices.ContainsFunc(others, p.related) })
}

// wishes returns every wish with one or two places, each read or written.
func wishes() []wish {
	var single []wish
	for _, p := range tree() {
		single = append(single, wish{reads: []place{p}}, wish{writes: []place{p}})
	}
	all := slices.Clone(single)
	for i, a := range single {
		for _, b := range single[i+1:] {
			all = append(all, wish{slices.Concat(a.reads, b.reads), slices.Concat(a.writes, b.writes)})
		}
	}
	return all
}
