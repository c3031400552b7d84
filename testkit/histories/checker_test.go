package histories

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"moorage"
	"moorage/internal/jsontext"
	"moorage/metadata"
)

// handmade is a handwritten history of one group, with the files that it needs.
type handmade struct {
	t      *testing.T
	files  map[string][]byte
	events []Event
}

// version makes the version that results from a call, and its file. The previous version is at
// base, or the table is new.
func (h *handmade) version(call Call, location, base, table string) Answer {
	h.t.Helper()
	return h.versionOf([]Call{call}, location, base, table)
}

// versionOf is like version, for several calls that share the version.
func (h *handmade) versionOf(calls []Call, location, base, table string) Answer {
	h.t.Helper()
	now := time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC)
	var updates []metadata.Update
	for _, call := range calls {
		_, encoded := call.Commit(now.UnixMilli(), "file:///wh")
		decoded, err := checked(metadata.DecodeUpdates, encoded)
		if err != nil {
			h.t.Fatal(err)
		}
		updates = append(updates, decoded...)
	}
	var err error
	env := metadata.Env{Now: now, BaseLocation: base, NewUUID: func() string { return table }}
	var document *metadata.Document
	if raw, ok := h.files[base]; ok {
		if document, err = metadata.Parse(raw); err == nil {
			document, err = document.Apply(updates, env)
		}
	} else {
		document, err = metadata.Create(metadata.CreateTable{
			Location: "file:///wh/t", Properties: map[string]string{PropClient(calls[0].Client): calls[0].ID},
			Schema: []byte(`{"type":"struct","schema-id":0,"fields":[{"id":1,"name":"id","required":false,"type":"long"}]}`),
		}, env)
	}
	if err != nil {
		h.t.Fatal(err)
	}
	h.files[location] = document.Raw()
	return Found(location, document)
}

// add adds an event that begins and ends as given.
func (h *handmade) add(from, to int64, call Call, answer Answer) {
	h.events = append(h.events, Event{call, answer, from, to})
}

func (h *handmade) next(action Action, name int) Call {
	return Call{ID: fmt.Sprintf("0.%d", len(h.events)), Action: action, Name: name}
}

// create adds a call that made a table. Calls added with this method and the following ones happen
// one after another.
func (h *handmade) create(name int, location, table string) {
	call := h.next(Create, name)
	h.add(h.now(), h.now(), call, h.version(call, location, "", table))
}

func (h *handmade) set(name int, base, location string) {
	call := h.next(Set, name)
	h.add(h.now(), h.now(), call, h.version(call, location, base, ""))
}

// together returns one call for each of the given number of clients. The calls set properties of
// the first name.
func (h *handmade) together(clients int) []Call {
	calls := make([]Call, clients)
	for client := range calls {
		calls[client] = h.next(Set, 0)
		calls[client].Client, calls[client].ID = client, fmt.Sprintf("%d.%d", client, len(h.events))
	}
	return calls
}

// answered adds concurrent calls that all get the same answer.
func (h *handmade) answered(calls []Call, answer Answer) {
	from := h.now()
	for _, call := range calls {
		h.add(from, from+5, call, answer)
	}
}

func (h *handmade) load(name int, location string) {
	document, err := metadata.Parse(h.files[location])
	if err != nil {
		h.t.Fatal(err)
	}
	h.done(Load, name, Found(location, document))
}

func (h *handmade) done(action Action, name int, answer Answer) {
	h.add(h.now(), h.now(), h.next(action, name), answer)
}

func (h *handmade) refused(action Action, name int, kind moorage.Kind) {
	h.done(action, name, Answer{Err: moorage.Errorf(kind, "refused")})
}

func (h *handmade) rename(name, to int) {
	call := h.next(Rename, name)
	call.To = to
	h.add(h.now(), h.now(), call, Answer{})
}

func (h *handmade) now() int64 { return int64(10 * (len(h.events) + 1)) }

