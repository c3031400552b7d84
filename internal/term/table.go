package term

import (
	"bufio"
	"strings"

	"github.com/mattn/go-runewidth"
)

// Cell is one cell of a table.
type Cell struct {
	Text  string
	Style Style
	Right bool // aligned to the right, as numbers are
}

// Text is a plain cell.
func Text(text string) Cell { return Cell{Text: text} }

// Number is a cell that is aligned to the right.
func Number(text string) Cell { return Cell{Text: text, Right: true} }

// Table prints rows under a header, in columns two spaces apart. All cells of a column are as wide
// as its widest cell, but the last cell of a row gets no trailing spaces. On a terminal a row is
// cut to the width, and then ends in "…". An empty header is left out. The errors come from the
// writer.
func (o *Output) Table(header []string, rows [][]Cell) error {
	const gap = 2
	lines := rows
	if len(header) > 0 {
		head := make([]Cell, len(header))
		for i, title := range header {
			right := len(rows) > 0 && i < len(rows[0]) && rows[0][i].Right
			head[i] = Cell{Text: title, Style: Faint, Right: right}
		}
		lines = append([][]Cell{head}, rows...)
	}
	var widths []int
	for _, line := range lines {
		for i, cell := range line {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], runewidth.StringWidth(Clean(cell.Text)))
		}
	}
	out := bufio.NewWriter(o)
	for _, line := range lines {
		left := o.Width
		for last := len(line) - 1; last > 0 && line[last].Text == ""; last-- {
			line = line[:last]
		}
		for i, cell := range line {
			text := Clean(cell.Text)
			spaces := strings.Repeat(" ", widths[i]-runewidth.StringWidth(text))
			switch {
			case cell.Right:
				text = spaces + text
			case i < len(line)-1:
				text += spaces
			}
			if i > 0 {
				text = strings.Repeat(" ", gap) + text
			}
			if o.Width > 0 {
				text = runewidth.Truncate(text, left, "…")
				left -= runewidth.StringWidth(text)
			}
			_, _ = out.WriteString(o.Paint(cell.Style, text)) // Flush returns the error
			if o.Width > 0 && left <= 0 {
				break
			}
		}
		_ = out.WriteByte('\n')
	}
	return out.Flush()
}
