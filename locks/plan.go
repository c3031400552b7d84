package locks

import (
	"fmt"
	"slices"
)

// Mode says what a lock on a path allows and excludes. Its bits are chosen so that the least mode
// that includes two others is their union.
type Mode uint8

// The modes; the package comment has their matrix. The zero Mode is no lock.
const (
	RA Mode = 0b001      // something below is read
	R  Mode = 0b010 | RA // the subtree is read
	WA Mode = 0b100 | RA // something below is written
	W  Mode = R | WA     // the subtree is written
)

// Modes returns every mode, in the order of the matrix.
func Modes() []Mode { return []Mode{RA, R, WA, W} }

// Compatible tells whether two operations may hold m and other on one path at once.
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

// coversSubtree tells whether who holds m needs no lock on anything below.
func (m Mode) coversSubtree() bool { return m == R || m == W }

// modeSet has bit 1<<m for each mode m in it.
type modeSet uint8

func setOf(m Mode) modeSet { return 1 << m }

// conflicts lists for each mode those that it excludes.
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

// Plan returns the locks that request needs, in the order in which every manager takes them: by path, so
// ancestors first. Each path occurs once, in the least mode that includes all that the request
// implies for it; what lies below a path in mode R or W is left out, because that mode covers it. A
// request with a zero Path is a mistake of the programmer, and panics.
func Plan(request Request) []Grant {
	const aboveUsual = 2
	modes := make(map[Path]Mode, len(request.Reads)+len(request.Writes)+aboveUsual)
	add := func(path Path, own, above Mode) {
		if path.IsZero() {
			panic("locks: request for the zero Path")
		}
		for ancestor := range path.Ancestors() {
			modes[ancestor] |= above
		}
		modes[path] |= own
	}
	for _, path := range request.Reads {
		add(path, R, RA)
	}
	for _, path := range request.Writes {
		add(path, W, WA)
	}

	plan := make([]Grant, 0, len(modes))
	for path, mode := range modes {
		plan = append(plan, Grant{path, mode})
	}
	slices.SortFunc(plan, func(a, b Grant) int { return a.Path.Compare(b.Path) })

	// A parent comes before its children, so it hands its cover on to them.
	uncovered := plan[:0]
	for _, grant := range plan {
		if cover := modes[grant.Path.Parent()]; cover.coversSubtree() {
			modes[grant.Path] = cover
			continue
		}
		uncovered = append(uncovered, grant)
	}
	return uncovered
}
