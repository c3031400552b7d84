package registrytest

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"

	"moorage/registry"
)

// Sizes of the tests under contention: enough for conflicts, few enough for a store that syncs a
// disk for each write.
const (
	contenders       = 8
	contentionRounds = 25
)

func applyCreateOnce(h *harness) {
	for round := range contentionRounds {
		k := key(fmt.Sprint(round))
		var created atomic.Int64
		h.together(contenders, func(i int) error {
			won, err := h.createOrRead(k, i)
			if won {
				created.Add(1)
			}
			return err
		})
		if created.Load() != 1 {
			h.Fatalf("round %d: %d of %d creates were accepted", round, created.Load(), contenders)
		}
	}
}

// createOrRead creates the record at k unless it exists, and reports whether it did. If the record
// exists, createOrRead must be able to read it. It may be called from any goroutine.
func (h *harness) createOrRead(k registry.Key, i int) (created bool, err error) {
	_, err = h.store.Apply(h.ctx, registry.Batch{
		Conditions: []registry.Condition{registry.Absent(k)},
		Writes:     []registry.Write{registry.Put(k, registry.StateOwner, fmt.Append(nil, i))},
	})
	if err == nil {
		return true, nil
	}
	if !isRefused(err) {
		return false, fmt.Errorf("create: %w", err)
	}
	records, err := h.store.Get(h.ctx, k)
	if err != nil {
		return false, fmt.Errorf("read what refused: %w", err)
	}
	if !records[0].Exists() {
		return false, errors.New("refused by a record that is not there")
	}
	return false, nil
}

// increment adds one to the number at k by compare-and-set. It retries until it succeeds.
func (h *harness) increment(k registry.Key, change *registry.Change) error {
	for {
		records, err := h.store.Get(h.ctx, k)
		if err != nil {
			return fmt.Errorf("get: %w", err)
		}
		number := 0
		condition := registry.Absent(k)
		if records[0].Exists() {
			if number, err = strconv.Atoi(string(records[0].Value)); err != nil {
				return fmt.Errorf("read counter: %w", err)
			}
			condition = registry.ETagIs(k, records[0].ETag)
		}
		_, err = h.store.Apply(h.ctx, registry.Batch{
			Conditions: []registry.Condition{condition},
			Writes: []registry.Write{registry.Put(k, registry.StateLive,
				strconv.AppendInt(nil, int64(number)+1, 10)).Over(records[0])},
			Change: change,
		})
		if !isRefused(err) {
			return err
		}
	}
}

func applyCounters(h *harness) {
	const counters = 3
	h.together(contenders, func(i int) error {
		for round := range contentionRounds {
			if err := h.increment(key(fmt.Sprint((i+round)%counters)), nil); err != nil {
				return err
			}
		}
		return nil
	})
	sum := 0
	for _, r := range h.list(registry.TableLocation, "", "", counters) {
		number, err := strconv.Atoi(string(r.Value))
		if err != nil {
			h.Fatal(err)
		}
		sum += number
	}
	if want := contenders * contentionRounds; sum != want {
		h.Errorf("counters add up to %d after %d increments", sum, want)
	}
}

// writeSkew makes two batches race over two records, called doors. Each batch closes one door on
// condition that the other door is open, and does not write the other door's record. At most one
// may succeed.
func writeSkew(h *harness, isOpen func(k registry.Key, etag registry.ETag) registry.Condition) {
	doors := [2]registry.Key{key("a"), key("b")}
	for round := range contentionRounds {
		var etags [2]registry.ETag
		for i, door := range doors {
			etags[i] = h.put(door, registry.StateLive, "")
		}
		var closed [2]bool
		h.together(2, func(i int) error {
			_, err := h.store.Apply(h.ctx, registry.Batch{
				Conditions: []registry.Condition{isOpen(doors[1-i], etags[1-i])},
				Writes:     []registry.Write{registry.Put(doors[i], registry.StateDropping, nil)},
			})
			closed[i] = err == nil
			if err != nil && !isRefused(err) {
				return err
			}
			return nil
		})
		if closed[0] == closed[1] {
			h.Fatalf("round %d: batch 0 succeeded: %t, batch 1: %t, want exactly one", round, closed[0], closed[1])
		}
	}
}

