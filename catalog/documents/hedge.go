package documents

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"moorage"
	"moorage/internal/worker"
	"moorage/storage"
)

const (
	// hedgeDelayMin is the shortest time before a write is repeated.
	hedgeDelayMin = 150 * time.Millisecond
	// hedgeMedians is the multiple of the median duration of a write after which a write is
	// repeated.
	hedgeMedians = 3
	// hedgeSamples is the number of writes from which the median is computed.
	hedgeSamples = 64
	// hedgesMax bounds how many repeated writes run at once, so that repeats add little load to an
	// overloaded storage.
	hedgesMax = 16
	// hedgedTimeout bounds each write, even after its caller has the result of the other write.
	hedgedTimeout = 30 * time.Second
)

// hedge writes files to storages on a network, and repeats an unusually slow write under another
// name. The commit names the file whose write succeeds first, and no record names the other file.
// The other write runs to its end, because a cancelled write may still take effect. Then hedge
// deletes its file. A process that stops before that leaves an orphan. hedge is safe for concurrent
// use.
type hedge struct {
	documents *Documents
	now       func() time.Time
	slots     chan struct{} // holds an element for each repeated write
	stopping  chan struct{} // closed by stop

	// mu guards the fields below. No lock is taken under it.
	mu      sync.Mutex
	stopped bool
	tasks   sync.WaitGroup  // races; Add only while stopped is false
	took    []time.Duration // durations of the latest successful writes, at most hedgeSamples
	next    int             // the oldest element of took, once it is full
}

// HedgeWrites makes WriteHedged repeat slow writes. now is the clock that measures the durations of
// writes. Call it once, before the first write.
func (d *Documents) HedgeWrites(now func() time.Time) {
	d.hedge = &hedge{documents: d, now: now, slots: make(chan struct{}, hedgesMax), stopping: make(chan struct{})}
}

// WriteHedged stores file durably, and returns it with its name. After a failure it returns the
// file whose write failed, and the error of that write; see MayRemain. It is the same as File.Write
// if HedgeWrites was not called, or if the file's storage is not on a network.
func (d *Documents) WriteHedged(ctx context.Context, file File) (File, error) {
	return d.hedge.write(ctx, file)
}

// Close cancels the writes whose callers have their result, and tries to delete the files of those
// writes before it returns. Call it before the ports are closed. It may be called again.
func (d *Documents) Close() { d.hedge.stop() }

// write is WriteHedged. A nil or stopped hedge writes once.
func (h *hedge) write(ctx context.Context, file File) (File, error) {
	if _, remote := file.Storage.(storage.Remote); !remote || !h.enter() {
		return file, file.Write(ctx)
	}
	bounded, cancel := moorage.Detached(ctx, hedgedTimeout)
	r := &race{hedge: h, cancel: cancel, ended: make(chan written, 2)}
	defer r.leave(bounded)
	r.begin(bounded, file)
	delay := time.NewTimer(h.delay())
	defer delay.Stop()
	for {
		select {
		case <-delay.C:
			r.repeat(bounded, file)
		case w := <-r.ended:
			r.underWay--
			if w.err == nil || r.underWay == 0 {
				return w.file, w.err
			}
			r.others = append(r.others, w)
		case <-ctx.Done():
			return file, CreateError(file.Location, ctx.Err())
		}
	}
}

// stop is Close. It does nothing for a nil hedge.
func (h *hedge) stop() {
	if h == nil {
		return
	}
	h.mu.Lock()
	if !h.stopped {
		h.stopped = true
		close(h.stopping)
	}
	h.mu.Unlock()
	h.tasks.Wait()
}

// enter begins a race, unless the hedge is nil or stopped.
func (h *hedge) enter() bool {
	if h == nil {
		return false
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.stopped {
		h.tasks.Add(1)
	}
	return !h.stopped
}

// note adds the time of a write to the samples of the median.
func (h *hedge) note(took time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.took) < hedgeSamples {
		h.took = append(h.took, took)
		return
	}
	h.took[h.next] = took
	h.next = (h.next + 1) % hedgeSamples
}

// delay returns how long a write may take before it is repeated.
func (h *hedge) delay() time.Duration {
	h.mu.Lock()
	took := slices.Clone(h.took)
	h.mu.Unlock()
	if len(took) == 0 {
		return hedgeDelayMin
	}
	slices.Sort(took)
	return max(hedgeMedians*took[len(took)/2], hedgeDelayMin)
}

// written is the result of a write.
type written struct {
	file File
	err  error
}

// race is one or two writes of a document under different names. All fields except ended belong to
// one goroutine.
type race struct {
	hedge    *hedge
	cancel   context.CancelFunc
	ended    chan written
	underWay int
	repeated bool
	others   []written // ended writes other than the one that write returned
}

func (r *race) begin(ctx context.Context, file File) {
	r.underWay++
	go func() {
		began := r.hedge.now()
		err := worker.Safely(ctx, file.Write)
		if panicked, isPanic := errors.AsType[*worker.PanicError](err); isPanic {
			err = CreateError(file.Location, panicked)
		}
		if err == nil {
			r.hedge.note(r.hedge.now().Sub(began))
		}
		r.ended <- written{file, err}
	}()
}

// repeat begins a second write, unless too many are running.
func (r *race) repeat(ctx context.Context, file File) {
	select {
	case r.hedge.slots <- struct{}{}:
	default:
		return
	}
	r.repeated = true
	second, err := r.hedge.documents.rename(file)
	if err != nil { // the second write cannot begin; the first may still succeed
		r.hedge.documents.log.WarnContext(ctx, "could not name a second metadata file", "error", err)
		return
	}
	r.begin(ctx, second)
}

// leave ends the race. It waits for a write and deletes files in the background.
func (r *race) leave(ctx context.Context) {
	if r.underWay == 0 && len(r.others) == 0 {
		r.end(ctx)
		return
	}
	go r.end(ctx)
}

// end waits for the running writes, and deletes all files except the one returned by write.
// DeleteLost first checks whether a client has found and registered the file.
func (r *race) end(ctx context.Context) {
	defer r.hedge.tasks.Done()
	defer r.cancel()
	stopping := r.hedge.stopping
	for r.underWay > 0 {
		select {
		case w := <-r.ended:
			r.underWay--
			r.others = append(r.others, w)
		case <-stopping:
			r.cancel()
			stopping = nil
		}
	}
	for _, w := range r.others {
		if w.err == nil || MayRemain(w.err) {
			r.hedge.documents.DeleteLost(ctx, Lost{File: w.file})
		}
	}
	if r.repeated {
		<-r.hedge.slots
	}
}

// rename returns file under another name for the same version, in the same folder.
func (d *Documents) rename(file File) (File, error) {
	unique, err := d.drawFor(file)
	if err != nil {
		return File{}, err
	}
	folder, name := path.Split(file.Location)
	version, _, _ := strings.Cut(name, "-")
	file.Location = fmt.Sprintf("%s%s-%s%s", folder, version, unique, file.ending())
	return file, nil
}
