package audit

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"moorage"
)

func newJitter() *rand.Rand { return rand.New(rand.NewPCG(1, 2)) }

// out is an Out that can fail, even in the middle of a line.
type out struct {
	bytes.Buffer
	fail     error
	most     int // number of bytes written before the next failure
	reopened int
	closed   bool
}

func (o *out) Write(text []byte) (int, error) {
	if o.fail != nil {
		n := min(o.most, len(text))
		o.Buffer.Write(text[:n])
		return n, o.fail
	}
	return o.Buffer.Write(text)
}

func (o *out) Reopen() error { o.reopened++; return o.fail }
func (o *out) Close() error  { o.closed = true; return nil }

// read returns the lines in o, and fails the test if one is not JSON.
func (o *out) read(t *testing.T) (lines []map[string]any) {
	t.Helper()
	for text := range strings.Lines(o.String()) {
		var line map[string]any
		if err := json.Unmarshal([]byte(text), &line); err != nil {
			t.Fatalf("%q: %v", text, err)
		}
		lines = append(lines, line)
	}
	return lines
}

// callers returns the callers of all lines of o.
func (o *out) callers(t *testing.T) string {
	t.Helper()
	var callers []string
	for _, line := range o.read(t) {
		callers = append(callers, fmt.Sprint(line["caller"]))
	}
	return strings.Join(callers, " ")
}

func newLog(t *testing.T, o *out, config Config) *Log {
	t.Helper()
	config.Out, config.Jitter = o, newJitter()
	return New(config)
}

