package console

import (
	"strings"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"
)

// diffLinesMax bounds the lines of each of two texts that are compared: the comparison takes the
// product of both in memory and time.
const diffLinesMax = 500

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

// diffList returns lines that differ, folded up; nil for none.
func diffList(lines []diffLine) g.Node {
	if len(lines) == 0 {
		return nil
	}
	return h.Details(h.Summary(g.Text("What it changed")), diffLines(lines))
}
