package chaos

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
)

const (
	// pythonAt is the Python interpreter with the clients, relative to this package.
	// interop/setup.sh installs it.
	pythonAt = "../../.cache/interop/venv/bin/python"
	// startSpan bounds the time until an engine first answers.
	startSpan = 15 * time.Minute
	// linesMax bounds the length of one answer of an engine.
	linesMax = 16 << 20
)

// remote is an engine in a separate process, engines.py. Requests and answers are lines of JSON.
type remote struct {
	called string
	knows  []action
	branch bool

	process *os.Process
	writing sync.Mutex // serializes writes to in
	in      io.WriteCloser

	mu      sync.Mutex // guards the fields below; leaf; never held over I/O
	waiting map[int]chan reply
	serial  int
	ended   error         // why there are no more answers
	gone    chan struct{} // closed when ended is set
}

// errSilent reports that an engine did not answer in time.
var errSilent = errors.New("no answer")

// reply is an answer of an engine.
type reply struct {
	ID    int        `json:"id"`
	Rows  [][2]int64 `json:"rows"`
	Error string     `json:"error"`
	NoRef bool       `json:"no-ref"`
	// The first reply, with ID 0, lists the actions that the engine supports.
	Actions  []action `json:"actions"`
	Branches bool     `json:"branches"`
}

// startEngines starts two engines.
func (w *world) startEngines(names []string) {
	w.t.Helper()
	if len(names) != len(w.engines) {
		w.t.Fatalf("-engines names %d engines, want %d", len(names), len(w.engines))
	}
	for i, name := range names {
		if name == w.direct.name() {
			w.engines[i] = w.direct
			continue
		}
		w.pace = remotePace
		w.engines[i] = startRemote(w.t, name, w.uris())
	}
}

// warmUp has engines in separate processes read from each node, with as many parallel requests as
// there will be writers. The engines then load their code, which takes minutes on a busy machine.
func (w *world) warmUp(ctx context.Context, writers int) error {
	ctx, cancel := context.WithTimeout(ctx, startSpan)
	defer cancel()
	group, ctx := errgroup.WithContext(ctx)
	for _, e := range w.engines {
		if e == engine(w.direct) {
			continue
		}
		for i := range writers {
			group.Go(func() error {
				for at := range w.nodes {
					ask := request{Action: reads, Table: w.tables[i%len(w.tables)], Node: (i + at) % len(w.nodes)}
					if _, err := e.do(ctx, ask); err != nil {
						return fmt.Errorf("%s warms up: %w", e.name(), err)
					}
				}
				return nil
			})
		}
	}
	return group.Wait()
}

// watch returns an error if the engine ends before ctx does.
func (r *remote) watch(ctx context.Context) error {
	select {
	case <-r.gone:
		return r.ended
	case <-ctx.Done():
		return nil
	}
}

// startRemote starts an engine that is connected to the nodes at uris.
func startRemote(t *testing.T, name string, uris []string) *remote {
	t.Helper()
	r := &remote{called: name, waiting: make(map[int]chan reply), gone: make(chan struct{})}
	python, err := filepath.Abs(pythonAt)
	must(t, err)
	process := exec.Command(python, "engines.py", name, strings.Join(uris, ","))
	process.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	log, err := os.Create(filepath.Join(t.ArtifactDir(), name+".log"))
	must(t, err)
	t.Cleanup(func() { _ = log.Close() })
	process.Stderr = log
	r.in, err = process.StdinPipe()
	must(t, err)
	out, err := process.StdoutPipe()
	must(t, err)
	first := make(chan reply, 1)
	r.waiting[0] = first
	must(t, process.Start())
	r.process = process.Process
	go r.receive(out)
	t.Cleanup(func() {
		_ = r.in.Close() // the engine exits at the end of its input
		_ = process.Wait()
	})
	select {
	case says := <-first:
		if says.Error != "" {
			text, _ := os.ReadFile(log.Name())
			t.Fatalf("%s did not start: %s\n%s", name, says.Error, text)
		}
		r.knows, r.branch = says.Actions, says.Branches
	case <-time.After(startSpan):
		t.Fatalf("%s did not start in %s", name, startSpan)
	}
	return r
}

// receive dispatches answers until the process has ended.
func (r *remote) receive(out io.Reader) {
	lines := bufio.NewScanner(out)
	lines.Buffer(nil, linesMax)
	var broken error
	for lines.Scan() && broken == nil {
		var got reply
		if broken = json.Unmarshal(lines.Bytes(), &got); broken != nil {
			broken = fmt.Errorf("%s: %w", lines.Text(), broken)
			break
		}
		r.mu.Lock()
		if to, ok := r.waiting[got.ID]; ok {
			to <- got
			delete(r.waiting, got.ID)
		}
		r.mu.Unlock()
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ended = errors.Join(fmt.Errorf("%s has ended", r.called), broken, lines.Err())
	for _, to := range r.waiting {
		to <- reply{Error: r.ended.Error()}
	}
	clear(r.waiting)
	close(r.gone)
}

func (r *remote) name() string { return r.called }

func (r *remote) does() ([]action, bool) { return r.knows, r.branch }

func (r *remote) do(ctx context.Context, asked request) ([]row, error) {
	to := make(chan reply, 1)
	if err := r.send(asked, to); err != nil {
		return nil, err
	}
	select {
	case got := <-to:
		switch {
		case got.NoRef:
			return nil, fmt.Errorf("%w: %s", errNoRef, got.Error)
		case got.Error != "":
			return nil, errors.New(got.Error)
		}
		rows := make([]row, len(got.Rows))
		for i, one := range got.Rows {
			rows[i] = row{one[0], one[1]}
		}
		return rows, nil
	case <-ctx.Done():
		_ = r.process.Signal(syscall.SIGUSR1) // makes it log its threads' stacks
		return nil, fmt.Errorf("%s: %w: %w", r.called, errSilent, ctx.Err())
	}
}

// send sends a request. The answer goes to the channel.
func (r *remote) send(asked request, to chan reply) error {
	id, err := r.await(to)
	if err != nil {
		return err
	}
	line, err := json.Marshal(struct {
		ID int `json:"id"`
		request
	}{id, asked})
	if err != nil {
		return err
	}
	r.writing.Lock()
	defer r.writing.Unlock()
	_, err = r.in.Write(append(line, '\n'))
	return err
}

// await allocates an ID for a request whose answer goes to the channel.
func (r *remote) await(to chan reply) (id int, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ended != nil {
		return 0, r.ended
	}
	r.serial++
	r.waiting[r.serial] = to
	return r.serial, nil
}
