package chaos

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/apache/iceberg-go/table"
)

const (
	// quiet exceeds the duration of any request on a node, and the time that a transaction may stay
	// undecided. After it, an unacknowledged change has happened or never will.
	quiet = 70 * time.Second
	// readPause is the time between two attempts.
	readPause = 100 * time.Millisecond
	// rowsMax bounds the rows of one append, and contentMax the rows that a writer keeps.
	rowsMax    = 3
	contentMax = 60
	// refsMax bounds the tags and branches that a writer has at a time.
	refsMax = 3
)

// writer changes one table. On its own table it uses all actions; on a shared table it adds and
// deletes its own rows. It is for use by one goroutine.
type writer struct {
	*world
	id     int64
	table  string
	shared bool
	random *rand.Rand
	model  *model
	serial int64 // of rows and refs

	done, failed map[string]int // changes by their kind
	longest      time.Duration  // the longest duration of one change
	reads        int
	lastFailure  error
	silent       error // set when an engine did not answer; its change may happen at any time
}

func newWriter(w *world, id int64, name string, shared bool, random *rand.Rand) *writer {
	return &writer{
		world: w, id: id, table: name, shared: shared, random: random, model: newModel(),
		done: make(map[string]int), failed: make(map[string]int),
	}
}

// engine returns the two engines in random order.
func (w *writer) engine() (writes, reads engine) {
	if w.random.IntN(2) == 0 {
		return w.engines[0], w.engines[1]
	}
	return w.engines[1], w.engines[0]
}

// other returns the engine that is not e.
func (w *writer) other(e engine) engine {
	if e == w.engines[0] {
		return w.engines[1]
	}
	return w.engines[0]
}

func (w *writer) node() int { return w.random.IntN(len(w.nodes)) }

// numbers returns some unused numbers.
func (w *writer) numbers() []int64 {
	numbers := make([]int64, 1+w.random.IntN(rowsMax))
	for i := range numbers {
		w.serial++
		numbers[i] = w.serial
	}
	return numbers
}

func (w *writer) rows(numbers []int64) []row {
	rows := make([]row, len(numbers))
	for i, n := range numbers {
		rows[i] = row{w.id, n}
	}
	return rows
}

// run writes and reads until ctx ends. The error describes a violation.
func (w *writer) run(ctx context.Context) error {
	for ctx.Err() == nil {
		writes, reads := w.engine()
		if w.model.isCrowded() {
			if err := w.rest(ctx, reads); err != nil {
				return err
			}
		}
		w.change(ctx, writes)
		if w.silent != nil || ctx.Err() != nil {
			return w.silent // the last change may be pending
		}
		if err := w.readBack(ctx, reads); err != nil {
			return err
		}
	}
	return nil
}

// rest waits until no change is pending, and reads main.
func (w *writer) rest(ctx context.Context, e engine) error {
	if sleep(ctx, quiet) != nil {
		return nil
	}
	w.model.rested()
	return w.compare(ctx, e, "")
}

// change makes one random change, through an engine or directly.
func (w *writer) change(ctx context.Context, e engine) {
	known, certain := w.model.known()
	switch dice := w.random.IntN(26); {
	case dice < 8 || w.model.unsettled:
		w.append(ctx, e)
	case dice < 12 || len(known) > contentMax:
		if !can(e, deletes) {
			e = w.other(e)
		}
		w.delete(ctx, e)
	case dice < 14 && can(e, merges) && certain:
		w.merge(ctx, e, known)
	case dice < 14 && can(e, upserts):
		w.upsert(ctx, e, known)
	case dice == 14 && can(e, compacts):
		w.do(ctx, e, request{Action: compacts}, stays)
	case w.shared:
		w.append(ctx, e)
	case dice == 15 && can(e, overwrites):
		w.overwrite(ctx, e)
	case dice == 16 && can(e, picks):
		numbers := w.numbers()
		w.do(ctx, e, request{Action: picks, Numbers: numbers}, adds(w.rows(numbers)))
	case !certain || len(known) == 0:
		w.append(ctx, e)
	case dice < 21 && len(w.model.refs) < refsMax:
		w.makeRef(ctx, known)
	default:
		w.useRef(ctx, e)
	}
}

