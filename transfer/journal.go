package transfer

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
)

// The steps of an object that the journal has.
const (
	stepBegin    = "begin"    // the first line of a run
	stepPlanned  = "planned"  // with the status
	stepArrived  = "arrived"  // registered at the target, or found there
	stepLeaves   = "leaves"   // is about to leave the source, with the key of the attempt
	stepStays    = "stays"    // has not left the source after all
	stepDetached = "detached" // gone from the source, with its last metadata file
	stepEnded    = "ended"    // a mirror no more
	stepEnd      = "end"      // the last line of a run
)

// entry is a line of the journal.
type entry struct {
	Step   string  `json:"step"`
	Object *Object `json:"object,omitempty"` // with the name at the source
	Status Status  `json:"status,omitempty"`
	Why    string  `json:"why,omitempty"`
	Key    string  `json:"key,omitempty"` // belongs to stepLeaves
	// Source, Target, Choice and Writable belong to stepBegin.
	Source   string  `json:"source,omitempty"`
	Target   string  `json:"target,omitempty"`
	Choice   *Choice `json:"choice,omitempty"`
	Writable bool    `json:"writable,omitempty"`
}

// Journal is a file that has the steps of runs, one JSON object a line. A line is on the disk
// before the step after it begins. It is safe for concurrent use.
type Journal struct {
	file *os.File // nil for a run without a journal

	mu      sync.Mutex // guards the fields below, and the order of writes
	written int        // number of lines

	syncing sync.Mutex // taken before mu
	synced  int        // guarded by syncing: how many lines are on the disk

	past map[string]past // read when the journal was opened; not written later
}

// past is how far an unfinished run came with an object.
type past struct {
	arrived  *Object  // at the target, under the name at the source
	leaves   *Attempt // to detach it
	detached *Object
	ended    bool
}

// left reports whether the journal alone may know the last metadata file of the object.
func (p past) left() bool { return (p.leaves != nil || p.detached != nil) && !p.ended }

// lineStart is how each line begins.
const lineStart = `{"step":`

// errNoJournal protects other files that a caller names.
var errNoJournal = errors.New("the file is no journal of a run: name another one")

// OpenJournal opens the journal at path, or creates it. If the last run in the file has not ended,
// the new run continues it, and both must be alike. Earlier runs are removed, unless the journal
// alone knows an object that has left the source. Then the new run must also be like the last one:
// otherwise it could take that object for an object of another source. A last line that was written
// in part is removed. A file that is not a journal is refused.
func OpenJournal(path string, run Run) (*Journal, error) {
	begin := run.begin()
	if path == "" {
		return &Journal{}, nil
	}
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	j := &Journal{file: file, past: make(map[string]past)}
	if err := j.read(begin); err != nil {
		return nil, errors.Join(fmt.Errorf("journal %s: %w", path, err), file.Close())
	}
	return j, nil
}

// read reads the journal, and leaves the file at its end.
func (j *Journal) read(begin entry) error {
	text, err := io.ReadAll(j.file)
	if err != nil {
		return err
	}
	whole := bytes.LastIndexByte(text, '\n') + 1
	partial := string(text[whole:])
	if !strings.HasPrefix(partial, lineStart) && !strings.HasPrefix(lineStart, partial) {
		return errNoJournal
	}
	var last *entry
	isOpen := false // the last run has not ended
	for number, line := range bytes.Split(text[:max(whole-1, 0)], []byte("\n")) {
		if len(line) == 0 {
			continue
		}
		var e entry
		if err := json.Unmarshal(line, &e); err != nil {
			return fmt.Errorf("line %d: %w", number+1, err)
		}
		switch e.Step {
		case stepBegin:
			last, isOpen = &e, true
		case stepEnd:
			isOpen = false
			for key, p := range j.past { // what was detached is only here
				if !p.left() {
					delete(j.past, key)
				}
			}
		default:
			if !isOpen {
				return errNoJournal
			}
			j.note(e)
		}
	}
	if !isOpen && len(j.past) == 0 { // runs that ended would only make the file grow
		whole, last = 0, nil
	}
	if err := j.file.Truncate(int64(whole)); err != nil {
		return err
	}
	if _, err := j.file.Seek(int64(whole), io.SeekStart); err != nil {
		return err
	}
	if last == nil {
		return j.add(begin)
	}
	was, _ := json.Marshal(last)
	is, _ := json.Marshal(begin)
	if !bytes.Equal(was, is) {
		return fmt.Errorf("it has an unfinished run with other words: %s; repeat that, or name another file", was)
	}
	if !isOpen {
		return j.add(begin)
	}
	return nil
}

func (j *Journal) note(e entry) {
	if e.Object == nil {
		return
	}
	p := j.past[e.Object.key()]
	switch e.Step {
	case stepArrived:
		p.arrived = e.Object
	case stepLeaves:
		p.leaves = &Attempt{Object: *e.Object, Key: e.Key, Repeated: true}
	case stepStays:
		p.leaves = nil
	case stepDetached:
		p.detached = e.Object
	case stepEnded:
		p.ended = true
	}
	j.past[e.Object.key()] = p
}

// of returns how far the unfinished run came with an object.
func (j *Journal) of(o Object) past { return j.past[o.key()] }

// add writes a line, and returns when it is on the disk. Lines that are added at the same time
// share a sync.
func (j *Journal) add(e entry) error {
	if j.file == nil {
		return nil
	}
	line, err := json.Marshal(e)
	if err != nil {
		return err
	}
	j.mu.Lock()
	_, err = j.file.Write(append(line, '\n'))
	j.written++
	mine := j.written
	j.mu.Unlock()
	if err != nil {
		return fmt.Errorf("write the journal: %w", err)
	}
	j.syncing.Lock()
	defer j.syncing.Unlock()
	if j.synced >= mine {
		return nil
	}
	j.mu.Lock()
	upTo := j.written
	j.mu.Unlock()
	if err := j.file.Sync(); err != nil {
		return fmt.Errorf("write the journal: %w", err)
	}
	j.synced = upTo
	return nil
}

// Close closes the file.
func (j *Journal) Close() error {
	if j.file == nil {
		return nil
	}
	return j.file.Close()
}
