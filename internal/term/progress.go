package term

import (
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"golang.org/x/term"
)

const (
	// redrawEvery is the time between two updates of the line on a terminal.
	redrawEvery = 200 * time.Millisecond
	// drawAfter is how long a command must run before the line appears on a terminal. Most commands
	// end sooner.
	drawAfter = time.Second
	// tellEvery is the time between two lines if there is no terminal, as in the log of a job.
	tellEvery = 10 * time.Second
	// barWidth is the width of the bar in columns.
	barWidth = 20
	// clearLine goes to the first column and erases the line. Source: ECMA-48, 8.3.41.
	clearLine = "\r\x1b[K"
)

// Progress shows the progress of a long command. On a terminal it is one line, which is redrawn and
// vanishes at the end. Elsewhere it is a new line every ten seconds. It belongs on standard error,
// so that it does not mix with the output of the command. A Progress is safe for concurrent use.
type Progress struct {
	what       string
	total      int
	isTerminal bool
	stop       func()
	shown      sync.WaitGroup

	mu      sync.Mutex // guards the fields below, and the outputs while they are written; leaf
	out     io.Writer
	done    int
	isDrawn bool // the line is on the terminal
}

// StartProgress starts to show progress on out. what names the activity. total is its number of
// steps, or 0 if that is not known. environ is the environment of the process. The caller must call
// End.
func StartProgress(out io.Writer, environ []string, what string, total int) *Progress {
	file, ok := out.(*os.File)
	isTerminal := ok && term.IsTerminal(int(file.Fd())) && !isDumb(environ)
	return startProgress(out, what, total, isTerminal)
}

func startProgress(out io.Writer, what string, total int, isTerminal bool) *Progress {
	stopped := make(chan struct{})
	p := &Progress{
		out: out, what: what, total: total, isTerminal: isTerminal,
		stop: sync.OnceFunc(func() { close(stopped) }),
	}
	p.shown.Go(func() { p.show(stopped) })
	return p
}

// Add counts steps as done.
func (p *Progress) Add(steps int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.done += steps
}

// Over returns a writer to out, which may be the same terminal. The line is cleared before each
// write, and drawn again later.
func (p *Progress) Over(out io.Writer) io.Writer { return over{p, out} }

// End removes the line. Nothing is written after End returns. End may be called again.
func (p *Progress) End() {
	p.stop()
	p.shown.Wait()
}

// show draws the line repeatedly until stopped is closed.
func (p *Progress) show(stopped <-chan struct{}) {
	every := tellEvery
	if p.isTerminal {
		every = redrawEvery
	}
	ticks := time.NewTicker(every)
	defer ticks.Stop()
	for elapsed := every; ; elapsed += every {
		select {
		case <-stopped:
			p.mu.Lock()
			defer p.mu.Unlock()
			p.clear()
			return
		case <-ticks.C:
			p.mu.Lock()
			p.draw(elapsed)
			p.mu.Unlock()
		}
	}
}

// draw prints the line. mu must be held. Errors are ignored, because they do not matter to the
// command.
func (p *Progress) draw(elapsed time.Duration) {
	switch {
	case !p.isTerminal:
		fmt.Fprintln(p.out, p.line(elapsed))
	case elapsed >= drawAfter:
		fmt.Fprint(p.out, clearLine+p.line(elapsed))
		p.isDrawn = true
	}
}

// clear removes the line from the terminal. mu must be held.
func (p *Progress) clear() {
	if p.isDrawn {
		fmt.Fprint(p.out, clearLine)
		p.isDrawn = false
	}
}

// line returns the progress as text: "undrop [=====               ] 120 of 500, 12 s".
func (p *Progress) line(elapsed time.Duration) string {
	seconds := int(elapsed / time.Second)
	switch {
	case p.total == 0 && p.done == 0:
		return fmt.Sprintf("%s: %d s", p.what, seconds)
	case p.total == 0:
		return fmt.Sprintf("%s: %d, %d s", p.what, p.done, seconds)
	case !p.isTerminal:
		return fmt.Sprintf("%s: %d of %d, %d s", p.what, p.done, p.total, seconds)
	}
	full := min(p.done, p.total) * barWidth / p.total
	return fmt.Sprintf("%s [%s%s] %d of %d, %d s", p.what, strings.Repeat("=", full),
		strings.Repeat(" ", barWidth-full), p.done, p.total, seconds)
}

// over is the result of Progress.Over.
type over struct {
	progress *Progress
	out      io.Writer
}

// Write implements io.Writer.
func (o over) Write(text []byte) (int, error) {
	o.progress.mu.Lock()
	defer o.progress.mu.Unlock()
	o.progress.clear()
	return o.out.Write(text)
}