func applyWriteSkewState(h *harness) {
	writeSkew(h, func(k registry.Key, _ registry.ETag) registry.Condition {
		return registry.StateIs(k, registry.StateLive)
	})
}

func applyWriteSkewETag(h *harness) { writeSkew(h, registry.ETagIs) }

// applyWriteSkewMadeAgain is like writeSkew with conditions on the state. At the same time, other
// goroutines delete the doors and recreate them, open, until one is closed.
func applyWriteSkewMadeAgain(h *harness) {
	const lives, tries = 4, 8
	for round := range contentionRounds {
		doors := [2]registry.Key{key(fmt.Sprint("a", round)), key(fmt.Sprint("b", round))}
		var etags [2]registry.ETag
		for i, door := range doors {
			etags[i] = h.put(door, registry.StateLive, "")
		}
		var closed [2]bool
		h.together(4, func(i int) error {
			if i < 2 {
				return h.liveAgain(doors[i], etags[i], lives)
			}
			i -= 2
			for range tries {
				_, err := h.store.Apply(h.ctx, registry.Batch{
					Conditions: []registry.Condition{registry.StateIs(doors[1-i], registry.StateLive)},
					Writes:     []registry.Write{registry.Put(doors[i], registry.StateDropping, nil)},
				})
				if closed[i] = err == nil; !isRefused(err) {
					return err
				}
			}
			return nil
		})
		if closed[0] && closed[1] {
			h.Fatalf("round %d: both doors were closed, each on condition that the other is open", round)
		}
	}
}

