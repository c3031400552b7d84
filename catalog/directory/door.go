package directory

import (
	"context"

	"moorage"
	"moorage/catalog/verb"
)

// Resolved is what a verb that reads is about, as of one read.
type Resolved struct {
	Path  *Path  // of a verb on a warehouse or a namespace
	Found *Found // of a verb on a table or a view
}

// Resolve is the one door of reads: it asks the gate whether caller may use v on the object called
// on, and finds that object. The row of v says of what kind it is.
//
// Errors: those of the gate, of Path for a warehouse or namespace, and of Find for a table or view.
func (d *Directory) Resolve(ctx context.Context, caller moorage.Caller, v verb.Verb, on moorage.Identifier) (
	resolved Resolved, err error) {
	request := verb.Request{Caller: caller, Verb: v}
	if row, _ := v.Row(); row.On != verb.OnServer {
		request.On = []moorage.Identifier{on}
	}
	err = verb.Pass(ctx, d.gate, request, func() (err error) {
		row, _ := v.Row()
		switch row.On {
		case verb.OnWarehouse:
			resolved.Path, err = d.Path(ctx, on.Warehouse, nil)
		case verb.OnNamespace:
			resolved.Path, err = d.Path(ctx, on.Warehouse, on.Namespace)
		case verb.OnTable:
			resolved.Found, err = d.Find(ctx, Table(), on)
		case verb.OnView:
			resolved.Found, err = d.Find(ctx, View(), on)
		}
		return err
	})
	return resolved, err
}