func run(t *testing.T, log *Log) {
	t.Helper()
	if err := log.run(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func read(caller string) Line {
	return Line{Event: Decision, Caller: caller, Decision: Allowed, Sampled: true}
}

func change(caller string) Line { return Line{Event: Decision, Caller: caller, Decision: Allowed} }

// One of N allowed reads is written. Changes and denials are always written.
func TestReadsAreSampled(t *testing.T) {
	t.Parallel()
	o := new(out)
	log := newLog(t, o, Config{Reads: 3})
	for i := range 7 {
		log.Note(read(fmt.Sprint("r", i)))
	}
	log.Note(change("w"))
	log.Note(Line{Event: Decision, Caller: "d", Decision: "forbid"})
	run(t, log)
	if got := o.callers(t); got != "r0 r3 r6 w d" {
		t.Errorf("written are %s", got)
	}
}

// If the buffer has no room, the oldest sampled reads are dropped first, and the log reports the
// number of dropped lines.
func TestBufferWithoutRoom(t *testing.T) {
	t.Parallel()
	o := new(out)
	log := newLog(t, o, Config{LinesMax: 4})
	for _, line := range []Line{change("w0"), read("r0"), read("r1"), change("w1"), change("w2"), read("r2"), change("w3"), change("w4"), read("r3")} {
		log.Note(line)
	}
	// r0, r1 and r2 were dropped to make room. w4 and r3 found only changes in the buffer.
	if got := log.Stats(); got != (Stats{DroppedReads: 4, DroppedLines: 1}) {
		t.Errorf("dropped are %+v", got)
	}
	run(t, log)
	if got := o.callers(t); got != "w0 w1 w2 w3 <nil>" {
		t.Errorf("written are %s", got)
	}
	lines := o.read(t)
	if last := lines[len(lines)-1]; last["event"] != "lines-dropped" || last["count"] != 5.0 {
		t.Errorf("the log tells %v", last)
	}
	run(t, log)
	if got := len(o.read(t)); got != len(lines) {
		t.Errorf("told again: %d lines", got)
	}
}

// A buffer that keeps dropping lines does not grow.
func TestBufferStaysSmall(t *testing.T) {
	t.Parallel()
	log := newLog(t, new(out), Config{LinesMax: 100})
	for i := range 100_000 {
		log.Note(read(fmt.Sprint(i)))
	}
	if got := cap(log.queue.lines); got > 1000 {
		t.Errorf("the buffer of 100 lines has room for %d", got)
	}
	if first := string(log.queue.batch()[0]); !strings.Contains(first, `"99900"`) {
		t.Errorf("the oldest is %s", first)
	}
}

// A strict log drops nothing: it refuses requests while it cannot write.
func TestStrict(t *testing.T) {
	t.Parallel()
	o := &out{fail: errors.New("no such disk")}
	log := newLog(t, o, Config{LinesMax: 2, Strict: true})
	for i := range 3 {
		if err := log.Room(); (err != nil) != (i == 2) {
			t.Errorf("after %d lines there is %v", i, err)
		}
		log.Note(read(fmt.Sprint("r", i)))
	}
	run(t, log)
	err := log.Room()
	if moorage.KindOf(err) != moorage.KindUnavailable || !strings.Contains(err.Error(), "no such disk") {
		t.Errorf("the refusal is %v", err)
	}
	o.fail = nil
	run(t, log)
	if err := log.Room(); err != nil {
		t.Errorf("refuses after it was written: %v", err)
	}
	if got := o.callers(t); got != "r0 r1 r2" {
		t.Errorf("written are %s", got)
	}
}

// If a write fails in the middle of a line, the whole line is written again.
func TestTornWrite(t *testing.T) {
	t.Parallel()
	o := new(out)
	log := newLog(t, o, Config{})
	log.Note(change("a"))
	log.Note(change("b"))
	o.fail, o.most = errors.New("no space left"), len(log.queue.batch()[0])+5
	run(t, log)
	if got := log.Trouble(); got != "cannot write: no space left" {
		t.Errorf("trouble is %q", got)
	}
	o.fail = nil
	o.WriteByte('\n') // as File does
	run(t, log)
	if got, written := log.Trouble(), log.Stats().Written; got != "" || written != 2 {
		t.Errorf("trouble is %q after %d lines", got, written)
	}
	if got := o.String(); strings.Count(got, `"caller":"a",`) != 1 || strings.Count(got, `"caller":"b",`) != 1 {
		t.Errorf("written is %q", got)
	}
}

// The log stops while its disk is nearly full, and continues later.
func TestDiskNearlyFull(t *testing.T) {
	t.Parallel()
	now, free := someTime, uint64(FreeBytesMin-1)
	o := new(out)
	log := newLog(t, o, Config{
		Now: func() time.Time { return now }, Free: func() (uint64, error) { return free, nil },
	})
	log.Note(change("a"))
	run(t, log)
	if o.Len() > 0 || !strings.Contains(log.Trouble(), "less than 1024 MiB") {
		t.Errorf("written is %q, trouble %q", o, log.Trouble())
	}
	now, free = now.Add(time.Second), FreeBytesMin
	run(t, log)
	if got := o.callers(t); got != "a" || log.Trouble() != "" {
		t.Errorf("written is %q, trouble %q", got, log.Trouble())
	}
}

// Refused credentials are one line for each address, reason and minute.
func TestRefusedAreCounted(t *testing.T) {
	t.Parallel()
	now := someTime
	o := new(out)
	log := newLog(t, o, Config{Now: func() time.Time { return now }})
	for range 1000 {
		log.NoteRefused("10.0.0.7", "expired")
	}
	log.NoteRefused("10.0.0.7", "unknown key")
	log.NoteRefused("10.0.0.8", "expired")
	run(t, log)
	if o.Len() > 0 {
		t.Errorf("written within the minute: %s", o)
	}
	now = now.Add(time.Minute)
	log.NoteRefused("10.0.0.8", "expired")
	run(t, log)
	var got []string
	for _, line := range o.read(t) {
		got = append(got, fmt.Sprint(line["time"], line["address"], line["reason"], line["count"]))
	}
	const minute = "2026-11-25T10:00:00.000000Z"
	want := []string{minute + "10.0.0.7expired1000", minute + "10.0.0.7unknown key1", minute + "10.0.0.8expired1"}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("written are %q, want %q", got, want)
	}
	if err := log.Close(); err != nil || len(o.read(t)) != 4 || !o.closed {
		t.Errorf("after close there are %d lines: %v", len(o.read(t)), err)
	}
}

// Beyond a limit, further addresses are counted as one.
func TestRefusedOfManyAddresses(t *testing.T) {
	t.Parallel()
	var r refused
	for i := range refusedMax + 500 {
		r.add(fmt.Sprint("address ", i), "expired", someTime)
	}
	lines := r.take(someTime, true)
	if last := lines[len(lines)-1]; len(lines) != refusedMax+1 || last.Address != refusedOthers || last.Count != 500 {
		t.Errorf("%d lines, the last %+v", len(lines), last)
	}
}

// A node remembers its last denials by request, even without a file.
func TestDenials(t *testing.T) {
	t.Parallel()
	log := New(Config{Jitter: newJitter()})
	for i := range DenialsMax + 10 {
		log.Note(Line{Event: Decision, RequestID: fmt.Sprint("r", i/2), Decision: "forbid", Caller: fmt.Sprint(i)})
		log.Note(Line{Event: Decision, RequestID: fmt.Sprint("r", i/2), Decision: Allowed})
	}
	if got := log.Denials("r4"); got != nil {
		t.Errorf("remembered for longer than it should be: %v", got)
	}
	if got := log.Denials("r5"); len(got) != 2 || got[0].Caller != "10" || got[1].Caller != "11" {
		t.Errorf("the oldest is %v", got)
	}
	if err := log.Close(); err != nil {
		t.Error(err)
	}
}

// Many goroutines note lines while the log is written.
func TestConcurrentNotes(t *testing.T) {
	t.Parallel()
	o := new(out)
	log := newLog(t, o, Config{})
	log.Start()
	var noting sync.WaitGroup
	for i := range 8 {
		noting.Go(func() {
			for range 200 {
				log.Note(change(fmt.Sprint(i)))
			}
		})
	}
	noting.Wait()
	if err := log.Close(); err != nil {
		t.Fatal(err)
	}
	if got := len(o.read(t)); got != 1600 || log.Stats().Written != 1600 {
		t.Errorf("%d lines are written", got)
	}
}

// A log whose file was moved away continues in a new file.
func TestReopen(t *testing.T) {
	t.Parallel()
	o := new(out)
	log := newLog(t, o, Config{})
	log.Reopen()
	run(t, log)
	run(t, log)
	if o.reopened != 1 {
		t.Errorf("reopened %d times", o.reopened)
	}
}

// By default, the first read in a minute by a caller, with an operation, of an object has its own
// line. The others share one line with their number. Each change has its own line.
func TestReadsAreSummed(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)
	o := new(out)
	log := newLog(t, o, Config{Now: func() time.Time { return now }})
	of := func(caller, table string) Line {
		line := read(caller)
		line.Operation, line.Object = "load-table", Object{Kind: "table", Warehouse: "w", Name: table, ID: table}
		return line
	}
	for range 50 {
		log.Note(of("ann", "t"))
		log.Note(of("ann", "u"))
		log.Note(of("bob", "t"))
	}
	log.Note(change("w"))
	log.Note(change("w"))
	run(t, log)
	if got := o.callers(t); got != "ann ann bob w w" {
		t.Errorf("written at once are %s", got)
	}
	now = now.Add(time.Minute)
	log.Note(of("ann", "t"))
	run(t, log)
	if got := o.callers(t); got != "ann ann bob w w ann ann ann bob" {
		t.Errorf("written a minute later are %s", got)
	}
	lines := 0
	for _, line := range o.read(t) {
		if count, summed := line["count"]; summed {
			lines += int(count.(float64))
		} else {
			lines++
		}
	}
	if lines != 3*50+2+1 {
		t.Errorf("the lines stand for %d, want %d", lines, 3*50+2+1)
	}
}

