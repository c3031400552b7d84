package console

import (
	"slices"
	"strconv"
	"strings"
	"time"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"

	"moorage"
	"moorage/internal/term"
)

// text returns a text from a stranger. Control characters, and characters that change the order of
// others, are escaped.
func text(s string) g.Node { return g.Text(term.Clean(s)) }

// name returns a name from a stranger, whose direction does not affect the text around it.
func name(s string) g.Node { return g.El("bdi", text(s)) }

// mono returns a text from a stranger in the font of code.
func mono(s string) g.Node { return h.Code(text(s)) }

// copied is like mono, with a button that copies the text, if scripts run.
func copied(s string) g.Node { return h.Span(h.Class("copied"), h.Code(h.Data("copy", ""), text(s))) }

// copiedPath is like copied, for a location. Browsers may break it after each slash.
func copiedPath(location string) g.Node {
	parts := g.Group{}
	for _, part := range strings.SplitAfter(location, "/") {
		parts = append(parts, text(part), h.Wbr())
	}
	return h.Span(h.Class("copied"), h.Code(h.Data("copy", ""), parts))
}

// listing returns lines of code with a button that copies them, if scripts run.
func listing(lines []string) g.Node {
	clean := make([]string, len(lines))
	for i, line := range lines {
		clean[i] = term.Clean(strings.ReplaceAll(line, "\t", "    "))
	}
	return h.Pre(h.TabIndex("0"), h.Code(h.Data("copy", ""), g.Text(strings.Join(clean, "\n"))))
}

// listingOf returns a text of several lines.
func listingOf(s string) g.Node {
	return listing(strings.Split(strings.ReplaceAll(s, "\r\n", "\n"), "\n"))
}

// shellLine is a command line for a shell, for visitors to copy. Only command makes one.
type shellLine struct{ text string }

// command returns the line that runs a program with arguments. It quotes each word, because words
// can be names from strangers.
func command(words ...string) shellLine {
	quoted := make([]string, len(words))
	for i, word := range words {
		quoted[i] = moorage.ShellWord(word)
	}
	return shellLine{strings.Join(quoted, " ")}
}

// node returns the line with a button that copies it, if scripts run.
func (l shellLine) node() g.Node { return listing([]string{l.text}) }

// ago returns how long ago t was, with the exact time when the pointer rests on it.
func ago(now, t time.Time) g.Node {
	if t.IsZero() {
		return dash()
	}
	utc := t.UTC()
	return h.Time(h.DateTime(utc.Format(time.RFC3339)), h.Title(utc.Format("2006-01-02 15:04:05")+" UTC"),
		g.Text(term.Ago(now.Sub(t), t)))
}

// agoAt is like ago, with the exact time beside it. The date is left out if it is today's.
func agoAt(now, t time.Time) g.Node {
	if t.IsZero() {
		return dash()
	}
	layout := "15:04:05 UTC"
	if utc := t.UTC(); utc.Truncate(24*time.Hour) != now.UTC().Truncate(24*time.Hour) {
		layout = "2006-01-02 15:04:05 UTC"
	}
	return g.Group{ago(now, t), g.Text(" "), h.Span(h.Class("faint exact"), g.Text(t.UTC().Format(layout)))}
}

// exact returns a time in the future, such as the end of a key.
func exact(t time.Time) g.Node {
	utc := t.UTC()
	return h.Time(h.DateTime(utc.Format(time.RFC3339)), g.Text(utc.Format("2006-01-02 15:04 UTC")))
}

// agoOf is ago of a time that may be missing.
func agoOf(now time.Time, t *time.Time) g.Node {
	if t == nil {
		return dash()
	}
	return ago(now, *t)
}

// dash stands for a value that is not known.
func dash() g.Node { return h.Span(h.Class("faint"), g.Text("–")) }

// grouped returns a number with a comma before every group of three digits.
func grouped(n int64) string {
	digits := strconv.FormatInt(n, 10)
	sign := ""
	if n < 0 {
		sign, digits = "-", digits[1:]
	}
	var b strings.Builder
	for i, digit := range digits {
		if i > 0 && (len(digits)-i)%3 == 0 {
			b.WriteByte(',')
		}
		b.WriteRune(digit)
	}
	return sign + b.String()
}

// exactMax is the largest number that pages show with all its digits.
const exactMax = 9_999_999

// number returns a number that may be unknown.
func number(n *int64) g.Node {
	switch {
	case n == nil || *n < 0:
		return dash()
	case *n <= exactMax:
		return g.Text(grouped(*n))
	}
	return h.Span(h.Title(grouped(*n)), g.Text(term.Count(*n)))
}

// size returns a number of bytes that may be unknown.
func size(n *int64) g.Node {
	if n == nil || *n < 0 {
		return dash()
	}
	return h.Span(h.Title(grouped(*n)+" bytes"), g.Text(term.Size(*n)))
}

// badge returns a short word in a frame. look is good, warn, bad, or empty.
func badge(look, word string) g.Node {
	class := "badge"
	if look != "" {
		class += " " + look
	}
	return h.Span(h.Class(class), text(word))
}

// column is a column of a table.
type column struct {
	title string
	class string // num for numbers, wide for the one that takes the room
}

// titled returns plain columns. A title that begins with # is that of numbers.
func titled(titles ...string) []column {
	made := make([]column, len(titles))
	for i, title := range titles {
		made[i].title = title
		if before, isNumber := strings.CutPrefix(title, "#"); isNumber {
			made[i] = column{before, "num"}
		}
	}
	return made
}

