package commit

import (
	"context"
	"errors"
	"slices"

	"moorage"
	"moorage/catalog/directory"
	"moorage/catalog/documents"
	"moorage/registry"
)

// Accompanied is an edit that changes other records together with the pointer. Maintenance of a
// table and a change of a view's owner are such edits. An Accompanied edit never shares a version
// with another edit.
type Accompanied interface {
	Edit
	// Beside returns the changes that accompany the move of the pointer from base to next. found is
	// the pointer to base. It may write files. It is called once for each attempt.
	Beside(ctx context.Context, found *directory.Found, base, next documents.Document) (Beside, error)
}

// Beside holds the changes that accompany the move of a pointer.
type Beside struct {
	Conditions []registry.Condition // if one of them fails, the edit ends with ErrBeside
	Writes     []registry.Write
	Items      []registry.Item // added to the change record
	// If Grants is true, the pointer must record that privileges are granted on it.
	Grants bool
	// If Again is true, the edit is planned again if one of the conditions fails.
	Again bool
	// Rule is the rule that caused the change, for the change record.
	Rule string
	// Lost is called if the attempt did not happen and never will. It may be nil.
	Lost func(ctx context.Context)
}

// ErrBeside means that an accompanying record does not meet the conditions of the edit. Nothing was
// changed.
var ErrBeside = errors.New("commit: a record beside the table has changed")

// findTarget finds the target of e. It uses Target.Pointer, which only jobs of the server set. If
// that is zero, it uses the name.
func (p *Pipeline) findTarget(ctx context.Context, e *edition) (*directory.Found, documents.Document, error) {
	if e.Pointer.IsZero() {
		return p.findFor(ctx, e.work, e.Target)
	}
	var found *directory.Found
	var document documents.Document
	err := p.ledger.Retry(ctx, moorage.KindUnavailable, func(int) (err error) {
		if found, err = p.directory.FindPointer(ctx, e.Pointer); err == nil {
			err = e.admit(ctx, found)
		}
		if err != nil {
			return err
		}
		document, err = p.documents.Current(ctx, found)
		return err
	})
	return found, document, err
}

// accompanying returns the changes that accompany the move of e.
func (e *edition) accompanying(ctx context.Context, found *directory.Found, base, next documents.Document) (
	Beside, error) {
	accompanied, ok := e.Edit.(Accompanied)
	if !ok {
		return Beside{}, nil
	}
	beside, err := accompanied.Beside(ctx, found, base, next)
	if err != nil {
		beside.end(ctx)
		return Beside{}, err
	}
	return beside, nil
}

// addTo adds b to a plan of the move.
func (b Beside) addTo(plan *Plan) {
	plan.Conditions = append(plan.Conditions, b.Conditions...)
	plan.Writes = append(plan.Writes, b.Writes...)
	plan.Items[0].Rule = b.Rule
	plan.Items = append(plan.Items, b.Items...)
}

// end calls Lost for an attempt that certainly did not happen.
func (b Beside) end(ctx context.Context) {
	if b.Lost != nil {
		b.Lost(ctx)
	}
}

// translate turns the failure of a condition of b into ErrBeside, unless the edit is planned again.
func (b Beside) translate(err error) error {
	if b.Again {
		return err
	}
	if failed, ok := registry.FailedCondition(err); ok && slices.Contains(b.Conditions, failed) {
		return moorage.E("commit.translate", failed.Key.String(), moorage.KindUnavailable, ErrBeside)
	}
	return err
}
