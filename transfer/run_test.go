package transfer

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// lake returns a source with n tables in three namespaces.
func lake(n int) *fake {
	source := newFake("old")
	for i := range n {
		levels := []string{"a", fmt.Sprint("t", i)}
		if i%3 == 1 {
			levels = []string{"b", "c", fmt.Sprint("t", i)}
		}
		source.add(fmt.Sprint("uuid", i), levels...)
	}
	return source
}

// carry plans, applies, compares and finishes a run.
func carry(ctx context.Context, r *Run, journal string) (plan []Planned, verified []Verified, err error) {
	if r.Journal, err = OpenJournal(journal, *r); err != nil {
		return nil, nil, err
	}
	defer func() { err = errors.Join(err, r.Journal.Close()) }()
	if plan, err = r.Plan(ctx); err != nil {
		return nil, nil, err
	}
	if plan, err = r.Apply(ctx, plan); err != nil {
		return nil, nil, err
	}
	if verified, err = r.Verify(ctx, plan); err != nil {
		return nil, nil, err
	}
	return plan, verified, r.Finish()
}

func mustCarry(t *testing.T, r *Run, journal string) ([]Planned, []Verified) {
	t.Helper()
	plan, verified, err := carry(t.Context(), r, journal)
	if err != nil {
		t.Fatal(err)
	}
	return plan, verified
}

func statuses(plan []Planned) string {
	var all []string
	for _, p := range plan {
		all = append(all, p.Object.String()+" "+string(p.Status))
	}
	return strings.Join(all, ", ")
}