// cell is a cell of a table. order is what scripts sort by; empty: the text.
type cell struct {
	node  g.Node
	order string
}

// plain returns a cell that is sorted by its text.
func plain(node g.Node) cell { return cell{node: node} }

// numeric returns a cell that is sorted by a number; unknown numbers are the smallest.
func numeric(node g.Node, n *int64) cell {
	if n == nil {
		return cell{node, "-1"}
	}
	return cell{node, strconv.FormatInt(*n, 10)}
}

// timed returns a cell that is sorted by a time.
func timed(now time.Time, t *time.Time) cell {
	if t == nil || t.IsZero() {
		return cell{dash(), "0"}
	}
	return cell{ago(now, *t), strconv.FormatInt(t.UnixMilli(), 10)}
}

// grid is a table of data.
type grid struct {
	label   string // what the table has, for readers that do not see it
	columns []column
	rows    [][]cell
	plain   bool // scripts neither sort nor filter it
	stacks  bool // on narrow screens each row is a list of its cells
}

// without returns the table without a column.
func (t grid) without(title string) grid {
	at := slices.IndexFunc(t.columns, func(c column) bool { return c.title == title })
	t.columns = slices.Delete(slices.Clone(t.columns), at, at+1)
	rows := make([][]cell, len(t.rows))
	for i, row := range t.rows {
		rows[i] = slices.Delete(slices.Clone(row), at, at+1)
	}
	t.rows = rows
	return t
}

// node returns the table.
func (t grid) node() g.Node {
	head := g.Map(t.columns, func(c column) g.Node {
		title := text(c.title)
		if c.title == "" {
			title = h.Span(h.Class("hidden"), g.Text("Actions"))
		}
		return h.Th(h.Scope("col"), g.If(c.class != "", h.Class(c.class)), title)
	})
	rows := make(g.Group, len(t.rows))
	for i, row := range t.rows {
		cells := make(g.Group, len(row))
		for j, each := range row {
			class, title := "", ""
			if j < len(t.columns) {
				class, title = t.columns[j].class, t.columns[j].title
			}
			cells[j] = h.Td(g.If(class != "", h.Class(class)),
				g.If(t.stacks && title != "", h.Data("title", term.Clean(title))),
				g.If(each.order != "", h.Data("order", term.Clean(each.order))), each.node)
		}
		rows[i] = h.Tr(cells)
	}
	return h.Div(h.Class("scroll"), h.Role("region"), h.Aria("label", term.Clean(t.label)), h.TabIndex("0"),
		h.Table(g.If(t.stacks, h.Class("stacks")), g.If(!t.plain, h.Data("grid", "")),
			h.THead(h.Tr(head)), h.TBody(rows)))
}

// panel returns a part of a page under a heading.
func panel(title string, children ...g.Node) g.Node {
	return h.Section(h.Class("panel"), h.H2(text(title)), g.Group(children))
}

// empty returns the text of a list without rows, with the command that fills it. The zero value of
// fill means that there is no such command.
func empty(sentence string, fill shellLine) g.Node {
	return h.Div(h.Class("empty"), h.P(g.Text(sentence)),
		g.Iff(fill.text != "", func() g.Node { return h.P(copied(fill.text)) }))
}

// fact is a line of a list of facts.
type fact struct {
	title string
	value g.Node
}

// facts returns a list of facts.
func facts(all ...fact) g.Node {
	return h.Dl(h.Class("facts"), g.Map(all, func(f fact) g.Node {
		return h.Div(h.Dt(g.Text(f.title)), h.Dd(f.value))
	}))
}

// icon returns a small picture for a kind of object. The word beside it has the meaning.
func icon(kind string) g.Node {
	return h.SVG(h.Class("icon"), g.Attr("viewBox", "0 0 16 16"), h.Width("16"), h.Height("16"),
		h.Aria("hidden", "true"),
		g.El("path", g.Attr("d", iconPath(kind)), g.Attr("fill", "none"), g.Attr("stroke", "currentColor"),
			g.Attr("stroke-width", "1.3"), g.Attr("stroke-linejoin", "round"), g.Attr("stroke-linecap", "round")))
}

// iconPath returns the lines of an icon.
func iconPath(kind string) string {
	switch kind {
	case "warehouse":
		return "M1.8 6.5 8 2.2l6.2 4.3v7.3H1.8zM5 13.8V9h6v4.8M5 11.4h6"
	case "namespace":
		return "M1.8 4a1 1 0 0 1 1-1h3.4l1.6 2h5.4a1 1 0 0 1 1 1v6.4a1 1 0 0 1-1 1H2.8a1 1 0 0 1-1-1z"
	case "table":
		return "M2 3h12v10H2zM2 6.4h12M2 9.7h12M6.4 6.4V13"
	case "view":
		return "M1.4 8S3.8 3.6 8 3.6 14.6 8 14.6 8 12.2 12.4 8 12.4 1.4 8 1.4 8zM10 8a2 2 0 1 1-4 0 2 2 0 0 1 4 0z"
	case "search":
		return "M11.2 7a4.2 4.2 0 1 1-8.4 0 4.2 4.2 0 0 1 8.4 0zM10.2 10.2l3.6 3.6"
	case "theme":
		return "M8 2.2a5.8 5.8 0 1 0 0 11.6zM8 2.2a5.8 5.8 0 0 1 0 11.6"
	}
	return "M8 3v10M3 8h10"
}