func (w *writer) append(ctx context.Context, e engine) {
	numbers := w.numbers()
	w.do(ctx, e, request{Action: appends, Numbers: numbers}, adds(w.rows(numbers)))
}

func (w *writer) delete(ctx context.Context, e engine) {
	below := w.serial - w.random.Int64N(contentMax)
	w.do(ctx, e, request{Action: deletes, Below: below}, removesBelow(below))
}

// merge removes some rows and adds others in one change.
func (w *writer) merge(ctx context.Context, e engine, known content) {
	gone, numbers := w.some(known), w.numbers()
	w.do(ctx, e, request{Action: merges, Numbers: numbers, Gone: gone}, exchanges(w.rows(gone), w.rows(numbers)))
}

// upsert adds rows. To the writer's knowledge, some of them exist already.
func (w *writer) upsert(ctx context.Context, e engine, known content) {
	numbers := append(w.numbers(), w.some(known)...)
	w.do(ctx, e, request{Action: upserts, Numbers: numbers}, adds(w.rows(numbers)))
}

func (w *writer) overwrite(ctx context.Context, e engine) {
	numbers := w.numbers()
	rows := content{}
	for _, r := range w.rows(numbers) {
		rows[r] = true
	}
	w.do(ctx, e, request{Action: overwrites, Numbers: numbers}, becomes(rows))
}

// some returns the numbers of some randomly chosen rows.
func (w *writer) some(rows content) []int64 {
	numbers := make([]int64, 0, len(rows))
	for r := range rows {
		numbers = append(numbers, r.number)
	}
	slices.Sort(numbers)
	w.random.Shuffle(len(numbers), func(i, j int) { numbers[i], numbers[j] = numbers[j], numbers[i] })
	return numbers[:min(len(numbers), 1+w.random.IntN(rowsMax))]
}

// do has an engine change main.
func (w *writer) do(ctx context.Context, e engine, r request, change effect) {
	w.model.did(change, w.ask(ctx, e, string(r.Action), r) == nil)
}

// ask has an engine change a ref.
func (w *writer) ask(ctx context.Context, e engine, what string, r request) error {
	r.Table, r.Writer, r.Node = w.table, w.id, w.node()
	err := w.attempt(ctx, what+" by "+e.name(), fmt.Sprintf("%+v", r), func(ctx context.Context) error {
		_, err := e.do(ctx, r)
		return err
	})
	if errors.Is(err, errSilent) {
		w.silent = err
	}
	return err
}

// attempt makes a change and records the outcome. what is the kind of change; detail is further
// text for the journal.
func (w *writer) attempt(ctx context.Context, what, detail string, do func(ctx context.Context) error) error {
	began := time.Now()
	ctx, cancel := w.bounded(ctx)
	defer cancel()
	err := do(ctx)
	took := time.Since(began)
	w.journal.Printf("writer %d of %s: %s: %s: took %s: %v", w.id, w.table, what, detail, took.Round(time.Millisecond), err)
	w.longest = max(w.longest, took)
	if err == nil {
		w.done[what]++
		return nil
	}
	w.failed[what]++
	w.lastFailure = fmt.Errorf("%s: %w", what, err)
	return err
}

// bounded returns a context for one change or one attempt to read. It does not end with the writer,
// so the last change can complete.
func (w *writer) bounded(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), w.opTimeout)
}

