package audit

import "sync"

// batchBytesMax is the maximum size of one write.
const batchBytesMax = 256 << 10

// queue is the buffer of lines that wait for the disk, oldest first. The zero value is empty. It is
// safe for concurrent use.
type queue struct {
	mu    sync.Mutex // guards the fields below; no lock is taken, and no I/O done, under it
	lines []queued
	count int // number of lines that were not dropped
	// No line before next is sampled.
	next         int
	reads, other uint64 // dropped lines
}

// queued is a waiting line. The text of a dropped line is nil.
type queued struct {
	text    []byte
	sampled bool
}

// add puts a line at the end. If the queue already has most lines, it drops the oldest sampled
// line, or the new line if there is no sampled line. most is 0 if there is no limit. first reports
// whether the queue was empty before.
func (q *queue) add(text []byte, sampled bool, most int) (first bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if most > 0 && q.count >= most && !q.makeRoomLocked() {
		if sampled {
			q.reads++
		} else {
			q.other++
		}
		return false
	}
	q.lines = append(q.lines, queued{text, sampled})
	q.count++
	return q.count == 1
}

// makeRoomLocked drops the oldest sampled line. It returns false if there is no sampled line. mu
// must be held.
func (q *queue) makeRoomLocked() bool {
	for ; q.next < len(q.lines); q.next++ {
		if line := &q.lines[q.next]; line.text != nil && line.sampled {
			line.text = nil
			q.count--
			q.reads++
			q.compactLocked()
			return true
		}
	}
	return false
}

// compactLocked removes dropped lines when at least half of all lines are dropped. mu must be held.
func (q *queue) compactLocked() {
	if len(q.lines) < 2*q.count+16 {
		return
	}
	kept := make([]queued, 0, q.count+1)
	next := 0
	for i, line := range q.lines {
		if line.text != nil {
			kept = append(kept, line)
			if i < q.next {
				next++
			}
		}
	}
	q.lines, q.next = kept, next
}

// batch returns the first lines, in total at most batchBytesMax bytes, or one line if the first is
// longer. The lines stay in the queue.
func (q *queue) batch() (texts [][]byte) {
	q.mu.Lock()
	defer q.mu.Unlock()
	size := 0
	for i := range q.lines {
		line := &q.lines[i]
		if line.text == nil {
			continue
		}
		if size += len(line.text); size > batchBytesMax && len(texts) > 0 {
			break
		}
		line.sampled = false // a line that is being written must not be dropped
		texts = append(texts, line.text)
	}
	return texts
}

// drop removes the first n lines.
func (q *queue) drop(n int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	at := 0
	for ; at < len(q.lines) && (n > 0 || q.lines[at].text == nil); at++ {
		if q.lines[at].text != nil {
			q.lines[at].text = nil
			q.count--
			n--
		}
	}
	q.lines = q.lines[at:]
	q.next = max(0, q.next-at)
	if len(q.lines) == 0 {
		q.lines, q.next = nil, 0
	}
}

func (q *queue) len() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.count
}

func (q *queue) dropped() (reads, other uint64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.reads, q.other
}
