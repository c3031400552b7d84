package term_test

import (
	"bytes"
	"testing"
	"time"

	"moorage/internal/term"
)

var now = time.Date(2026, 11, 27, 3, 30, 0, 0, time.UTC)

// TestTable checks that cells are aligned, and that rows are cut on a terminal but not elsewhere.
func TestTable(t *testing.T) {
	t.Parallel()
	rows := [][]term.Cell{
		{term.Text("table"), term.Text("orders"), term.Number("50.1M"), term.Text("protected by namespace sales")},
		{term.Text("view"), term.Text("日本"), term.Number("-"), term.Text("")},
		{term.Text("table"), term.Text("a\x1b[31m\nb"), term.Number("4"), term.Text("x")},
	}
	for _, c := range []struct {
		width int
		want  string
	}{
		{0, "KIND   NAME           ROWS  NOTE\n" +
			"table  orders        50.1M  protected by namespace sales\n" +
			"view   日本              -\n" +
			"table  a\\x1b[31m\\nb      4  x\n"},
		{40, "KIND   NAME           ROWS  NOTE\n" +
			"table  orders        50.1M  protected b…\n" +
			"view   日本              -\n" +
			"table  a\\x1b[31m\\nb      4  x\n"},
		{10, "KIND   NA…\ntable  or…\nview   日…\ntable  a\\…\n"},
	} {
		var out bytes.Buffer
		o := &term.Output{Writer: &out, Width: c.width}
		if err := o.Table([]string{"KIND", "NAME", "ROWS", "NOTE"}, rows); err != nil {
			t.Fatal(err)
		}
		if out.String() != c.want {
			t.Errorf("width %d:\n%q\nwant\n%q", c.width, out.String(), c.want)
		}
	}
}

// TestColours checks that neither a pipe nor a terminal with NO_COLOR gets colours by default.
func TestColours(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	if o := term.To(&out, nil, term.Auto, now); o.IsColoured || o.Paint(term.Bad, "x") != "x" {
		t.Error("a pipe gets colours")
	}
	if o := term.To(&out, []string{"NO_COLOR=1"}, term.Always, now); o.Paint(term.Bad, "x") != "\x1b[31mx\x1b[0m" {
		t.Error("--color always gets none")
	}
}

// TestWords tests times, sizes and counts in words.
func TestWords(t *testing.T) {
	t.Parallel()
	terminal, pipe := &term.Output{IsTerminal: true, Now: now}, &term.Output{Now: now}
	for age, want := range map[time.Duration]string{
		5 * time.Second: "5 s ago", 22 * time.Minute: "22 min ago", 47 * time.Hour: "47 h ago",
		5 * 24 * time.Hour: "5 d ago", 40 * 24 * time.Hour: "2026-10-18", -2 * time.Hour: "in 2 h",
	} {
		if got := terminal.Time(now.Add(-age)); got != want {
			t.Errorf("%v: got %q, want %q", age, got, want)
		}
	}
	if got := pipe.Time(now.Add(-time.Hour)); got != "2026-11-27T02:30:00Z" {
		t.Errorf("in a pipe: %s", got)
	}
	if terminal.Time(time.Time{}) != "-" {
		t.Error("no time is not -")
	}
	for n, want := range map[int64]string{-1: "-", 0: "0", 999: "999", 1000: "1k", 1440: "1.4k", 50_100_000: "50.1M", 999_700: "1.0M"} {
		if got := term.Count(n); got != want {
			t.Errorf("count %d: got %q, want %q", n, got, want)
		}
	}
	for n, want := range map[int64]string{812: "812 B", 310_000_000: "310 MB", 81_200_000_000: "81.2 GB", -1: "-"} {
		if got := term.Size(n); got != want {
			t.Errorf("size %d: got %q, want %q", n, got, want)
		}
	}
	if got := term.Clean("a\u202eb\tc é"); got != `a\u202eb\tc é` {
		t.Errorf("clean: %q", got)
	}
}
