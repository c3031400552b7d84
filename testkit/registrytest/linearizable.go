package registrytest

import (
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/anishathalye/porcupine"

	"moorage/registry"
)

// Sizes of a history. The cost of a check over several keys grows fast with the number of
// overlapping calls.
const (
	historyClients = 5
	historyCalls   = 30
	historyKeys    = 3
	historyTimeout = 5 * time.Minute
)

// historyVersion is the version of one record in a history. The zero value means no record.
type historyVersion struct {
	etag  registry.ETag
	state registry.State
}

// historyState is the state of the model: the version of each key.
type historyState [historyKeys]historyVersion

// historyInput is a call: a read of all keys, or a batch.
type historyInput struct {
	read  bool
	list  bool
	batch registry.Batch
}

// historyOutput is the answer: the records that were read, or the result of the batch.
type historyOutput struct {
	seen   historyState
	etags  []registry.ETag
	failed int // index of the failed condition, or -1 if all held
}

func historyKey(n int) registry.Key { return key(fmt.Sprintf("history/%d", n)) }

func historyIndex(k registry.Key) int { return int(k.ID[len(k.ID)-1] - '0') }

// historyModel returns a model of a store, for porcupine, as if only one thread used it.
func historyModel() porcupine.Model {
	return porcupine.Model{
		Init: func() any { return historyState{} },
		Step: func(state, input, output any) (bool, any) {
			before, in, out := state.(historyState), input.(historyInput), output.(historyOutput)
			if in.read {
				return out.seen == before, before
			}
			failed := -1
			for i, c := range in.batch.Conditions {
				if v := before[historyIndex(c.Key)]; failed < 0 &&
					!c.Met(registry.Record{ETag: v.etag, State: v.state}) {
					failed = i
				}
			}
			if failed >= 0 || out.failed >= 0 {
				return failed == out.failed, before
			}
			after := before
			for i, w := range in.batch.Writes {
				after[historyIndex(w.Key)] = historyVersion{out.etags[i], w.State}
				if w.Delete {
					after[historyIndex(w.Key)] = historyVersion{}
				}
			}
			return true, after
		},
		DescribeOperation: func(input, output any) string {
			in, out := input.(historyInput), output.(historyOutput)
			if in.read {
				return fmt.Sprintf("read %v", out.seen)
			}
			var parts []string
			for _, c := range in.batch.Conditions {
				parts = append(parts, c.String())
			}
			return fmt.Sprintf("if %s write %v: failed %d, %v", strings.Join(parts, ", "), in.batch.Writes, out.failed,
				out.etags)
		},
	}
}

// applyLinearizable lets clients read and write a few keys at random, with conditions on the
// versions that they saw last, and checks the history. There must be an order of all calls in which
// one thread alone would have got the same answers. Each call must take effect at a moment between
// its start and its end.
func applyLinearizable(h *harness) {
	random := h.random()
	seeds := make([]uint64, historyClients)
	for i := range seeds {
		seeds[i] = random.Uint64()
	}
	var mu sync.Mutex // guards operations
	var operations []porcupine.Operation
	began := time.Now()
	h.together(historyClients, func(client int) error {
		c := newHistoryClient(h, seeds[client])
		for range historyCalls {
			input := c.next()
			call := time.Since(began)
			output, err := c.call(input)
			if err != nil {
				return err
			}
			operation := porcupine.Operation{
				ClientId: client, Input: input, Call: call.Nanoseconds(), Output: output,
				Return: time.Since(began).Nanoseconds(),
			}
			mu.Lock()
			operations = append(operations, operation)
			mu.Unlock()
		}
		return nil
	})
	result := porcupine.CheckOperationsTimeout(historyModel(), operations, historyTimeout)
	if result != porcupine.Ok {
		for _, o := range operations {
			h.Logf("client %d, %d to %d: %s", o.ClientId, o.Call, o.Return,
				historyModel().DescribeOperation(o.Input, o.Output))
		}
		h.Fatalf("history check: %s", result)
	}
}
