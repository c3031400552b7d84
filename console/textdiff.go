package console

import (
	"strings"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"

	"moorage"
)

// Bounds of the texts on a page.
const (
	// diffLinesMax bounds the lines of each of two texts that are compared.
	diffLinesMax = 500
	// diffCellsMax bounds the comparisons on a page. A comparison takes the product of the lines of
	// its two texts, in memory and time.
	diffCellsMax = 1 << 20
	// textBytesMax bounds the part of a text that a page shows, and textsBytesMax all texts on it.
	textBytesMax, textsBytesMax = 32 << 10, 512 << 10
)

// textRoom is the room that a page has left for texts and their comparisons.
type textRoom struct{ bytes, cells int }

// newTextRoom returns the room of a page.
func newTextRoom() *textRoom { return &textRoom{textsBytesMax, diffCellsMax} }

// show returns a text, or its beginning with how much is left out.
func (r *textRoom) show(s string) g.Node {
	shown := s
	if most := min(textBytesMax, r.bytes); len(s) > most {
		shown = strings.ToValidUTF8(s[:most], "")
	}
	r.bytes -= len(shown)
	left := uint64(len(s) - len(shown))
	return g.Group{
		g.If(shown != "" || left == 0, h.Div(h.Class("sql"), listingOf(shown))),
		g.Iff(left > 0, func() g.Node {
			return h.P(h.Class("faint"), text(moorage.SizeOf(left)+" more are left out."))
		}),
	}
}

// change returns what a text changed in another one. It notes this if the room is too small for
// the comparison. It is nil if the texts are equal.
func (r *textRoom) change(was, is string) g.Node {
	if was == is {
		return nil
	}
	cells := (strings.Count(was, "\n") + 1) * (strings.Count(is, "\n") + 1)
	if most := min(textBytesMax, r.bytes/2); len(was) > most || len(is) > most || cells > r.cells {
		return h.P(h.Class("faint"), g.Text("What it changed is not shown: the texts are too long."))
	}
	r.cells -= cells
	r.bytes -= len(was) + len(is)
	lines := textDiff(was, is)
	if lines == nil {
		return h.P(h.Class("faint"), g.Textf("What it changed is not shown: a text has over %d lines.", diffLinesMax))
	}
	return h.Details(h.Summary(g.Text("What it changed")), diffLines(lines))
}

// textDiff returns the lines of two texts that differ, with the lines that both have around them.
// It is nil if the texts are equal or longer than diffLinesMax.
func textDiff(was, is string) (lines []diffLine) {
	a, b := textLines(was), textLines(is)
	if was == is || len(a) > diffLinesMax || len(b) > diffLinesMax {
		return nil
	}
	// common[i][j] is how many lines a[i:] and b[j:] have in common, in the same order.
	common := make([][]int, len(a)+1)
	for i := range common {
		common[i] = make([]int, len(b)+1)
	}
	for i := len(a) - 1; i >= 0; i-- {
		for j := len(b) - 1; j >= 0; j-- {
			if a[i] == b[j] {
				common[i][j] = common[i+1][j+1] + 1
			} else {
				common[i][j] = max(common[i+1][j], common[i][j+1])
			}
		}
	}
	for i, j := 0, 0; i < len(a) || j < len(b); {
		switch {
		case i < len(a) && j < len(b) && a[i] == b[j]:
			lines = append(lines, diffLine{"", mono(a[i])})
			i, j = i+1, j+1
		case j == len(b) || i < len(a) && common[i+1][j] >= common[i][j+1]:
			lines = append(lines, diffLine{"−", mono(a[i])})
			i++
		default:
			lines = append(lines, diffLine{"+", mono(b[j])})
			j++
		}
	}
	return lines
}

// textLines returns the lines of a text.
func textLines(s string) []string {
	return strings.Split(strings.ReplaceAll(strings.ReplaceAll(s, "\r\n", "\n"), "\t", "    "), "\n")
}
