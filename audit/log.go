package audit

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"moorage"
	"moorage/internal/worker"
)

// Defaults and bounds of Config.
const (
	// LinesMaxDefault is some seconds of a busy node.
	LinesMaxDefault = 10_000
	// FreeBytesMin is what the log leaves free on its disk, which the store may share.
	FreeBytesMin = 1 << 30
	// writeInterval is the longest time that a line waits in the buffer, about.
	writeInterval = time.Second
	// roomInterval is the pause between two looks at how much room the disk has.
	roomInterval = time.Second
)

// Out is where the lines go. Its methods are not called at the same time.
type Out interface {
	// Write writes whole lines. It returns how many bytes are written for good.
	Write(lines []byte) (int, error)
	// Reopen lets go of what was moved away, and begins again under the same name.
	Reopen() error
	Close() error
}

// Config is what a Log is made of. Jitter is required.
type Config struct {
	// Out takes the lines. Nil: they are not written, and only denials are remembered.
	Out Out
	// Reads says that one of so many reads that were let in is written; 1: each. 0, the default:
	// the first of a caller, an operation and an object in a minute, and then one line with the
	// number of the others.
	Reads int
	// Strict refuses requests for which there is no room (Room), where otherwise lines would go.
	Strict bool
	// LinesMax bounds the buffer. Default LinesMaxDefault.
	LinesMax int
	// Free returns how many bytes the disk of Out has left. Nil: nobody knows.
	Free func() (uint64, error)
	// Now gives the time of lines. Default time.Now.
	Now func() time.Time
	// Jitter draws the pauses of the worker. It belongs to the log from now on.
	Jitter *rand.Rand
	// Node is what the lines call this process.
	Node string
	// Logger hears when the log stops writing, and when it goes on. Default: discards.
	Logger *slog.Logger
}

// Log is an audit log. It is safe for concurrent use.
type Log struct {
	config  Config
	worker  *worker.Worker
	queue   queue
	refused refused
	sums    sums
	recent  recent
	reads   atomic.Uint64 // that were let in
	written atomic.Uint64 // lines
	trouble atomic.Pointer[string]
	reopen  atomic.Bool

	mu      sync.Mutex // guards the fields below; held over writes; queue.mu comes after it
	looked  time.Time  // when Free was asked last
	full    bool       // what it said
	telling uint64     // dropped lines that the log has told of
	batch   []byte     // reused
}

// Stats is what a Log has done. Numbers never go down.
type Stats struct {
	Written      uint64 // lines
	DroppedReads uint64 // sampled lines that went because others had no room
	DroppedLines uint64 // others
}

// New returns a log that is not started.
func New(config Config) *Log {
	if config.LinesMax <= 0 {
		config.LinesMax = LinesMaxDefault
	}
	if config.Now == nil {
		config.Now = time.Now
	}
	if config.Logger == nil {
		config.Logger = slog.New(slog.DiscardHandler)
	}
	l := &Log{config: config}
	l.worker = worker.New(worker.Config{
		Name: "audit", Run: l.run, Interval: writeInterval, Jitter: config.Jitter, Logger: config.Logger,
	})
	return l
}

// Start starts to write what is noted.
func (l *Log) Start() { l.worker.Start() }

// Close writes what was noted and closes Out. Nothing may be noted after that.
func (l *Log) Close() error {
	l.worker.Stop()
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.config.Out == nil {
		return nil
	}
	l.noteRefused(true)
	return errors.Join(l.write(), l.config.Out.Close())
}

// Note puts a line into the buffer. It does not wait. Without an Out only denials are remembered.
func (l *Log) Note(line Line) {
	if line.Time.IsZero() {
		line.Time = l.config.Now()
	}
	if line.Node == "" {
		line.Node = l.config.Node
	}
	if line.Decision != "" && line.Decision != Allowed {
		l.recent.add(line)
	}
	if l.config.Out == nil || l.isSummed(&line) {
		return
	}
	if l.queue.add(line.append(make([]byte, 0, lineBytesUsual)), line.Sampled, l.bound()) {
		l.worker.Kick()
	}
}

// isSummed reports whether line is not written itself: it counts in another one, or in none.
func (l *Log) isSummed(line *Line) bool {
	switch {
	case line.Sampled && l.config.Reads == 0:
		return l.sums.takesRead(line)
	case line.Sampled:
		return (l.reads.Add(1)-1)%uint64(l.config.Reads) != 0
	case line.Event == Decision && line.Decision != "" && line.Decision != Allowed:
		return l.sums.takesDenial(line)
	}
	return false
}

// lineBytesUsual is more than most lines have.
const lineBytesUsual = 512

// Allowed is the Decision of a line about what was let in.
const Allowed = "allow"

