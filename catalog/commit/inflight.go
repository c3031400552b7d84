package commit

import (
	"sync"

	"moorage/registry"
)

// inflight holds the mutations with keys that are under way on this node. An attempt waits for an
// earlier attempt with its key, only to save work: correctness does not depend on the wait.
// inflight is safe for concurrent use.
type inflight struct {
	mu       sync.Mutex // guards underWay; no lock is taken under it
	underWay map[registry.Key]chan struct{}
}

func newInflight() *inflight { return &inflight{underWay: make(map[registry.Key]chan struct{})} }

// begin registers a mutation with this key and returns the function that ends it. If a mutation
// with the key is under way, begin returns a channel instead, which is closed when that mutation
// ends.
func (i *inflight) begin(key registry.Key) (end func(), other <-chan struct{}) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if ended, ok := i.underWay[key]; ok {
		return nil, ended
	}
	ended := make(chan struct{})
	i.underWay[key] = ended
	return func() {
		i.mu.Lock()
		defer i.mu.Unlock()
		delete(i.underWay, key)
		close(ended)
	}, nil
}
