package locks

import (
	"fmt"
	"slices"
)

// Mode decides what a lock on a path allows and excludes. Its bits are chosen so that the weakest
// mode that includes two others is their union.
type Mode uint8

// The modes; the package comment has their matrix. The zero Mode is not a lock.
const (
	RA Mode = 0b001      // something below the path is read
	R  Mode = 0b010 | RA // the subtree is read
	WA Mode = 0b100 | RA // something below the path is written
	W  Mode = R | WA     // the subtree is written
)

// Compatible reports whether two operations may hold m and other on one path at once.
func (m Mode) Compatible(other Mode) bool { return conflicts[m]&setOf(other) == 0 }

// String returns the name of the mode.
func (m Mode) String() string {
	switch m {
	case RA:
		return "RA"
	case R:
		return "R"
	case WA:
		return "WA"
	case W:
		return "W"
	}
	return fmt.Sprintf("mode %d", uint8(m))
}

// coversSubtree reports whether a holder of m needs no locks below the path.
func (m Mode) coversSubtree() bool { return m == R || m == W }

// modeSet has bit 1<<m for each mode m in it.
type modeSet uint8

func setOf(m Mode) modeSet { return 1 << m }

// conflicts lists the modes that each mode excludes.
var conflicts = [W + 1]modeSet{
	RA: setOf(W),
	R:  setOf(WA) | setOf(W),
	WA: setOf(R) | setOf(W),
	W:  setOf(RA) | setOf(R) | setOf(WA) | setOf(W),
}

// Grant is one lock of a plan.
type Grant struct {
	Path Path
	Mode Mode
}

// String returns mode and path, for logs.
func (g Grant) String() string { return g.Mode.String() + " " + g.Path.String() }

// Plan returns the locks that request needs, in the order in which every manager takes them: by
// path, so ancestors first. Each path occurs once, in the weakest mode that includes all modes that
// the request implies for it. Plan leaves out paths below a path in mode R or W, because that mode
// covers them. A zero Path in a request is a programming error, and Plan panics.
func Plan(request Request) []Grant {
	const aboveUsual = 2
	plan := make([]Grant, 0, len(request.Reads)+len(request.Writes)+aboveUsual)
	add := func(paths []Path, own, above Mode) {
		var parent Path // the previous path
		for _, path := range paths {
			if path.IsZero() {
				panic("locks: request for the zero Path")
			}
			if path.Parent() != parent {
				parent = path.Parent()
				for ancestor := range path.Ancestors() {
					plan = append(plan, Grant{ancestor, above})
				}
			}
			plan = append(plan, Grant{path, own})
		}
	}
	add(request.Reads, R, RA)
	add(request.Writes, W, WA)
	plan = sorted(plan)

	isCovered := func(grant Grant) bool {
		for ancestor := range grant.Path.Ancestors() {
			i, found := slices.BinarySearchFunc(plan, ancestor,
				func(g Grant, path Path) int { return g.Path.Compare(path) })
			if found && plan[i].Mode.coversSubtree() {
				return true
			}
		}
		return false
	}
	if !slices.ContainsFunc(plan, isCovered) { // usually
		return plan
	}
	var uncovered []Grant
	for _, grant := range plan {
		if !isCovered(grant) {
			uncovered = append(uncovered, grant)
		}
	}
	return uncovered
}

// sorted returns grants in the order of their paths, one for each path, in the weakest mode that
// includes all of its modes.
func sorted(grants []Grant) []Grant {
	slices.SortFunc(grants, func(a, b Grant) int { return a.Path.Compare(b.Path) })
	single := grants[:0]
	for _, grant := range grants {
		if last := len(single) - 1; last >= 0 && single[last].Path == grant.Path {
			single[last].Mode |= grant.Mode
			continue
		}
		single = append(single, grant)
	}
	return single
}
