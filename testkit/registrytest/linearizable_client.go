package registrytest

import (
	"errors"
	"fmt"
	"math/rand/v2"

	"moorage/registry"
)

// historyClient makes the calls of one thread of a history. It is not safe for concurrent use.
type historyClient struct {
	h      *harness
	random *rand.Rand
	seen   historyState // the versions that the client saw last
}

func newHistoryClient(h *harness, seed uint64) *historyClient {
	return &historyClient{h: h, random: rand.New(rand.NewPCG(seed, 0))}
}

// next returns the client's next call.
func (c *historyClient) next() historyInput {
	if c.random.IntN(3) == 0 {
		return historyInput{read: true, list: c.random.IntN(2) == 0}
	}
	var batch registry.Batch
	for _, n := range c.random.Perm(historyKeys) {
		k, written := historyKey(n), c.random.IntN(2) == 0
		deleted := written && c.random.IntN(5) == 0
		switch {
		case deleted:
			batch.Writes = append(batch.Writes, registry.Delete(k))
		case written:
			batch.Writes = append(batch.Writes, registry.Put(k, c.state(), nil))
		}
		switch v := c.seen[n]; c.random.IntN(3) {
		case 0:
			batch.Conditions = append(batch.Conditions, registry.StateIs(k, c.state()))
		case 1:
			if !v.etag.IsZero() {
				batch.Conditions = append(batch.Conditions, registry.ETagIs(k, v.etag))
			} else if written && !deleted {
				batch.Conditions = append(batch.Conditions, registry.Absent(k))
			}
		}
	}
	return historyInput{batch: batch}
}

func (c *historyClient) state() registry.State { return registry.State(1 + c.random.IntN(2)) }

// call makes a call and returns its answer.
func (c *historyClient) call(input historyInput) (historyOutput, error) {
	if input.read {
		seen, err := c.read(input.list)
		c.seen = seen
		return historyOutput{seen: seen, failed: -1}, err
	}
	etags, err := c.h.store.Apply(c.h.ctx, input.batch)
	var failed *registry.FailedError
	switch {
	case errors.As(err, &failed):
		return historyOutput{failed: failed.Index}, nil
	case err != nil:
		return historyOutput{}, fmt.Errorf("apply: %w", err)
	}
	for i, w := range input.batch.Writes {
		c.seen[historyIndex(w.Key)] = historyVersion{etags[i], w.State}
	}
	return historyOutput{etags: etags, failed: -1}, nil
}

// read reads all keys, with Get or with List.
func (c *historyClient) read(list bool) (historyState, error) {
	var seen historyState
	var records []registry.Record
	var err error
	if list {
		records, err = c.h.store.List(c.h.ctx, registry.TableLocation, "history/", "", historyKeys+1)
	} else {
		var keys []registry.Key
		for n := range historyKeys {
			keys = append(keys, historyKey(n))
		}
		records, err = c.h.store.Get(c.h.ctx, keys...)
	}
	if err != nil {
		return seen, fmt.Errorf("read: %w", err)
	}
	for _, r := range records {
		if r.Exists() {
			seen[historyIndex(r.Key)] = historyVersion{r.ETag, r.State}
		}
	}
	return seen, nil
}
