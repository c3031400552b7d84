package verb

import (
	"context"

	"moorage"
)

// Request is one use of a verb, as a Gate sees it.
type Request struct {
	Caller moorage.Caller
	Verb   Verb
	// On are what the verb is used on; several for a transaction or a rename. A warehouse or a
	// namespace has an empty name. A verb on the whole server has none. A request that cannot be
	// read has the warehouse at most.
	On []moorage.Identifier
	// Done returns what the change did, once it has happened; zero if it has not. Nil for a verb
	// that changes nothing.
	Done func() Done
}

// Done is what a change did.
type Done struct {
	Commit  string // the id of its change record
	Effects []Effect
}

// Effect is an object that a change made, changed or ended.
type Effect struct {
	Kind, ID string
	Ident    moorage.Identifier  // after the change; of an object that ended, before it
	Previous *moorage.Identifier // what a rename found it called; nil if the name stayed
	Snapshot int64               // the head of main of a table after the change; 0: it has none
}

// Gate decides who may do what, and hears how it ended. It must be safe for concurrent use.
type Gate interface {
	// Authorize returns nil if the caller may do what it asks for, else the refusal. It is called
	// before anything is read, locked or queued.
	Authorize(ctx context.Context, request Request) error
	// Audit hears how a request ended that reached the gate, refused ones included. Of a verb that
	// reads it hears whether that was let in, and found what it is about.
	Audit(ctx context.Context, request Request, outcome error)
}

// Open returns a Gate that refuses nobody and notes nothing.
func Open() Gate { return open{} }

type open struct{}

func (open) Authorize(context.Context, Request) error { return nil }
func (open) Audit(context.Context, Request, error)    {}

// Pass asks gate for request, and calls do if that is let in. The gate hears how it ended.
//
// Errors: those of the gate and of do; KindForbidden if the caller is nobody, KindInternal if the
// verb has no row.
func Pass(ctx context.Context, gate Gate, request Request, do func() error) (err error) {
	ended := false
	defer func() {
		if !ended {
			err = moorage.Errorf(moorage.KindInternal, "The request panicked")
		}
		gate.Audit(ctx, request, err)
	}()
	err = pass(ctx, gate, request, do)
	ended = true
	return err
}

func pass(ctx context.Context, gate Gate, request Request, do func() error) error {
	if _, ok := request.Verb.Row(); !ok {
		return moorage.Errorf(moorage.KindInternal, "The verb %s is not in the table of verbs", request.Verb)
	}
	if request.Caller.IsNobody() {
		return moorage.Errorf(moorage.KindForbidden, "Nobody asks: the request has no caller")
	}
	if err := gate.Authorize(ctx, request); err != nil {
		return err
	}
	return do()
}
