package console

import (
	"fmt"
	"strconv"
	"strings"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"

	"moorage/internal/term"
	"moorage/management/client"
)

// plotBar is a bar of a plot.
type plotBar struct {
	label string
	count int64
}

// Sizes of a plot of bars, in pixels.
const (
	barStep, barWidth = 72, 56
	barsHeight        = 64
	barText           = 16 // the height of a line of text
)

// barPlot returns counts as bars under a heading, with the numbers as a table. noun is what is
// counted.
func barPlot(title, noun string, bars []plotBar) g.Node {
	if len(bars) == 0 {
		return nil
	}
	var most int64 = 1
	for _, bar := range bars {
		most = max(most, bar.count)
	}
	list := grid{label: title, plain: true, columns: titled("Class", "#"+noun)}
	drawn := g.Group{}
	for i, bar := range bars {
		high := int(bar.count * barsHeight / most)
		if bar.count > 0 {
			high = max(high, 1)
		}
		left, top := i*barStep, barText+barsHeight-high
		word := func(y int, words string) g.Node {
			return g.El("text", g.Attr("x", strconv.Itoa(left+barWidth/2)), g.Attr("y", strconv.Itoa(y)),
				g.Attr("text-anchor", "middle"), g.Text(words))
		}
		drawn = append(drawn,
			g.El("rect", h.Class("lane0"), g.Attr("x", strconv.Itoa(left)), g.Attr("y", strconv.Itoa(top)),
				h.Width(strconv.Itoa(barWidth)), h.Height(strconv.Itoa(high))),
			word(top-4, term.Count(bar.count)), word(barText+barsHeight+barText, bar.label))
		list.rows = append(list.rows, []cell{plain(g.Text(bar.label)), plain(number(&bar.count))})
	}
	width, height := len(bars)*barStep, barsHeight+2*barText+4
	return g.Group{
		h.H3(g.Text(title)),
		h.SVG(h.Class("plot bars"), g.Attr("viewBox", fmt.Sprintf("0 0 %d %d", width, height)),
			h.Width(strconv.Itoa(width)), h.Height(strconv.Itoa(height)), h.Role("img"),
			g.El("title", g.Text(title)),
			g.El("desc", g.Text(fmt.Sprintf("%d classes; the largest has %d", len(bars), most))), drawn),
		h.Details(h.Summary(g.Text("As a table")), list.node()),
	}
}

// sizeBars returns classes of sizes as bars.
func sizeBars(classes []client.SizeClass) (bars []plotBar) {
	var from int64
	for _, class := range classes {
		label := spanLabel(term.Size(from), term.Size(class.Below))
		switch {
		case class.Below == 0:
			label = "≥ " + term.Size(from)
		case from == 0:
			label = "< " + term.Size(class.Below)
		}
		from = class.Below
		bars = append(bars, plotBar{label, class.Files})
	}
	return bars
}

// countBars returns classes of counts as bars.
func countBars(classes []client.CountClass) (bars []plotBar) {
	var from int64
	for _, class := range classes {
		label := spanLabel(term.Count(from), term.Count(class.Below))
		if class.Below <= countsExact {
			label = term.Count(from) + "–" + term.Count(class.Below-1)
		}
		switch {
		case class.Below == 0:
			label = "≥ " + term.Count(from)
		case class.Below-1 == max(from, 1):
			label = term.Count(class.Below - 1)
		case from == 0:
			label = "< " + term.Count(class.Below)
		}
		from = class.Below
		bars = append(bars, plotBar{label, class.Count})
	}
	return bars
}

// countsExact is the largest bound of a class of counts whose label has the last count in it.
// Labels of larger classes have the bound.
const countsExact = 1000

// spanLabel returns the label of a class from two numbers with their units. It has the unit once if
// both have the same.
func spanLabel(from, to string) string {
	digits := strings.TrimRight(from, " kMGTPEB")
	if unit := from[len(digits):]; unit != "" && strings.TrimRight(to, " kMGTPEB")+unit == to {
		from = digits
	}
	return from + "–" + to
}
