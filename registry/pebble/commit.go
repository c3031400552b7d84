package pebble

import (
	"encoding/binary"
	"fmt"

	engine "github.com/cockroachdb/pebble/v2"

	"moorage/registry"
)

// commitLoop is the committer: it executes requests until the queue is closed and empty. Only this
// goroutine writes to the engine.
func (s *instance) commitLoop() {
	buf := new([]byte)
	for group := s.queue.take(); group != nil; group = s.queue.take() {
		if first := group[0]; first.alone != nil {
			first.answer <- first.alone()
			continue
		}
		s.commit(group, buf)
	}
}

// commit executes a group of requests with one sync. It overwrites *buf.
func (s *instance) commit(requests []*request, buf *[]byte) {
	if err := s.failure.get(); err != nil {
		answer(requests, err)
		return
	}
	g := &group{
		view: s.view, last: s.last, buf: buf,
		batch:   s.db.NewBatch(),
		written: make(map[registry.Key]header),
		filter:  filter{view: s.view},
	}
	for _, r := range requests {
		g.decide(r)
	}
	g.filter.close()
	if len(g.applied) > 0 {
		if err := s.write(g); err != nil {
			// Requests that were applied may still become durable. Requests that failed because of
			// an applied request, or saw its writes, wrote nothing.
			answer(g.applied, s.failure.unknown())
			for _, w := range g.waiting {
				w.request.answer <- err
			}
			return
		}
	}
	// Close returns the rest of the batch to the engine's pool; this cannot fail.
	_ = g.batch.Close()
	answer(g.applied, nil)
	for _, w := range g.waiting {
		w.request.answer <- w.err
	}
}

// answer ends requests with the same error.
func answer(requests []*request, err error) {
	for _, r := range requests {
		r.answer <- err
	}
}

// write makes the group durable and then visible. An error means that the store has failed. After
// an error it is unknown whether the next opening finds the group.
func (s *instance) write(g *group) (err error) {
	defer func() {
		if p := recover(); p != nil {
			s.broken = true
			s.fail(fmt.Errorf("the engine panicked: %v", p))
			err = s.failure.get()
		}
	}()
	if err := g.batch.Commit(engine.Sync); err != nil {
		s.fail(err)
	}
	// The engine does not return the error of a sync, and the guard has reported success to it.
	if err := s.failure.get(); err != nil {
		return err
	}
	s.last = g.last
	s.setView(newView(s.db, &s.retired))
	return nil
}

// group is the set of writes that the committer makes with one sync.
type group struct {
	view  *view // the state before the group
	batch *engine.Batch
	last  registry.Position
	buf   *[]byte

	written map[registry.Key]header // records written by the group; the zero header for a delete
	filter  filter                  // of view; for records that probably do not exist
	applied []*request
	waiting []verdict
}

// verdict is the result of a request that writes nothing. It is valid only if the writes of its
// group that the request saw become durable.
type verdict struct {
	request *request
	err     error
}

// decide applies the request within the group if its conditions hold. A request that writes
// nothing, and saw no write of the group, is answered at once.
func (g *group) decide(r *request) {
	sawGroup, unplaced, err := g.look(r)
	if err == nil && len(r.writes) > 0 {
		g.apply(r, unplaced)
		g.applied = append(g.applied, r)
		return
	}
	if sawGroup {
		g.waiting = append(g.waiting, verdict{r, err})
		return
	}
	r.answer <- err
}

// look reads everything that the request depends on. It returns whether the request saw a write of
// the group, and the error of the first condition that does not hold. It also returns the positions
// of changes that the request overwrites or deletes. It adds nothing to the group. So if the engine
// panics, only this request fails, as with a panic in a reader's goroutine.
func (g *group) look(r *request) (sawGroup bool, unplaced []registry.Position, err error) {
	defer func() {
		if p := recover(); p != nil {
			g.filter.abandon()
			err = fmt.Errorf("read the store: the engine panicked: %v", p)
		}
	}()
	if sawGroup, err = g.check(r.conditions); err == nil {
		unplaced, err = g.unplaced(r)
	}
	return sawGroup, unplaced, err
}

// check returns a FailedError for the first condition that does not hold. sawGroup is true if it
// read a record that the group has written.
func (g *group) check(conditions []registry.Condition) (sawGroup bool, err error) {
	for i, c := range conditions {
		h, written, err := g.conditionHeader(c)
		if err != nil {
			return sawGroup, err
		}
		sawGroup = sawGroup || written
		if !c.Met(h.record(c.Key)) {
			return sawGroup, &registry.FailedError{Index: i, Condition: c}
		}
	}
	return sawGroup, nil
}

// conditionHeader is like header, for the record of a condition. A record that must be absent
// nearly always is absent, because IDs of changes and keys are new. The engine's filters show that
// without reading a block from disk.
func (g *group) conditionHeader(c registry.Condition) (h header, written bool, err error) {
	if _, written := g.written[c.Key]; !written && c.Kind == registry.CondAbsent {
		*g.buf = appendRecordKey((*g.buf)[:0], c.Key)
		if found, err := g.filter.exists(*g.buf); err != nil || !found {
			return header{}, false, err
		}
	}
	return g.header(c.Key)
}

// header returns the header of a record after the group's writes so far, and whether the group has
// written it.
func (g *group) header(key registry.Key) (h header, written bool, err error) {
	if h, written = g.written[key]; written {
		return h, true, nil
	}
	h, err = g.view.header(key, g.buf)
	return h, false, err
}

// unplaced returns the positions of the changes that the request deletes or overwrites.
func (g *group) unplaced(r *request) ([]registry.Position, error) {
	var unplaced []registry.Position
	for i, w := range r.writes {
		if w.key.Table != registry.TableChange || r.isOwnChange(i) {
			continue
		}
		old, _, err := g.header(w.key)
		if err != nil {
			return nil, err
		}
		if old.position > 0 {
			unplaced = append(unplaced, old.position)
		}
	}
	return unplaced, nil
}

// apply adds the request's writes to the group. It cannot fail, so the group has either all writes
// of a request or none.
func (g *group) apply(r *request, unplaced []registry.Position) {
	for _, position := range unplaced {
		g.remove(appendPlaceKey(nil, position))
	}
	for i, w := range r.writes {
		if r.isOwnChange(i) {
			g.last++
			w.header.position = g.last
			setPosition(w.stored, g.last)
			g.set(appendPlaceKey(nil, g.last), []byte(w.key.ID))
			g.set(positionKey(), binary.BigEndian.AppendUint64(nil, uint64(g.last)))
		}
		*g.buf = appendRecordKey((*g.buf)[:0], w.key)
		if w.stored == nil {
			g.remove(*g.buf)
		} else {
			g.set(*g.buf, w.stored)
		}
		g.written[w.key] = w.header
	}
}

// The methods set and remove add to the batch, which copies its arguments. The engine's batch
// returns an error only if it was closed.

func (g *group) set(key, stored []byte) { g.must(g.batch.Set(key, stored, nil)) }

func (g *group) remove(key []byte) { g.must(g.batch.Delete(key, nil)) }

func (g *group) must(err error) {
	if err != nil {
		panic(err)
	}
}
