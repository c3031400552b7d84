package histories

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"moorage"
)

// reference returns a model without judge's shortcuts. A call with an unknown outcome may happen at
// any time after its start, with any version for which it wrote a file, or not at all.
func reference(k *Checker) porcupine.Model {
	j := &judge{Checker: k, followed: map[string]bool{}}
	model := porcupine.NondeterministicModel{
		Init: func() []any { return []any{state{}} },
		Step: func(from, input, output any) []any {
			s, call, answer := from.(state), input.(Call), output.(Answer)
			if !answer.Unknown() {
				if k.faults && moorage.KindOf(answer.Err) == moorage.KindUnavailable {
					return []any{s}
				}
				if ok, next := j.step(s, call, answer); ok {
					return []any{next}
				}
				return nil
			}
			next := []any{s}
			if !call.Action.Writes() {
				for _, e := range j.effectsOf(call, nil) {
					next = append(next, j.apply(s, e))
				}
			}
			for _, made := range k.authored[call.ID] {
				if ok, then := j.step(s, call, Answer{Version: made.Version, Base: made.base}); ok {
					next = append(next, then)
				}
			}
			return next
		},
	}
	return model.ToModel()
}

// judgeByReference reports whether an order was found. Calls that share a version made it when all
// of them had begun, because its file contains the changes of each. If the version was seen, each
// of the calls happened, with or without an answer.
func judgeByReference(k *Checker, events []Event) porcupine.CheckResult {
	began, seen := map[string]int64{}, k.sightings(events)
	for _, event := range events {
		began[event.Call.ID] = event.From
	}
	var operations []porcupine.Operation
	for _, event := range events {
		for _, made := range k.authored[event.Call.ID] { // only one in these histories
			for _, author := range made.authors {
				event.From = max(event.From, began[author])
			}
		}
		to := event.To
		if event.Answer.Unknown() {
			to = math.MaxInt64
			for _, made := range k.authored[event.Call.ID] {
				if _, was := seen[made.Location]; was {
					event.Answer = Answer{Version: made.Version, Base: made.base}
				}
			}
		}
		operations = append(operations, porcupine.Operation{
			ClientId: event.Call.Client, Input: event.Call, Call: event.From, Output: event.Answer, Return: to,
		})
	}
	return porcupine.CheckOperationsTimeout(reference(k), operations, checkTimeout)
}

// simulation makes histories of a group whose calls overlap but take effect one after another.
type simulation struct {
	*handmade
	random *rand.Rand
	state  state
}

// simulate makes a history of some calls. Some of them have unknown outcomes, and one may have a
// wrong answer.
func simulate(t *testing.T, random *rand.Rand) *handmade {
	h := &simulation{handmade: &handmade{t: t, files: map[string][]byte{}}, random: random}
	for range 6 + random.IntN(8) {
		h.call()
	}
	if random.IntN(3) > 0 {
		h.falsify()
	}
	return h.handmade
}

// call makes one call.
func (h *simulation) call() {
	actions := []Action{Load, Load, List, Exists, Set, Append, Append, Create, Create, Drop, Rename, DropNS, CreateNS}
	call := h.next(actions[h.random.IntN(len(actions))], h.random.IntN(2))
	call.To = 1 - call.Name
	if now := h.state.names[call.Name]; call.Action == Set && now != (Version{}) && h.random.IntN(2) == 0 {
		h.share(call.Name, now)
		return
	}
	at := h.now()
	from, to := at-h.random.Int64N(25), at+h.random.Int64N(25)
	answer, after := h.truth(&call)
	if !call.Action.reads() && h.random.IntN(2) == 0 {
		answer = Answer{Err: moorage.Errorf(moorage.KindCommitUnknown, "no answer")}
		if h.random.IntN(2) == 0 {
			after = h.state
		}
	}
	h.state = after
	h.add(from, to, call, answer)
}

// share makes commits that share a version. Most of the time, one of them is an append. Some have
// no answer; if none has an answer, the version may never have been current.
func (h *simulation) share(name int, now Version) {
	calls := h.together(2 + h.random.IntN(2))
	for i := range calls {
		calls[i].Name = name
	}
	if h.random.IntN(3) > 0 {
		calls[0].Action, calls[0].Table, calls[0].Parent = Append, now.Table, Head(h.document(now.Location))
		calls[0].Snapshot, calls[0].Sequence = int64(1000+len(h.events)), int64(1+len(h.events))
	}
	answer, at, told := h.versionOf(calls, "file-"+calls[0].ID, now.Location, ""), h.now(), false
	for _, call := range calls {
		given := answer
		if h.random.IntN(2) == 0 {
			given = Answer{Err: moorage.Errorf(moorage.KindCommitUnknown, "no answer")}
		}
		told = told || given.Err == nil
		h.add(at-h.random.Int64N(25), at+h.random.Int64N(25), call, given)
	}
	if told || h.random.IntN(2) == 0 {
		h.state = h.state.with(name, answer.Version)
	}
}

