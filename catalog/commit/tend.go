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

// Tended is an edit with which records change together with the pointer: the server takes care of a
// table by it, or a view gets another owner. It never shares a version.
type Tended interface {
	Edit
	// Beside returns what goes beside the move of the pointer from base, which found names, to
	// next. It may write files. It is called once for each attempt.
	Beside(ctx context.Context, found *directory.Found, base, next documents.Document) (Beside, error)
}

// Beside is what goes beside the move of a pointer.
type Beside struct {
	Conditions []registry.Condition // if one of them fails, the edit ends with ErrBeside
	Writes     []registry.Write
	Items      []registry.Item // that the change record names besides
	// Grants says that the pointer has to say that something is granted on it.
	Grants bool
	// Again says that the edit is planned again if one of the conditions fails.
	Again bool
	// Rule is the rule that asked for the change, for the change record.
	Rule string
	// Lost is called if the attempt certainly did not happen and never will; nil for nothing to do.
	Lost func(ctx context.Context)
}

// ErrBeside says that a record beside a table is not as its edit requires. Nothing was changed.
var ErrBeside = errors.New("commit: a record beside the table has changed")

// findTarget finds what e is about: by its pointer if the target has one, which only jobs of the
// server have, else by its name.
func findTarget(ctx context.Context, p *Pipeline, e *edition) (*directory.Found, documents.Document, error) {
	config := p.config
	if e.Pointer.IsZero() {
		return findFor(ctx, p, e.work, e.Target)
	}
	var found *directory.Found
	var document documents.Document
	err := config.Ledger.Retry(ctx, moorage.KindUnavailable, func(int) (err error) {
		if found, err = config.Directory.FindPointer(ctx, e.Pointer); err != nil {
			return err
		}
		document, err = config.Documents.Current(ctx, found)
		return err
	})
	return found, document, err
}

// beside asks e for what goes beside its move.
func (e *edition) beside(ctx context.Context, found *directory.Found, base, next documents.Document) (
	Beside, error) {
	tended, ok := e.Edit.(Tended)
	if !ok {
		return Beside{}, nil
	}
	beside, err := tended.Beside(ctx, found, base, next)
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

// end is called when the attempt certainly did not happen.
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
