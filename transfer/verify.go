package transfer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"moorage"
	"moorage/management/client"
)

// Difference is a member of an object that differs between two catalogs.
type Difference struct {
	Member string `json:"member"`
	Source string `json:"source"`
	Target string `json:"target"`
}

// Verified is the comparison of an object at the source and at the target.
type Verified struct {
	Object      Object       `json:"object"`
	Facts       client.Facts `json:"facts"` // at the target
	Differences []Difference `json:"differences,omitempty"`
	Why         string       `json:"why,omitempty"` // why they could not be compared
}

// IsAlike reports whether the object is the same at both catalogs.
func (v Verified) IsAlike() bool { return len(v.Differences) == 0 && v.Why == "" }

// verifyTries is how often a mirror is moved if the source moves on while it is compared.
const verifyTries = 4

// Verify compares each object of a plan that arrived, in the order of the plan. A mirror whose
// source has moved on moves first.
func (r *Run) Verify(ctx context.Context, plan []Planned) ([]Verified, error) {
	arrived := slices.DeleteFunc(slices.Clone(plan), func(p Planned) bool { return !p.Arrives() })
	all := make([]Verified, len(arrived))
	err := each(ctx, r, StageVerify, arrived, func(ctx context.Context, i int, p Planned) (err error) {
		all[i], err = r.verifyOne(ctx, p)
		return err
	})
	return all, err
}

func (r *Run) verifyOne(ctx context.Context, p Planned) (v Verified, err error) {
	for try := 1; ; try++ {
		v, err = r.compare(ctx, p.Object)
		moved := slices.ContainsFunc(v.Differences, func(d Difference) bool { return d.Member == memberFile })
		if err != nil || !moved || p.mirror == "" || try == verifyTries {
			return v, err
		}
		err := r.Target.Register(ctx, r.Choice.there(v.Object), p.mirror)
		if refused := aboutObject(err); refused != nil {
			v.Why = refused.Message
			return v, nil
		}
		if err != nil {
			return v, fmt.Errorf("move %s: %w", p.Object, err)
		}
	}
}

// compare reads an object at both catalogs.
func (r *Run) compare(ctx context.Context, o Object) (v Verified, err error) {
	v.Object = o
	there, err := r.Target.Load(ctx, r.Choice.there(o))
	switch {
	case errors.Is(err, ErrGone):
		v.Why = "The target has no such object"
		return v, nil
	case err != nil:
		return v, fmt.Errorf("load %s: %w", o, err)
	}
	v.Facts = *there.Facts
	here, err := r.Source.Load(ctx, o)
	switch {
	case errors.Is(err, ErrGone):
		v.Why = "The source has it no more"
		return v, nil
	case err != nil && whyUnreadable(err) == "":
		return v, fmt.Errorf("load %s: %w", o, err)
	case err != nil:
		v.Why = whyUnreadable(err)
		return v, nil
	}
	if here.Facts == nil { // the source reads no files, so the target reads the file
		checked, err := r.Target.Check(ctx, r.Choice.there(here))
		switch {
		case err != nil:
			return v, fmt.Errorf("check %s: %w", o, err)
		case checked.Facts == nil:
			v.Object, v.Why = here, checked.Why
			return v, nil
		}
		here.Facts = checked.Facts
	}
	v.Object, v.Differences = here, differences(here, there)
	return v, nil
}

// memberFile is the member that differs if one catalog is ahead of the other.
const memberFile = "metadata-location"

// differences compares an object at the source with the one at the target.
func differences(source, target Object) (all []Difference) {
	add := func(member string, source, target any) {
		if s, t := fmt.Sprint(source), fmt.Sprint(target); s != t {
			all = append(all, Difference{member, s, t})
		}
	}
	a, b := source.Facts, target.Facts
	add(memberFile, source.MetadataLocation, target.MetadataLocation)
	add("uuid", a.UUID, b.UUID)
	add("location", a.Location, b.Location)
	add("format-version", a.Format, b.Format)
	add("current-snapshot-id", a.Snapshot, b.Snapshot)
	add("current-schema-id", a.Schema, b.Schema)
	add("last-sequence-number", a.Sequence, b.Sequence)
	for _, name := range slices.Sorted(maps.Keys(union(a.Refs, b.Refs))) {
		add("refs."+name, snapshotOf(a.Refs, name), snapshotOf(b.Refs, name))
	}
	return all
}

func union(a, b map[string]int64) map[string]int64 {
	all := maps.Clone(a)
	if all == nil {
		all = make(map[string]int64)
	}
	maps.Copy(all, b)
	return all
}

func snapshotOf(refs map[string]int64, name string) string {
	if id, ok := refs[name]; ok {
		return fmt.Sprint(id)
	}
	return "none"
}

// VerifyNamespaces compares the properties of the namespaces of the source that the target has with
// those at the target. loads returns the properties at the target, or ErrGone.
func (r *Run) VerifyNamespaces(ctx context.Context,
	loads func(ctx context.Context, levels []string) (map[string]string, error)) ([]Difference, error) {
	all, err := r.Source.Namespaces(ctx)
	if err != nil {
		return nil, err
	}
	var found []Difference
	for _, n := range all {
		there, err := loads(ctx, slices.Concat(r.Choice.Into, n.Levels))
		if errors.Is(err, ErrGone) {
			continue
		}
		if err != nil {
			return nil, err
		}
		for _, name := range slices.Sorted(maps.Keys(n.Properties)) {
			if value := there[name]; value != n.Properties[name] {
				member := "namespace " + moorage.PersonLevels(n.Levels...) + ": " + name
				found = append(found, Difference{member, n.Properties[name], cmp.Or(value, "none")})
			}
		}
	}
	return found, nil
}