// Reads that are only counted lead to the same lines as reads that are noted, and none is left out.
func TestReadsAreCounted(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)
	o := new(out)
	log := newLog(t, o, Config{Now: func() time.Time { return now }})
	noted, all := 0, map[string]int{}
	var reading sync.WaitGroup
	var mu sync.Mutex
	for range 4 {
		reading.Go(func() {
			for i := range 500 {
				caller, table := fmt.Sprint("c", i%2), fmt.Sprint("t", i%5)
				line := read(caller)
				line.Operation, line.Object = "load-table", Object{Kind: "table", ID: table}
				isCounted := log.AddRead(Read{Caller: caller, Operation: "load-table", Kind: "table", ID: table})
				mu.Lock()
				if all[caller+table]++; !isCounted {
					noted++
				}
				mu.Unlock()
				if !isCounted {
					log.Note(line)
				}
			}
		})
	}
	reading.Wait()
	if noted < 2*len(all) || noted > 8*len(all) { // of each, the first two, and by each reader at most two
		t.Errorf("%d of %d reads are noted", noted, 4*500)
	}
	now = now.Add(time.Minute)
	if log.AddRead(Read{Caller: "c0", Operation: "load-table", Kind: "table", ID: "t0"}) {
		t.Error("the first read of a minute has no line")
	}
	if err := log.Close(); err != nil {
		t.Fatal(err)
	}
	got := map[string]int{}
	for _, line := range o.read(t) {
		count := 1
		if summed, ok := line["count"]; ok {
			count = int(summed.(float64))
		}
		got[fmt.Sprint(line["caller"], line["object"].(map[string]any)["id"])] += count
	}
	if !maps.Equal(got, all) {
		t.Errorf("the lines stand for %v, want %v", got, all)
	}
	for name, config := range map[string]Config{"each": {Reads: 1}, "one in seven": {Reads: 7}} {
		log := newLog(t, new(out), config)
		log.Note(read("c0"))
		log.Note(read("c0"))
		if log.AddRead(Read{Caller: "c0"}) {
			t.Errorf("%s: a read is only counted", name)
		}
	}
}

