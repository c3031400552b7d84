package transfer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"
)

// Status is what becomes of an object.
type Status string

// The values of Status. The values of client.RegisterChecked.Fitness are values too.
const (
	StatusNew        Status = "new"
	StatusSame       Status = "same"
	StatusMoved      Status = "moved"
	StatusChanged    Status = "changed-here"
	StatusUnreadable Status = "unreadable"
	StatusNested     Status = "location-nested"
	StatusView       Status = "view"    // a view without a metadata file
	StatusRefused    Status = "refused" // the target refused it
)

// Planned is an object of a plan.
type Planned struct {
	Object Object `json:"object"` // with the name at the source
	Status Status `json:"status"`
	Why    string `json:"why,omitempty"`
	mirror string // the source of the mirror that the target has; empty if it has none
}

// Arrives reports whether the object is at the target when the run has ended.
func (p Planned) Arrives() bool {
	return p.Status == StatusNew || p.Status == StatusSame || p.Status == StatusMoved
}

// Stage is a part of a run.
type Stage string

// The stages, in their order.
const (
	StageList     Stage = "list"
	StagePlan     Stage = "plan"
	StageRegister Stage = "register"
	StageVerify   Stage = "verify"
	StageCutover  Stage = "cut over"
)

// Run is one transfer. Its fields are set before it begins.
type Run struct {
	Source Source
	Target Target
	Choice Choice
	// Writable makes ordinary tables and views of the objects, and not mirrors.
	Writable bool
	Jobs     int // how many objects are worked on at a time; at least 1
	Journal  *Journal
	// Progress is called after each step of a stage. all is 0 while it is not known. It must not
	// block, and is called by several goroutines. It may be nil.
	Progress func(stage Stage, done, all int)
}

// begin returns the first line of the run's journal.
func (r *Run) begin() entry {
	return entry{
		Step: stepBegin, Source: r.Source.Name(), Target: r.Target.Name(), Choice: &r.Choice, Writable: r.Writable,
	}
}

// mirror returns what the objects become mirrors of; empty for none.
func (r *Run) mirror() string {
	if r.Writable {
		return ""
	}
	return r.Source.Name()
}

// each calls do for all of items, several at a time.
func each[T any](ctx context.Context, r *Run, stage Stage, items []T, do func(context.Context, int, T) error) error {
	group, within := errgroup.WithContext(ctx)
	group.SetLimit(max(r.Jobs, 1))
	var mu sync.Mutex // guards done
	done := 0
	for i, item := range items {
		if within.Err() != nil {
			break
		}
		group.Go(func() error {
			err := do(within, i, item)
			mu.Lock()
			defer mu.Unlock()
			if done++; r.Progress != nil {
				r.Progress(stage, done, len(items))
			}
			return err
		})
	}
	return cmp.Or(group.Wait(), ctx.Err())
}