// truth returns the correct answer to a call, and the state after it. It fills in the requirements
// of an append.
func (h *simulation) truth(call *Call) (Answer, state) {
	refused := func(kind moorage.Kind) (Answer, state) {
		return Answer{Err: moorage.Errorf(kind, "refused")}, h.state
	}
	s, now := h.state, h.state.names[call.Name]
	switch {
	case call.Action == CreateNS && !s.gone:
		return refused(moorage.KindAlreadyExists)
	case s.gone && (call.Action == Create || call.Action == List || call.Action == DropNS):
		return refused(moorage.KindNoSuchNamespace)
	case call.Action == DropNS && !s.empty():
		return refused(moorage.KindNamespaceNotEmpty)
	case call.Action == Create && now != Version{}, call.Action == Rename && now != Version{} && s.names[call.To] != Version{}:
		return refused(moorage.KindAlreadyExists)
	case call.Action == List:
		var answer Answer
		for name, v := range s.names {
			answer.Listed[name] = v != Version{}
		}
		return answer, s
	case call.Action == CreateNS || call.Action == DropNS:
		return Answer{}, s.withNamespace(call.Action == CreateNS)
	case call.Action == Create:
		answer := h.version(*call, "file-"+call.ID, "", "table-"+call.ID)
		return answer, s.with(call.Name, answer.Version)
	case now == Version{}:
		return refused(moorage.KindNoSuchTable)
	case call.Action == Load:
		return Found(now.Location, h.document(now.Location)), s
	case call.Action == Drop:
		return Answer{}, s.with(call.Name, Version{})
	case call.Action == Rename:
		return Answer{}, s.renamed(call.Name, call.To)
	case call.Action == Set || call.Action == Append:
		return h.commit(call)
	}
	return Answer{}, s // the table exists
}

// commit makes a commit to an existing table. An append is refused now and then, because its base
// is an older head.
func (h *simulation) commit(call *Call) (Answer, state) {
	now := h.state.names[call.Name]
	if call.Action == Append {
		call.Table, call.Parent = now.Table, Head(h.document(now.Location))
		call.Snapshot, call.Sequence = int64(1000+len(h.events)), int64(1+len(h.events))
		if before := Found(now.Location, h.document(now.Location)).Base; before != "" && h.random.IntN(3) == 0 && Head(h.document(before)) != call.Parent {
			call.Parent = Head(h.document(before))
			return Answer{Err: moorage.Errorf(moorage.KindCommitFailed, "refused")}, h.state
		}
	}
	answer := h.version(*call, "file-"+call.ID, now.Location, "")
	return answer, h.state.with(call.Name, answer.Version)
}

// falsify gives one call the answer of another call. Among answers that contain a version, it
// changes only those to loads. Versions in answers to writes are compared with their files, before
// the search for an order.
func (h *simulation) falsify() {
	const tries = 8
	for range tries {
		wrong, other := &h.events[h.random.IntN(len(h.events))], h.events[h.random.IntN(len(h.events))]
		versioned := wrong.Call.Action.Writes() || wrong.Call.Action != Load && other.Answer.Version != Version{}
		if !wrong.Answer.Unknown() && !other.Answer.Unknown() && !versioned {
			wrong.Answer = other.Answer
			return
		}
	}
}

// The search finds an order exactly when the search without shortcuts does.
func TestJudgeAgreesWithReference(t *testing.T) {
	t.Parallel()
	seed := uint64(time.Now().UnixNano())
	found := map[porcupine.CheckResult]int{}
	for n := range 3000 {
		random := rand.New(rand.NewPCG(seed, uint64(n)))
		h := simulate(t, random)
		k, err := NewChecker(h.files, false)
		if err != nil {
			t.Fatal(err)
		}
		_, got := k.Judge(h.events)
		want := judgeByReference(k, h.events)
		found[want]++
		if got != want {
			slices.SortFunc(h.events, func(a, b Event) int { return int(a.From - b.From) })
			for _, event := range h.events {
				t.Logf("%d to %d: %s", event.From, event.To, event)
			}
			t.Fatalf("seed %d, history %d: judged %v, want %v", seed, n, got, want)
		}
	}
	t.Logf("histories by result: %v", found)
	if found[porcupine.Ok] < 100 || found[porcupine.Illegal] < 100 {
		t.Errorf("seed %d: histories by result: %v; want some of both", seed, found)
	}
}
