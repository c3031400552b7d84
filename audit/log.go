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
	// LinesMaxDefault is enough for a few seconds of a busy node.
	LinesMaxDefault = 10_000
	// FreeBytesMin is the space that the log leaves free on its disk, because the store may be on
	// the same disk.
	FreeBytesMin = 1 << 30
	// writeInterval is about the longest time that a line waits in the buffer.
	writeInterval = time.Second
	// roomInterval is the pause between two checks of the free space.
	roomInterval = time.Second
)

// Out is the destination of the lines. The log does not call its methods concurrently.
type Out interface {
	// Write writes whole lines. It returns the number of bytes written.
	Write(lines []byte) (int, error)
	// Reopen closes the file, which may have been renamed, and opens a new one under the old name.
	Reopen() error
	Close() error
}

// Config configures a Log. Jitter is required.
type Config struct {
	// Out receives the lines. If it is nil, no lines are written, and the log only remembers
	// denials.
	Out Out
	// Reads decides how many allowed reads are written: one in Reads, so 1 writes all of them. The
	// default is 0: for each caller, operation and object, the first read in a minute is written,
	// and then one line with the number of further reads.
	Reads int
	// Strict makes Room refuse requests while the buffer is full. A log that is not strict drops
	// lines instead.
	Strict bool
	// LinesMax is the maximum number of lines in the buffer. Default LinesMaxDefault.
	LinesMax int
	// Free returns the free bytes on the disk of Out. Nil means that they are unknown.
	Free func() (uint64, error)
	// Now returns the time of lines. Default time.Now.
	Now func() time.Time
	// Jitter is the source of the worker's random pauses. Only the log may use it.
	Jitter *rand.Rand
	// Node is the name of this process in the lines.
	Node string
	// Logger gets a line when the log stops writing, and when it resumes. Default: discards.
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
	reads   atomic.Uint64 // number of allowed reads
	written atomic.Uint64 // number of lines
	trouble atomic.Pointer[string]
	reopen  atomic.Bool

	mu      sync.Mutex // guards the fields below; held during writes; queue.mu may be taken under it
	looked  time.Time  // time of the last call of Free
	full    bool       // the result of that call
	telling uint64     // number of dropped lines that a line has already reported
	batch   []byte     // reused between writes
}

// Stats are the counters of a Log. They never decrease.
type Stats struct {
	Written      uint64 // lines
	DroppedReads uint64 // sampled lines that were dropped to make room for others
	DroppedLines uint64 // other dropped lines
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

// Start starts the writing of noted lines.
func (l *Log) Start() { l.worker.Start() }

// Close writes the noted lines and closes Out. Note must not be called afterwards.
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

// Note puts a line into the buffer. It does not wait. Without an Out, it only remembers denials.
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

// Writes reports whether noted lines are written. If not, the log only remembers denials.
func (l *Log) Writes() bool { return l.config.Out != nil }

// AddRead counts a read that is like an earlier one in the same minute, and reports whether it did.
// If it returns false, the caller must note a line about the read. A busy client reads one object
// thousands of times a second, and making a line would take longer than counting the read.
func (l *Log) AddRead(read Read) bool {
	return l.config.Out != nil && l.config.Reads == 0 && l.sums.addRead(read, l.config.Now())
}

// isSummed reports whether line is not written itself, because another line counts it or because
// sampling omits it.
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

// lineBytesUsual is a length that most lines do not exceed.
const lineBytesUsual = 512

// Allowed is the Decision of a line about an allowed request.
const Allowed = "allow"

// bound is the maximum number of lines in the queue; 0 means no maximum. A strict log has no
// maximum here, because Room bounds its queue.
func (l *Log) bound() int {
	if l.config.Strict {
		return 0
	}
	return l.config.LinesMax
}

// NoteRefused counts refused credentials by address and reason. reason must be one of a few words,
// never a text of the client. About a minute later, the log has one line for each count.
func (l *Log) NoteRefused(address, reason string) {
	if l.config.Out != nil {
		l.refused.add(address, reason, l.config.Now())
	}
}

// ErrNoRoom is the cause of the error with which a strict log refuses a request. The caller must
// not note a line about that request.
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

// Trouble returns why the log does not write at present. It is empty if the log writes.
func (l *Log) Trouble() string { return l.why("") }

func (l *Log) why(otherwise string) string {
	if why := l.trouble.Load(); why != nil {
		return *why
	}
	return otherwise
}

// Strict reports whether requests are refused while the log cannot write.
func (l *Log) Strict() bool { return l.config.Strict }

// LastDenials returns at most limit lines about denied requests of this process, newest first.
func (l *Log) LastDenials(limit int) []Line { return l.recent.last(limit) }

// Denials returns the lines about a denied request. It searches the last DenialsMax denials of this
// node. It returns nil if they contain no such lines.
func (l *Log) Denials(requestID string) []Line { return l.recent.ofRequest(requestID) }

// Stats returns the counters of the log.
func (l *Log) Stats() Stats {
	reads, lines := l.queue.dropped()
	return Stats{Written: l.written.Load(), DroppedReads: reads, DroppedLines: lines}
}

// Reopen makes the log open its file again under the same name. Call it after another program has
// renamed the file.
func (l *Log) Reopen() {
	l.reopen.Store(true)
	l.worker.Kick()
}

// run writes the lines in the buffer.
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

// noteRefused puts the counts of past minutes into the buffer as lines. If all is true, it does so
// with all counts. l.mu must be held.
func (l *Log) noteRefused(all bool) {
	now := l.config.Now()
	for _, line := range append(l.refused.take(now, all), l.sums.flush(now, all)...) {
		l.queue.add(line.append(nil), line.Sampled, l.bound())
	}
}

// isFull reports whether the disk has too little free space for the log. l.mu must be held.
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

// write writes the whole buffer. Lines that it cannot write stay in the buffer. l.mu must be held.
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

// setTrouble records why the log does not write. If the reason has changed, it writes to the
// server's log.
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
