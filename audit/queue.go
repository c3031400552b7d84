package audit

import "sync"

// batchBytesMax bounds what is written at once.
const batchBytesMax = 256 << 10

// queue is the buffer: lines that wait for the disk, the oldest first. The zero value is empty. It
// is safe for concurrent use.
type queue struct {
	mu    sync.Mutex // guards the fields below; leaf; never held over I/O
	lines []queued
	count int // of those in lines that are not gone
	// next is before which lines none is a sampled one.
	next         int
	reads, other uint64 // that went
}

// queued is a line that waits. One without text has gone.
type queued struct {
	text    []byte
	sampled bool
}

// add puts a line at the end. If there are most lines already, and most is not 0, the oldest
// sampled one goes; without any, the new one does. first reports whether the queue was empty.
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

// makeRoomLocked lets the oldest sampled line go. It returns false if there is none. mu must be
// held.
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

// compactLocked takes out the lines that went, once they are as many as the others. mu must be
// held.
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

// batch returns the first lines, at most batchBytesMax unless one alone is longer. They stay.
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
		line.sampled = false // it is being written
		texts = append(texts, line.text)
	}
	return texts
}

// drop takes out the first n lines.
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