// names returns the names of the refs that the writer knows.
func (w *writer) names() []string {
	names := make([]string, 0, len(w.model.refs))
	for name := range w.model.refs {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// makeRef creates a tag or a branch at the head of main.
func (w *writer) makeRef(ctx context.Context, known content) {
	kind, letter := table.BranchRef, "b"
	if w.random.IntN(2) == 0 {
		kind, letter = table.TagRef, "t"
	}
	w.serial++
	name := fmt.Sprintf("%s%d", letter, w.serial)
	err := w.attempt(ctx, "make a ref", name, func(ctx context.Context) error {
		return w.setRef(ctx, w.table, name, kind, table.MainBranch, w.node())
	})
	if err == nil {
		w.model.refs[name] = known // an unacknowledged one is never used
	}
}

// useRef writes to a branch, publishes it, rolls back to a tag, or drops one of them.
func (w *writer) useRef(ctx context.Context, e engine) {
	names := w.names()
	if len(names) == 0 {
		return
	}
	name := names[w.random.IntN(len(names))]
	switch dice := w.random.IntN(4); {
	case dice == 0 || len(names) >= refsMax && dice == 1:
		delete(w.model.refs, name)
		_ = w.attempt(ctx, "drop a ref", name, func(ctx context.Context) error { // one that stays is never used again
			return w.dropRef(ctx, w.table, name, w.node())
		})
	case dice == 1 || strings.HasPrefix(name, "t"):
		rows := w.model.refs[name]
		err := w.attempt(ctx, "set main to a ref", name, func(ctx context.Context) error {
			return w.setRef(ctx, w.table, table.MainBranch, table.BranchRef, name, w.node())
		})
		w.model.did(becomes(rows), err == nil)
	default:
		if _, branches := e.does(); !branches {
			return
		}
		numbers := w.numbers()
		err := w.ask(ctx, e, "append to a branch", request{Action: appends, Ref: name, Numbers: numbers})
		rows := w.model.refs[name]
		if delete(w.model.refs, name); err == nil {
			w.model.refs[name] = adds(w.rows(numbers))(rows)
		}
	}
}

// readBack reads main, a tag or a branch, and compares the rows with the expected ones.
func (w *writer) readBack(ctx context.Context, e engine) error {
	ref := ""
	if names := w.names(); len(names) > 0 && w.random.IntN(4) == 0 {
		ref = names[w.random.IntN(len(names))]
	}
	return w.compare(ctx, e, ref)
}

// compare reads a ref and compares its rows with the expected ones.
func (w *writer) compare(ctx context.Context, e engine, ref string) error {
	rows, err := w.read(ctx, e, ref)
	if err != nil || rows == nil {
		return err
	}
	w.journal.Printf("writer %d of %s: %s reads %q: [%s]", w.id, w.table, e.name(), ref, rows)
	if ref == "" {
		err = w.model.met(rows)
	} else if want := w.model.refs[ref]; want.String() != rows.String() {
		err = fmt.Errorf("ref %s has [%s], want [%s]", ref, rows, want)
	}
	if err != nil {
		return fmt.Errorf("%s reads %s as writer %d: %w", e.name(), w.table, w.id, err)
	}
	w.reads++
	return nil
}

// read reads the writer's rows in a ref. It retries for a while: nodes are killed, and a snapshot
// may expire during a read. It returns nil if ctx ends.
func (w *writer) read(ctx context.Context, e engine, ref string) (content, error) {
	var last error
	for deadline := time.Now().Add(w.readSpan); time.Now().Before(deadline); {
		trying, cancel := w.bounded(ctx)
		found, err := e.do(trying, request{Action: reads, Table: w.table, Ref: ref, Node: w.node()})
		cancel()
		if err == nil {
			return w.mine(found)
		}
		w.journal.Printf("writer %d of %s: %s does not read %q: %v", w.id, w.table, e.name(), ref, err)
		if errors.Is(err, errNoRef) {
			return nil, fmt.Errorf("%s: %w", w.table, err)
		}
		last = err
		if sleep(ctx, readPause) != nil {
			return nil, nil
		}
	}
	return nil, fmt.Errorf("%s does not read %s %s: %w", e.name(), w.table, ref, last)
}

// mine returns the writer's rows. A duplicate row is an error.
func (w *writer) mine(found []row) (content, error) {
	rows := content{}
	for _, r := range found {
		if r.writer != w.id {
			if !w.shared {
				return nil, fmt.Errorf("%s has a row of writer %d", w.table, r.writer)
			}
			continue
		}
		if rows[r] {
			return nil, fmt.Errorf("%s has the row %d/%d twice", w.table, r.writer, r.number)
		}
		rows[r] = true
	}
	return rows, nil
}