// list returns the selected objects of the source, in the order of their names.
func (r *Run) list(ctx context.Context) ([]Object, error) {
	var all []Object
	met := make(map[string]bool)
	err := r.Source.List(ctx, func(o Object) error {
		if !r.Choice.has(o.String()) {
			return nil
		}
		if met[o.key()] {
			return fmt.Errorf("%s has %s twice", r.Source.Name(), o)
		}
		met[o.key()] = true
		all = append(all, o)
		if r.Progress != nil && len(all)%100 == 0 {
			r.Progress(StageList, len(all), 0)
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("list %s: %w", r.Source.Name(), err)
	}
	slices.SortFunc(all, func(a, b Object) int {
		return cmp.Or(slices.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name))
	})
	return all, nil
}

// Plan returns what the run would do with each object of the source, in the order of their names.
// It changes nothing but the journal.
//
// Errors: the source cannot be listed, or one of the catalogs does not answer for an object, for a
// reason that is not in the object: *DeniedError if it refuses the caller. A later Plan with the
// journal goes on.
func (r *Run) Plan(ctx context.Context) ([]Planned, error) {
	all, err := r.list(ctx)
	if err != nil {
		return nil, err
	}
	plan := make([]Planned, len(all))
	err = each(ctx, r, StagePlan, all, func(ctx context.Context, i int, o Object) (err error) {
		if arrived := r.Journal.of(o).arrived; arrived != nil { // by the run that this one goes on with
			plan[i] = Planned{Object: *arrived, Status: StatusSame, mirror: r.mirror()}
			return nil
		}
		plan[i], err = r.planOne(ctx, o)
		if err == nil {
			is := &plan[i]
			err = r.Journal.add(entry{Step: stepPlanned, Object: &is.Object, Status: is.Status, Why: is.Why})
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	plan = slices.DeleteFunc(plan, func(p Planned) bool { return p.Status == "" }) // gone since the list
	markNested(plan)
	return plan, nil
}

// planOne returns what becomes of one object. The status is empty if the object is gone.
func (r *Run) planOne(ctx context.Context, o Object) (Planned, error) {
	loaded, err := r.Source.Load(ctx, o)
	switch {
	case errors.Is(err, ErrGone):
		return Planned{}, nil
	case err != nil && whyUnreadable(err) == "":
		return Planned{}, fmt.Errorf("load %s: %w", o, err)
	case err != nil:
		return Planned{Object: o, Status: StatusUnreadable, Why: whyUnreadable(err)}, nil
	case loaded.MetadataLocation == "" && loaded.View:
		return Planned{Object: loaded, Status: StatusView, Why: "The source names no metadata file of the view: " +
			"make it again at the target"}, nil
	case loaded.MetadataLocation == "":
		return Planned{Object: loaded, Status: StatusUnreadable, Why: "The source names no metadata file"}, nil
	}
	checked, err := r.Target.Check(ctx, r.Choice.there(loaded))
	if refused := aboutObject(err); refused != nil {
		return Planned{Object: loaded, Status: StatusRefused, Why: refused.Message}, nil
	}
	if err != nil {
		return Planned{}, fmt.Errorf("check %s: %w", o, err)
	}
	if loaded.Facts == nil {
		loaded.Facts = checked.Facts
	}
	planned := Planned{Object: loaded, Status: Status(checked.Fitness), Why: checked.Why, mirror: checked.Mirror}
	if checked.Mirror != "" && checked.Mirror != r.mirror() {
		planned.Status, planned.Why = StatusChanged, "It is a mirror of "+checked.Mirror
	}
	return planned, nil
}

// markNested marks new objects whose location contains, or lies within, the location of an object
// before them: the target would refuse them.
func markNested(plan []Planned) {
	type place struct {
		location string
		of       int
	}
	var places []place
	for i, p := range plan {
		if p.Arrives() && p.Object.Facts != nil {
			places = append(places, place{strings.TrimRight(p.Object.Facts.Location, "/") + "/", i})
		}
	}
	slices.SortFunc(places, func(a, b place) int {
		return cmp.Or(strings.Compare(a.location, b.location), a.of-b.of)
	})
	around := 0 // the last place that contains the following ones
	for i := 1; i < len(places); i++ {
		if !strings.HasPrefix(places[i].location, places[around].location) {
			around = i
			continue
		}
		inner, outer := &plan[places[i].of], plan[places[around].of]
		if inner.Status == StatusNew {
			inner.Status = StatusNested
			inner.Why = fmt.Sprintf("Its location is at or below the location of %s: %s", outer.Object,
				outer.Object.Facts.Location)
		}
	}
}

// Apply makes the namespaces of a plan, and registers its objects. It returns the plan with what
// became of each object: one that the target refused has StatusRefused.
//
// Errors: the journal, or a target that does not answer. A later Apply with the journal goes on.
func (r *Run) Apply(ctx context.Context, plan []Planned) ([]Planned, error) {
	if err := r.makeNamespaces(ctx, plan); err != nil {
		return nil, err
	}
	result := slices.Clone(plan)
	err := each(ctx, r, StageRegister, plan, func(ctx context.Context, i int, p Planned) error {
		if !p.Arrives() || r.Journal.of(p.Object).arrived != nil {
			return nil
		}
		if p.Status != StatusSame {
			err := r.Target.Register(ctx, r.Choice.there(p.Object), r.mirror())
			if refused := aboutObject(err); refused != nil {
				result[i].Status, result[i].Why = StatusRefused, refused.Message
				return nil
			}
			if err != nil {
				return fmt.Errorf("register %s: %w", p.Object, err)
			}
			result[i].mirror = r.mirror()
		}
		return r.Journal.add(entry{Step: stepArrived, Object: &result[i].Object})
	})
	return result, err
}

// makeNamespaces makes the namespaces that the source has and the plan needs.
func (r *Run) makeNamespaces(ctx context.Context, plan []Planned) error {
	all, err := r.Source.Namespaces(ctx)
	if err != nil {
		return fmt.Errorf("list the namespaces of %s: %w", r.Source.Name(), err)
	}
	needed := make(map[string]Namespace)
	need := func(levels []string, properties map[string]string) {
		for depth := 1; depth <= len(levels); depth++ {
			key := strings.Join(levels[:depth], "\x1f")
			if _, ok := needed[key]; !ok {
				needed[key] = Namespace{Levels: levels[:depth]}
			}
			if depth == len(levels) && properties != nil {
				needed[key] = Namespace{Levels: levels, Properties: properties}
			}
		}
	}
	for _, p := range plan {
		if p.Arrives() {
			need(p.Object.Namespace, nil)
		}
	}
	for _, n := range all {
		_, isNeeded := needed[strings.Join(n.Levels, "\x1f")]
		if isNeeded || len(r.Choice.Include)+len(r.Choice.Exclude) == 0 {
			need(n.Levels, n.Properties)
		}
	}
	var made []Namespace
	for depth := 1; depth <= len(r.Choice.Into); depth++ {
		made = append(made, Namespace{Levels: r.Choice.Into[:depth]})
	}
	if len(needed) == 0 && len(plan) == 0 {
		return nil
	}
	for _, n := range needed {
		n.Levels = slices.Concat(r.Choice.Into, n.Levels)
		made = append(made, n)
	}
	slices.SortFunc(made, func(a, b Namespace) int { // parents first
		return cmp.Or(len(a.Levels)-len(b.Levels), slices.Compare(a.Levels, b.Levels))
	})
	for _, n := range made {
		if err := r.Target.MakeNamespace(ctx, n); err != nil {
			return fmt.Errorf("make the namespace %s: %w", strings.Join(n.Levels, "."), err)
		}
	}
	return nil
}

// Finish writes the end of the run into the journal.
func (r *Run) Finish() error { return r.Journal.add(entry{Step: stepEnd}) }