// More than 100 denials of a caller in a minute share lines, whatever names the caller makes up.
// Denials of other callers are unaffected.
func TestDenialsAreSummed(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)
	o := new(out)
	log := newLog(t, o, Config{Now: func() time.Time { return now }})
	deny := func(caller, operation string, i int) {
		log.Note(Line{
			Event: Decision, Caller: caller, Operation: operation, Decision: "hidden", RequestID: fmt.Sprint(caller, i),
			Object: Object{Kind: "table", Warehouse: "w", Name: fmt.Sprint("t", i)},
		})
	}
	for i := range 5000 {
		deny("eve", "load-table", i)
	}
	deny("eve", "drop-table", 1)
	deny("ann", "load-table", 1)
	if err := log.Close(); err != nil {
		t.Fatal(err)
	}
	counts, lines := map[string]int{}, o.read(t)
	for _, line := range lines {
		key := fmt.Sprint(line["caller"], " ", line["operation"])
		if count, summed := line["count"]; summed {
			counts[key] += int(count.(float64))
		} else {
			counts[key]++
		}
	}
	if len(lines) != denialsEach+3 || counts["eve load-table"] != 5000 || counts["eve drop-table"] != 1 || counts["ann load-table"] != 1 {
		t.Errorf("%d lines, which stand for %v", len(lines), counts)
	}
	if len(log.Denials("eve4999")) != 1 {
		t.Error("a denial without a line of its own is not remembered")
	}
}

// Even names of the maximum length do not make a long line.
func TestLongNamesAreCut(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("n", 1000)
	line := Line{Event: Decision, Caller: long, Object: Object{Kind: "table", Warehouse: long, Namespace: slices.Repeat([]string{long}, 32), Name: long}}
	text := line.append(nil)
	if len(text) > 3000 || !strings.Contains(string(text), "and 28 more") {
		t.Errorf("%d bytes: %s", len(text), text)
	}
}