// liveAgain deletes the record at k and recreates it, live, several times, unless another goroutine
// changes it.
func (h *harness) liveAgain(k registry.Key, etag registry.ETag, times int) error {
	for range times {
		_, err := h.store.Apply(h.ctx, registry.Batch{
			Conditions: []registry.Condition{registry.ETagIs(k, etag)}, Writes: []registry.Write{registry.Delete(k)},
		})
		if err == nil {
			var etags []registry.ETag
			etags, err = h.store.Apply(h.ctx, registry.Batch{
				Conditions: []registry.Condition{registry.Absent(k)},
				Writes:     []registry.Write{registry.Put(k, registry.StateLive, nil)},
			})
			if err == nil {
				etag = etags[0]
			}
		}
		if isRefused(err) {
			return nil
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// applyStateOfNewLife deletes a record and recreates it, several times. Meanwhile, batches require
// its state and write other records. Then it closes the record. A reader that saw the record closed
// must see all writes that required it to be open. So a batch that finds the record deleted must
// also lock it.
func applyStateOfNewLife(h *harness) {
	const lives = 4
	for round := range contentionRounds {
		door := key(fmt.Sprint("door", round))
		passed := func(i int) registry.Key { return key(fmt.Sprint("passed", round, "/", i)) }
		h.put(door, registry.StateLive, "")
		var seen []registry.Record
		keys := make([]registry.Key, contenders)
		for i := range keys {
			keys[i] = passed(i)
		}
		h.together(contenders+1, func(i int) error {
			if i < contenders {
				_, err := h.store.Apply(h.ctx, registry.Batch{
					Conditions: []registry.Condition{registry.StateIs(door, registry.StateLive)},
					Writes:     []registry.Write{registry.Put(passed(i), registry.StateLive, nil)},
				})
				if isRefused(err) {
					err = nil
				}
				return err
			}
			for range lives {
				for _, write := range []registry.Write{registry.Delete(door),
					registry.Put(door, registry.StateLive, nil)} {
					if _, err := h.store.Apply(h.ctx, registry.Batch{Writes: []registry.Write{write}}); err != nil {
						return err
					}
				}
			}
			_, err := h.store.Apply(h.ctx, registry.Batch{Writes: []registry.Write{registry.Put(door,
				registry.StateDropping, nil)}})
			if err == nil {
				seen, err = h.store.Get(h.ctx, keys...)
			}
			return err
		})
		for _, now := range h.list(registry.TableLocation, fmt.Sprint("passed", round, "/"), "", contenders+1) {
			if !slices.ContainsFunc(seen, func(r registry.Record) bool { return r.Key == now.Key }) {
				h.Fatalf("round %d: %s was written after the door was closed", round, now.Key)
			}
		}
	}
}

func applyVisible(h *harness) {
	h.together(contenders, func(i int) error {
		for round := range contentionRounds {
			if err := h.applyAndRead(i, round); err != nil {
				return err
			}
		}
		return nil
	})
}

// applyAndRead writes the only entry of id(i), with a change. It returns an error unless both exist
// when Apply has returned. It may be called from any goroutine.
func (h *harness) applyAndRead(i, round int) error {
	k, c := registry.EntryKey(id(i), "name"), change(i*contentionRounds+round)
	batch, err := h.exact(c, registry.Put(k, registry.StateTable, fmt.Append(nil, round)))
	if err != nil {
		return err
	}
	etags, err := h.store.Apply(h.ctx, batch)
	if err != nil {
		return fmt.Errorf("apply: %w", err)
	}
	records, err := h.store.Get(h.ctx, k, registry.ChangeKey(c.ID))
	if err != nil {
		return fmt.Errorf("get: %w", err)
	}
	if records[0].ETag != etags[0] || !records[1].Exists() {
		return fmt.Errorf("after an Apply: %s and %s", describe(records[0]), describe(records[1]))
	}
	listed, err := h.store.List(h.ctx, registry.TableEntry, registry.EntryPrefix(id(i)), "", 2)
	if err != nil {
		return fmt.Errorf("list: %w", err)
	}
	if len(listed) != 1 || listed[0].ETag != etags[0] {
		return fmt.Errorf("after an Apply List answered %v", listed)
	}
	return nil
}

func closeEnds(h *harness) {
	h.put(key("a"), registry.StateOwner, "1")
	for range 2 {
		if err := h.store.Close(); err != nil {
			h.Errorf("close: %v", err)
		}
		for method, err := range h.callAll() {
			if !errors.Is(err, registry.ErrClosed) {
				h.Errorf("%s after close: %v, want ErrClosed", method, err)
			}
		}
	}
}

// callAll calls each method that takes a context and returns the errors.
func (h *harness) callAll() map[string]error {
	errs := make(map[string]error)
	_, errs["Get"] = h.store.Get(h.ctx, key("a"))
	_, errs["List"] = h.store.List(h.ctx, registry.TableLocation, "", "", 1)
	_, errs["ListKeys"] = h.store.ListKeys(h.ctx, registry.TableLocation, "", "", 1)
	_, errs["Changes"] = h.store.Changes(h.ctx, 0, 1)
	_, errs["Time"] = h.store.Time(h.ctx)
	_, errs["Apply"] = h.store.Apply(h.ctx, registry.Batch{Writes: []registry.Write{registry.Put(key("a"),
		registry.StateOwner, nil)}})
	return errs
}

func closeUnderWay(h *harness) {
	running := make(chan struct{})
	isRunning := sync.OnceFunc(func() { close(running) })
	h.together(contenders+1, func(i int) error {
		if i == contenders {
			<-running
			return h.store.Close()
		}
		defer isRunning() // after a failure too
		for round := 0; ; round++ {
			_, err := h.store.Apply(h.ctx, registry.Batch{
				Writes: []registry.Write{registry.Put(key(fmt.Sprint(i)), registry.StateOwner, fmt.Append(nil, round))},
			})
			if err == nil {
				_, err = h.store.Get(h.ctx, key("a"), key("b"))
			}
			if err == nil {
				_, err = h.store.List(h.ctx, registry.TableLocation, "", "", 10)
			}
			if errors.Is(err, registry.ErrClosed) {
				return nil
			}
			if err != nil {
				return fmt.Errorf("while the store closes: %w", err)
			}
			isRunning()
		}
	})
}
