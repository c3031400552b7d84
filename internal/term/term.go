// Package term prints the output of commands: tables, times and sizes. The output is in colour if a
// person reads it, and plain if a program does.
//
// A terminal gets lines that are cut to its width, relative times and colours. A pipe or a file
// gets whole lines and times in RFC 3339, and never a colour. Colour never carries a meaning alone.
// Names can come from untrusted clients, so control characters in them are escaped.
package term

import (
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"golang.org/x/term"
)

// Style is the appearance of a text.
type Style string

// The styles, as SGR codes. Source: ECMA-48, 8.3.117.
const (
	Plain   Style = ""
	Strong  Style = "1"
	Faint   Style = "2"
	Bad     Style = "31" // red
	Good    Style = "32" // green
	Warning Style = "33" // yellow
	Name    Style = "36" // cyan
	Changed Style = "35" // magenta
)

// When selects when colours are used.
type When string

// The values of --color.
const (
	Auto   When = "auto" // on a terminal, unless NO_COLOR is set or TERM is dumb
	Always When = "always"
	Never  When = "never"
)

// Output is where a command prints. It is for one goroutine.
type Output struct {
	io.Writer
	// Width is the number of columns of the terminal; 0 if lines are not cut.
	Width int
	// IsTerminal is true if the output goes to a terminal.
	IsTerminal bool
	// IsColoured is true if Paint adds colours.
	IsColoured bool
	// Now is the time to which Time refers.
	Now time.Time
}

// To returns an Output for w. environ is the environment of the process, as KEY=value. now becomes
// Output.Now.
func To(w io.Writer, environ []string, when When, now time.Time) *Output {
	o := &Output{Writer: w, Now: now}
	if file, ok := w.(*os.File); ok && term.IsTerminal(int(file.Fd())) {
		o.IsTerminal = true
		if width, _, err := term.GetSize(int(file.Fd())); err == nil {
			o.Width = width
		}
	}
	o.IsColoured = when == Always || when != Never && o.IsTerminal && allowsColour(environ)
	return o
}

// allowsColour reports whether the environment permits colours. Source: no-color.org.
func allowsColour(environ []string) bool {
	for _, variable := range environ {
		name, value, _ := strings.Cut(variable, "=")
		if name == "NO_COLOR" && value != "" {
			return false
		}
	}
	return !isDumb(environ)
}

// isDumb reports whether the terminal does not understand control sequences.
func isDumb(environ []string) bool { return slices.Contains(environ, "TERM=dumb") }

// Paint returns text in a style, or text itself if the output has no colours.
func (o *Output) Paint(style Style, text string) string {
	if !o.IsColoured || style == Plain || text == "" {
		return text
	}
	return "\x1b[" + string(style) + "m" + text + "\x1b[0m"
}

// Time returns a time for people on a terminal: "22 min ago", or the date if the time is more than
// a month ago. Elsewhere it returns RFC 3339 in UTC. For a zero time it returns "-".
func (o *Output) Time(t time.Time) string {
	switch {
	case t.IsZero():
		return "-"
	case !o.IsTerminal:
		return t.UTC().Format(time.RFC3339)
	}
	return Ago(o.Now.Sub(t), t)
}

// Ago returns in words how long ago t was, given its age. If that is more than 30 days, it returns
// the date.
func Ago(age time.Duration, t time.Time) string {
	const day, month = 24 * time.Hour, 30 * 24 * time.Hour
	ahead := ""
	if age < 0 {
		age, ahead = -age, "in "
	}
	var text string
	switch {
	case age < time.Minute:
		text = fmt.Sprintf("%d s", age/time.Second)
	case age < time.Hour:
		text = fmt.Sprintf("%d min", age/time.Minute)
	case age < 2*day:
		text = fmt.Sprintf("%d h", age/time.Hour)
	case age < month:
		text = fmt.Sprintf("%d d", age/day)
	default:
		return t.UTC().Format(time.DateOnly)
	}
	if ahead != "" {
		return ahead + text
	}
	return text + " ago"
}

// Size returns a number of bytes in units of 1,000: "812 B", "1.4 kB", "81 GB". For a negative
// number it returns "-".
func Size(bytes int64) string {
	return inUnits(bytes, "B", []string{"kB", "MB", "GB", "TB", "PB", "EB"}, " ")
}

// Count returns a number in units of 1,000: "812", "1.4k", "50.1M". For a negative number it
// returns "-".
func Count(n int64) string { return inUnits(n, "", []string{"k", "M", "G", "T", "P", "E"}, "") }

func inUnits(n int64, one string, units []string, space string) string {
	switch {
	case n < 0:
		return "-"
	case n < 1000:
		return strings.TrimSpace(strconv.FormatInt(n, 10) + space + one)
	}
	value, unit := float64(n)/1000, 0
	for ; value >= 999.5 && unit < len(units)-1; unit++ {
		value /= 1000
	}
	format := "%.1f"
	if value >= 99.95 || value == float64(int64(value)) {
		format = "%.0f"
	}
	return fmt.Sprintf(format, value) + space + units[unit]
}

// Clean escapes control characters, and characters that change the text direction, as in a Go
// string.
func Clean(text string) string {
	isClean := func(r rune) bool { return unicode.IsPrint(r) || r == ' ' }
	if strings.IndexFunc(text, func(r rune) bool { return !isClean(r) }) < 0 {
		return text
	}
	var b strings.Builder
	for _, r := range text {
		if isClean(r) {
			b.WriteRune(r)
		} else {
			b.WriteString(strings.Trim(strconv.QuoteRuneToASCII(r), "'"))
		}
	}
	return b.String()
}