// TestPlanChangesNothing: a plan has each object with what would become of it, and no catalog
// changes.
func TestPlanChangesNothing(t *testing.T) {
	t.Parallel()
	source, target := newFake("old"), newFake("new")
	source.add("u1", "a", "fresh")
	source.add("u2", "a", "same")
	source.add("u3", "a", "taken")
	source.add("bad", "a", "unreadable")
	moved := source.add("u4", "a", "moved")
	changed := source.add("u5", "a", "changed")
	source.add("u1/in", "a", "inner") // its location is in that of fresh
	view := source.add("u6", "a", "view")
	delete(source.objects, view.key())
	view.View, view.MetadataLocation = true, ""
	source.objects[view.key()] = view
	target.add("u2", "a", "same")
	target.add("other", "a", "taken")
	target.add("u4", "a", "moved")
	target.add("u5", "a", "changed")
	target.mirrors[moved.key()] = "old"
	source.commit(moved)
	source.commit(changed)
	inner := source.objects[Object{Namespace: []string{"a"}, Name: "inner"}.key()]
	if inner.Name == "" {
		t.Fatal("there is no inner table")
	}
	before := source.state() + target.state()
	r := &Run{Source: source, Target: target, Jobs: 3, Journal: &Journal{}}
	plan, err := r.Plan(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	const want = "a.changed changed-here, a.fresh new, a.inner location-nested, a.moved moved, a.same same, " +
		"a.taken name-taken, a.unreadable unreadable, a.view view"
	if got := statuses(plan); got != want {
		t.Errorf("the plan is\n%s, want\n%s", got, want)
	}
	if source.state()+target.state() != before {
		t.Error("a plan changed a catalog")
	}
}

// TestImportEverything: all objects arrive with their metadata files, below the namespace that the
// caller chose; namespaces have their properties; the globs select.
func TestImportEverything(t *testing.T) {
	t.Parallel()
	source, target := lake(20), newFake("new")
	source.namespaces["empty"] = map[string]string{"k": "v"}
	r := &Run{Source: source, Target: target, Jobs: 4, Choice: Choice{Into: []string{"x", "y"}}}
	plan, verified := mustCarry(t, r, "")
	if len(plan) != 20 || len(verified) != 20 {
		t.Fatalf("%d planned, %d compared", len(plan), len(verified))
	}
	for _, v := range verified {
		if !v.IsAlike() {
			t.Errorf("%s: %+v", v.Object, v)
		}
	}
	for _, o := range source.objects {
		there := r.Choice.there(o)
		if is := target.objects[there.key()]; is.MetadataLocation != o.MetadataLocation || target.mirrors[there.key()] != "old" {
			t.Errorf("%s is %+v, a mirror of %q", o, is, target.mirrors[there.key()])
		}
	}
	if got := fmt.Sprint(target.namespaces["x\x1fy\x1fb\x1fc"], target.namespaces["x\x1fy\x1fempty"]); got != "map[owner:b\x1fc] map[k:v]" {
		t.Errorf("the namespaces have %s", got)
	}

	chosen := newFake("new")
	mustCarry(t, &Run{Source: source, Target: chosen, Writable: true, Choice: Choice{Include: []string{"b.*"}, Exclude: []string{"*t1?"}}}, "")
	if _, made := chosen.namespaces["a"]; made || len(chosen.objects) != 3 || len(chosen.mirrors) != 0 {
		t.Errorf("the globs chose\n%s", chosen.state())
	}
}

// TestVerifyFindsEachDifference: each member that differs is named.
func TestVerifyFindsEachDifference(t *testing.T) {
	t.Parallel()
	here := Object{MetadataLocation: "f", Facts: factsOf("u/v1")}
	for member, change := range map[string]func(o *Object){
		"metadata-location":    func(o *Object) { o.MetadataLocation = "g" },
		"uuid":                 func(o *Object) { o.Facts.UUID = "w" },
		"location":             func(o *Object) { o.Facts.Location = "w" },
		"format-version":       func(o *Object) { o.Facts.Format = 3 },
		"current-snapshot-id":  func(o *Object) { o.Facts.Snapshot = 3 },
		"current-schema-id":    func(o *Object) { o.Facts.Schema = 3 },
		"last-sequence-number": func(o *Object) { o.Facts.Sequence = 3 },
		"refs.main":            func(o *Object) { o.Facts.Refs["main"] = 9 },
		"refs.audit":           func(o *Object) { o.Facts.Refs["audit"] = 9 },
	} {
		there := Object{MetadataLocation: "f", Facts: factsOf("u/v1")}
		change(&there)
		if found := differences(here, there); len(found) != 1 || found[0].Member != member {
			t.Errorf("%s: found %+v", member, found)
		}
	}
}

// TestVerifyFollows: a mirror whose source moves on while it is compared moves too.
func TestVerifyFollows(t *testing.T) {
	t.Parallel()
	source, target := lake(3), newFake("new")
	commits := 0
	r := &Run{Source: source, Target: target}
	target.before = func(call string) error {
		if strings.HasPrefix(call, "load") && commits < 2 {
			commits++
			source.commit(Object{Namespace: []string{"a"}, Name: "t0"})
		}
		return nil
	}
	_, verified := mustCarry(t, r, "")
	for _, v := range verified {
		if !v.IsAlike() {
			t.Errorf("%s differs: %+v", v.Object, v.Differences)
		}
	}
}

// TestImportKilled kills a run before and after each of its calls, and repeats it with its journal.
// The result is that of a run that nothing disturbed, and what had arrived is not registered again.
func TestImportKilled(t *testing.T) {
	t.Parallel()
	whole := newFake("new")
	mustCarry(t, &Run{Source: lake(7), Target: whole, Jobs: 1}, filepath.Join(t.TempDir(), "journal"))
	want := whole.state()
	for _, isAfter := range []bool{false, true} {
		for k, ended := 0, false; !ended; k++ {
			source, target := lake(7), newFake("new")
			journal := filepath.Join(t.TempDir(), "journal")
			calls := 0
			kill := func(string) error {
				if calls++; calls > k {
					return errKilled
				}
				return nil
			}
			if isAfter {
				source.after, target.after = kill, kill
			} else {
				source.before, target.before = kill, kill
			}
			_, _, err := carry(t.Context(), &Run{Source: source, Target: target, Jobs: 1}, journal)
			ended = err == nil
			source.before, target.before, source.after, target.after = nil, nil, nil, nil
			plan, verified := mustCarry(t, &Run{Source: source, Target: target, Jobs: 1}, journal)
			if got := target.state(); got != want || len(plan) != 7 || len(verified) != 7 {
				t.Fatalf("killed at call %d: the target has\n%s\nwant\n%s", k, got, want)
			}
		}
	}
}

// TestJournalGoesOn: an unfinished run goes on, also behind a line that was written in part.
// Another run is refused, and a finished run is not gone on with.
func TestJournalGoesOn(t *testing.T) {
	t.Parallel()
	journal := filepath.Join(t.TempDir(), "journal")
	source, target := lake(5), newFake("new")
	registered := 0
	target.before = func(call string) error {
		if strings.HasPrefix(call, "register") {
			if registered++; registered > 3 {
				return errKilled
			}
		}
		return nil
	}
	if _, _, err := carry(t.Context(), &Run{Source: source, Target: target}, journal); !errors.Is(err, errKilled) {
		t.Fatal(err)
	}
	file, err := os.OpenFile(journal, os.O_APPEND|os.O_WRONLY, 0)
	if err == nil {
		_, err = file.WriteString(`{"step":"arr`)
		err = errors.Join(err, file.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := carry(t.Context(), &Run{Source: source, Target: target, Writable: true}, journal); err == nil || !strings.Contains(err.Error(), "other words") {
		t.Errorf("another run: %v", err)
	}
	checks := 0
	target.before = func(call string) error {
		if strings.HasPrefix(call, "check") {
			checks++
		}
		return nil
	}
	mustCarry(t, &Run{Source: source, Target: target}, journal)
	if checks != 2 {
		t.Errorf("%d objects were checked, want the 2 that had not arrived", checks)
	}
	source.commit(Object{Namespace: []string{"a"}, Name: "t0"})
	plan, _ := mustCarry(t, &Run{Source: source, Target: target}, journal)
	if got := statuses(plan); !strings.HasPrefix(got, "a.t0 moved") {
		t.Errorf("the next run planned %s", got)
	}
}

// TestJournalStaysSmall: a journal does not keep runs that ended. It keeps an object that left the
// source until that is cut over.
func TestJournalStaysSmall(t *testing.T) {
	t.Parallel()
	journal := filepath.Join(t.TempDir(), "journal")
	source, target := lake(3), newFake("new")
	lines := func() int {
		t.Helper()
		text, err := os.ReadFile(journal)
		if err != nil {
			t.Fatal(err)
		}
		return strings.Count(string(text), "\n")
	}
	mustCarry(t, &Run{Source: source, Target: target}, journal)
	first := lines()
	for range 3 {
		mustCarry(t, &Run{Source: source, Target: target}, journal)
	}
	if now := lines(); now != first {
		t.Errorf("the journal had %d lines, and has %d", first, now)
	}

	r := &Run{Source: source, Target: target}
	gone := Object{Namespace: []string{"a"}, Name: "t0", MetadataLocation: "uuid0/v1+"}
	var err error
	if r.Journal, err = OpenJournal(journal, *r); err == nil {
		err = errors.Join(r.Journal.add(entry{Step: stepDetached, Object: &gone}), r.Finish(), r.Journal.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
	before, _ := os.ReadFile(journal)
	if _, err := OpenJournal(journal, Run{Source: newFake("other"), Target: target}); err == nil || !strings.Contains(err.Error(), "other words") {
		t.Errorf("a run from another source takes over what left the first one: %v", err)
	}
	if now, err := os.ReadFile(journal); err != nil || !bytes.Equal(now, before) {
		t.Errorf("a run that was refused changed the journal: %s, %v", now, err)
	}
	for range 2 {
		mustCarry(t, &Run{Source: source, Target: target}, journal)
	}
	if r.Journal, err = OpenJournal(journal, *r); err != nil || r.Journal.of(gone).detached == nil {
		t.Errorf("the journal forgot what left the source: %v", err)
	}
	if err := r.Journal.Close(); err != nil {
		t.Error(err)
	}
}

// TestJournalLeavesOtherFiles: a file that is no journal is refused, and stays as it is.
func TestJournalLeavesOtherFiles(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"a note", "a note\n", `{"namespace":["a"],"name":"t"}` + "\n"} {
		file := filepath.Join(t.TempDir(), "file")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := OpenJournal(file, Run{Source: lake(1), Target: newFake("new")}); err == nil {
			t.Errorf("%q was taken for a journal", text)
		}
		if now, err := os.ReadFile(file); err != nil || string(now) != text {
			t.Errorf("%q became %q, %v", text, now, err)
		}
	}
}

// TestImportLeavesOtherMirrors: an import neither moves a mirror of another catalog, nor takes a
// mirror for an ordinary table.
func TestImportLeavesOtherMirrors(t *testing.T) {
	t.Parallel()
	source, target := lake(1), newFake("new")
	mustCarry(t, &Run{Source: source, Target: target}, "")
	source.name = "another name"
	for name, r := range map[string]*Run{
		"another source": {Source: source, Target: target}, "writable": {Source: source, Target: target, Writable: true},
	} {
		plan, verified := mustCarry(t, r, "")
		if got := statuses(plan); got != "a.t0 changed-here" || len(verified) != 0 {
			t.Errorf("%s: planned %s, compared %+v", name, got, verified)
		}
	}
}

// TestCutoverLosesNothing: while a writer goes on at the source, each mirror is cut over. Each
// commit that the source acknowledged is here. A cut-over that is killed before or after any of its
// calls can be repeated.
func TestCutoverLosesNothing(t *testing.T) {
	t.Parallel()
	t.Run("before", func(t *testing.T) { killCutovers(t, false) })
	t.Run("after", func(t *testing.T) { killCutovers(t, true) })
}

func killCutovers(t *testing.T, isAfter bool) {
	t.Parallel()
	for k, ended := 0, false; !ended; k++ {
		source, target := lake(4), newFake("new")
		journal := filepath.Join(t.TempDir(), "journal")
		mustCarry(t, &Run{Source: source, Target: target}, journal)
		last := make(map[string]string) // the last acknowledged file
		var mu sync.Mutex
		write := func() {
			mu.Lock()
			defer mu.Unlock()
			for i := range 4 {
				for _, o := range []Object{{Namespace: []string{"a"}, Name: fmt.Sprint("t", i)}, {Namespace: []string{"b", "c"}, Name: fmt.Sprint("t", i)}} {
					if location, done := source.commit(o); done {
						last[o.key()] = location
					}
				}
			}
		}
		calls := 0
		kill := func(string) error {
			if calls++; calls > k {
				return errKilled
			}
			return nil
		}
		between := func(name string) error {
			if write(); isAfter {
				return nil
			}
			return kill(name)
		}
		source.before, target.before = between, between
		if isAfter {
			source.after, target.after = kill, kill
		}
		cut := func() (all []CutOver, err error) {
			r := &Run{Source: source, Target: target, Jobs: 1}
			if r.Journal, err = OpenJournal(journal+".cut", *r); err != nil {
				return nil, err
			}
			defer r.Journal.Close()
			if all, err = r.Cutover(t.Context(), true); err == nil {
				err = r.Finish()
			}
			return all, err
		}
		_, err := cut()
		ended = err == nil
		calls = -100_000 // no more kills
		for range 8 {    // a table that moved on between two looks stays a mirror
			if _, err := cut(); err != nil {
				t.Fatalf("killed at call %d: %v", k, err)
			}
			source.before, target.before = nil, nil
		}
		if len(source.objects) != 0 || len(target.mirrors) != 0 || len(target.objects) != 4 {
			t.Fatalf("killed at call %d: the source has\n%s\nand the target\n%s", k, source.state(), target.state())
		}
		for key, o := range target.objects {
			if want := last[key]; want != "" && o.MetadataLocation != want {
				t.Fatalf("killed at call %d: %q has %s, the last commit was %s", k, key, o.MetadataLocation, want)
			}
		}
	}
}

// TestCutoverKeepsWhatDiffers: a mirror that cannot follow stays one.
func TestCutoverKeepsWhatDiffers(t *testing.T) {
	t.Parallel()
	source, target := lake(2), newFake("new")
	mustCarry(t, &Run{Source: source, Target: target}, "")
	o := Object{Namespace: []string{"a"}, Name: "t0"}
	is := source.objects[o.key()]
	is.MetadataLocation = "bad/v9"
	source.objects[o.key()] = is
	r := &Run{Source: source, Target: target, Journal: &Journal{}}
	all, err := r.Cutover(t.Context(), false)
	if err != nil {
		t.Fatal(err)
	}
	if _, kept := target.mirrors[o.key()]; !kept || len(target.mirrors) != 1 || len(all) != 1 {
		t.Errorf("the mirrors are %v; cut over: %+v", target.mirrors, all)
	}
	if _, err := (&Run{Source: onlySource{source}, Target: target, Journal: &Journal{}}).Cutover(t.Context(), true); err == nil {
		t.Error("a source that cannot detach was cut over by detaching")
	}
}

// onlySource hides the Detacher.
type onlySource struct{ Source }
