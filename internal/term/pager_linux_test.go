package term

import (
	"fmt"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// openTerminal returns both ends of a new terminal with the given number of rows. Text written to
// terminal can be read from screen.
func openTerminal(t *testing.T, rows int) (screen, terminal *os.File) {
	t.Helper()
	master, err := unix.Open("/dev/ptmx", unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	screen = os.NewFile(uintptr(master), "/dev/ptmx")
	t.Cleanup(func() { screen.Close() })
	if err := unix.IoctlSetPointerInt(master, unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	number, err := unix.IoctlGetInt(master, unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.IoctlSetWinsize(master, unix.TIOCSWINSZ, &unix.Winsize{Row: uint16(rows), Col: 80}); err != nil {
		t.Fatal(err)
	}
	terminal, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	return screen, terminal
}

// A text that is longer than the terminal goes to the pager: $MOORAGE_PAGER, or else $PAGER. A
// shorter text is printed, and so is any text if there is no pager.
func TestPager(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		environ []string
		lines   int
		paged   bool
	}{
		{[]string{"PAGER=false", "MOORAGE_PAGER=sed s/^/paged/"}, 9, true},
		{[]string{"PAGER=sed s/^/paged/"}, 9, true},
		{[]string{"PAGER=sed s/^/paged/"}, 2, false},
		{[]string{"PAGER=sed s/^/paged/", "MOORAGE_PAGER="}, 9, false},
		{[]string{"PAGER=/no/such/program"}, 9, false},
	} {
		screen, terminal := openTerminal(t, 5)
		err := To(terminal, nil, Auto, time.Time{}).Paged(c.environ, func(out *Output) error {
			_, err := io.WriteString(out, strings.Repeat("line\n", c.lines))
			return err
		})
		terminal.Close()
		shown, _ := io.ReadAll(screen) // the read ends with an error once every process has closed the terminal
		line := "line\r\n"
		if c.paged {
			line = "pagedline\r\n"
		}
		if want := strings.Repeat(line, c.lines); err != nil || string(shown) != want {
			t.Errorf("%q with %d lines: %q, %v; want %q", c.environ, c.lines, shown, err, want)
		}
	}
}