// bound is how many lines the queue may have; 0: any number. Of a strict log Room keeps it short.
func (l *Log) bound() int {
	if l.config.Strict {
		return 0
	}
	return l.config.LinesMax
}

// NoteRefused counts credentials that were refused: address is where they came from, reason is one
// of a few words, never a text of the client. A minute later the log has one line for each.
func (l *Log) NoteRefused(address, reason string) {
	if l.config.Out != nil {
		l.refused.add(address, reason, l.config.Now())
	}
}

// ErrNoRoom is why a strict log refuses a request. Who meets it notes nothing.
var ErrNoRoom = errors.New("the audit log takes no more lines")

// Room returns nil if a request may be carried out. A strict log that cannot write returns
// KindUnavailable, with ErrNoRoom as its cause.
func (l *Log) Room() error {
	if !l.config.Strict || l.config.Out == nil || l.queue.len() < l.config.LinesMax {
		return nil
	}
	return moorage.Errorf(moorage.KindUnavailable, "%w: %s; nothing was changed",
		ErrNoRoom, l.why("its disk is too slow"))
}

// Trouble says why the log does not write at present, and returns "" while it does.
func (l *Log) Trouble() string { return l.why("") }

func (l *Log) why(otherwise string) string {
	if why := l.trouble.Load(); why != nil {
		return *why
	}
	return otherwise
}

// Strict reports whether requests are refused while the log cannot write.
func (l *Log) Strict() bool { return l.config.Strict }

// Denials returns the lines of a request that was denied, among the last DenialsMax of this node;
// nil if there are none.
func (l *Log) Denials(requestID string) []Line { return l.recent.of(requestID) }

// Stats returns what the log has done.
func (l *Log) Stats() Stats {
	reads, lines := l.queue.dropped()
	return Stats{Written: l.written.Load(), DroppedReads: reads, DroppedLines: lines}
}

// Reopen has the file opened again under its name, as after a rename by others.
func (l *Log) Reopen() {
	l.reopen.Store(true)
	l.worker.Kick()
}

// run writes what is in the buffer.
func (l *Log) run(context.Context) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.config.Out == nil {
		return nil
	}
	if l.reopen.Swap(false) {
		if err := l.config.Out.Reopen(); err != nil {
			l.reopen.Store(true)
			l.setTrouble(fmt.Sprintf("cannot reopen it: %v", err))
			return nil
		}
	}
	l.noteRefused(false)
	if l.isFull() {
		l.setTrouble(fmt.Sprintf("its disk has less than %d MiB left", FreeBytesMin>>20))
		return nil
	}
	if err := l.write(); err != nil {
		l.setTrouble(fmt.Sprintf("cannot write: %v", err))
		return nil
	}
	l.setTrouble("")
	return nil
}

// noteRefused puts lines into the buffer for the minutes that are over, or for all. l.mu must be
// held.
func (l *Log) noteRefused(all bool) {
	now := l.config.Now()
	for _, line := range append(l.refused.take(now, all), l.sums.flush(now, all)...) {
		l.queue.add(line.append(nil), line.Sampled, l.bound())
	}
}

// isFull reports whether the disk has no room that the log may take. l.mu must be held.
func (l *Log) isFull() bool {
	now := l.config.Now()
	if l.config.Free == nil || now.Sub(l.looked) < roomInterval {
		return l.full
	}
	l.looked = now
	free, err := l.config.Free()
	l.full = err == nil && free < FreeBytesMin
	return l.full
}

// write writes all of the buffer. What it could not write stays there. l.mu must be held.
func (l *Log) write() error {
	reads, lines := l.queue.dropped()
	if gone := reads + lines; gone > l.telling {
		told := Line{Time: l.config.Now(), Event: Dropped, Count: int(gone - l.telling)}
		l.queue.add(told.append(nil), false, 0)
		l.telling = gone
	}
	for {
		batch := l.queue.batch()
		if len(batch) == 0 {
			return nil
		}
		l.batch = l.batch[:0]
		for _, each := range batch {
			l.batch = append(l.batch, each...)
		}
		n, err := l.config.Out.Write(l.batch)
		done := 0
		for _, each := range batch {
			if n -= len(each); n < 0 {
				break
			}
			done++
		}
		l.queue.drop(done)
		l.written.Add(uint64(done))
		if err != nil {
			return err
		}
	}
}

// setTrouble remembers why nothing is written, and logs a change of that.
func (l *Log) setTrouble(why string) {
	before := l.why("")
	switch {
	case why == before:
		return
	case why == "":
		l.trouble.Store(nil)
		l.config.Logger.Info("the audit log is written again")
		return
	}
	l.trouble.Store(&why)
	l.config.Logger.Error("the audit log is not written", "reason", why, "strict", l.config.Strict)
}