// stretch makes the last event's call end later, so that later calls overlap with it.
func (h *handmade) stretch(to int64) { h.events[len(h.events)-1].To = to }

// checkerTest is a valid or invalid history.
type checkerTest struct {
	name    string
	history func(h *handmade)
	right   bool
}

// The checker accepts valid histories and rejects invalid ones.
func TestChecker(t *testing.T) {
	t.Parallel()
	tests := []checkerTest{
		{"commits one after the other", func(h *handmade) { h.create(0, "a", "x"); h.set(0, "a", "b"); h.load(0, "b") }, true},
		{"lost update", func(h *handmade) { h.create(0, "a", "x"); h.set(0, "a", "b"); h.set(0, "a", "c") }, false},
		{"lost update, both at once", func(h *handmade) {
			h.create(0, "a", "x")
			h.set(0, "a", "b")
			h.stretch(1000)
			h.set(0, "a", "c")
			h.stretch(1000)
		}, false},
		{"stale load", func(h *handmade) { h.create(0, "a", "x"); h.set(0, "a", "b"); h.load(0, "a") }, false},
		{"load during a commit", func(h *handmade) {
			h.create(0, "a", "x")
			h.set(0, "a", "b")
			h.stretch(1000)
			h.load(0, "a")
			h.load(0, "b")
		}, true},
		{"load goes back", func(h *handmade) {
			h.create(0, "a", "x")
			h.set(0, "a", "b")
			h.stretch(1000)
			h.load(0, "b")
			h.load(0, "a")
		}, false},
		{"created twice", func(h *handmade) { h.create(0, "a", "x"); h.create(0, "b", "y") }, false},
		{"dropped twice", func(h *handmade) {
			h.create(0, "a", "x")
			h.done(Drop, 0, Answer{})
			h.done(Drop, 0, Answer{})
		}, false},
		{"dropped and still there", func(h *handmade) { h.create(0, "a", "x"); h.done(Drop, 0, Answer{}); h.load(0, "a") }, false},
		{"commit undone by unregister", func(h *handmade) {
			h.create(0, "a", "x")
			h.set(0, "a", "b")
			document, _ := metadata.Parse(h.files["a"])
			h.done(Unregister, 0, Found("a", document))
		}, false},
		{"renamed", func(h *handmade) {
			h.create(0, "a", "x")
			h.rename(0, 1)
			h.refused(Load, 0, moorage.KindNoSuchTable)
			h.set(1, "a", "b")
		}, true},
		{"renamed and under both names", func(h *handmade) { h.create(0, "a", "x"); h.rename(0, 1); h.load(1, "a"); h.load(0, "a") }, false},
		{"renamed and under no name", func(h *handmade) {
			h.create(0, "a", "x")
			h.rename(0, 1)
			h.refused(Exists, 1, moorage.KindNoSuchTable)
		}, false},
		{"list shows two names of one table", func(h *handmade) {
			h.create(0, "a", "x")
			h.rename(0, 1)
			h.stretch(1000)
			h.done(List, 0, Answer{Listed: [Names]bool{true, true}})
		}, false},
		{"commit on what another table had", func(h *handmade) {
			h.create(0, "a", "x")
			h.done(Drop, 0, Answer{})
			h.create(0, "b", "y")
			h.set(0, "a", "c")
		}, false},
		{"refused without a reason", func(h *handmade) { h.create(0, "a", "x"); h.refused(Set, 0, moorage.KindCommitFailed) }, false},
		{"unavailable without a fault", func(h *handmade) { h.create(0, "a", "x"); h.refused(Set, 0, moorage.KindUnavailable) }, false},
		{"unknown, and never happened", func(h *handmade) {
			h.create(0, "a", "x")
			h.refused(Drop, 0, moorage.KindCommitUnknown)
			h.load(0, "a")
		}, true},
		{"unknown, and happened late", func(h *handmade) {
			h.create(0, "a", "x")
			h.refused(Drop, 0, moorage.KindCommitUnknown)
			h.load(0, "a")
			h.refused(Load, 0, moorage.KindNoSuchTable)
		}, true},
		{"unknown, and happened twice", func(h *handmade) {
			h.create(0, "a", "x")
			h.refused(Drop, 0, moorage.KindCommitUnknown)
			h.refused(Load, 0, moorage.KindNoSuchTable)
			h.create(0, "b", "y")
			h.refused(Load, 0, moorage.KindNoSuchTable)
		}, false},
		{"namespace dropped and made again", func(h *handmade) {
			h.create(0, "a", "x")
			h.refused(DropNS, 0, moorage.KindNamespaceNotEmpty)
			h.done(Drop, 0, Answer{})
			h.done(DropNS, 0, Answer{})
			h.refused(Create, 0, moorage.KindNoSuchNamespace)
			h.done(CreateNS, 0, Answer{})
			h.create(0, "b", "y")
		}, true},
		{"namespace dropped with a table in it", func(h *handmade) { h.create(0, "a", "x"); h.done(DropNS, 0, Answer{}) }, false},
		{"table in no namespace", func(h *handmade) { h.done(DropNS, 0, Answer{}); h.create(0, "a", "x") }, false},
		{"namespace not empty without a table", func(h *handmade) { h.refused(DropNS, 0, moorage.KindNamespaceNotEmpty) }, false},
		{"namespace made twice", func(h *handmade) { h.done(CreateNS, 0, Answer{}) }, false},
		{"commit unknown, and seen later", func(h *handmade) {
			h.create(0, "a", "x")
			call := h.next(Set, 0)
			h.version(call, "b", "a", "")
			h.add(h.now(), h.now(), call, Answer{Err: moorage.Errorf(moorage.KindCommitUnknown, "no answer")})
			h.load(0, "a")
			h.load(0, "b")
		}, true},
		{"commit unknown, seen and undone", func(h *handmade) {
			h.create(0, "a", "x")
			call := h.next(Set, 0)
			h.version(call, "b", "a", "")
			h.add(h.now(), h.now(), call, Answer{Err: moorage.Errorf(moorage.KindCommitUnknown, "no answer")})
			h.load(0, "b")
			h.load(0, "a")
		}, false},
		{"a commit that lost what was there", func(h *handmade) {
			h.create(0, "a", "x")
			h.set(0, "a", "b")
			call := h.next(Set, 0)
			call.Client = 1
			h.version(call, "c", "a", "")
			h.files["c"] = []byte(strings.Replace(string(h.files["c"]), `"metadata-file":"a"`, `"metadata-file":"b"`, 1))
			document, err := metadata.Parse(h.files["c"])
			if err != nil {
				h.t.Fatal(err)
			}
			h.add(h.now(), h.now(), call, Found("c", document))
		}, false},
	}
	for _, tt := range append(tests, sharedVersions()...) {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			h := &handmade{t: t, files: map[string][]byte{}}
			tt.history(h)
			k, err := NewChecker(h.files, false)
			if err != nil {
				t.Fatal(err)
			}
			problems, result := k.Judge(h.events)
			if right := len(problems) == 0 && result == porcupine.Ok; right != tt.right {
				t.Errorf("judged %v with the problems %q", result, problems)
			}
		})
	}
}

// document returns the document in the file at location.
func (h *handmade) document(location string) *metadata.Document {
	h.t.Helper()
	document, err := metadata.Parse(h.files[location])
	if err != nil {
		h.t.Fatal(err)
	}
	return document
}

// checked decodes a part of a request like a server, which checks the whole body first.
func checked[T any, S ~string | ~[]byte](decode func(jsontext.Checked) (T, error), raw S) (T, error) {
	sound, err := jsontext.Check([]byte(raw))
	if err != nil {
		var none T
		return none, err
	}
	return decode(sound)
}
