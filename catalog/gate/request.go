package gate

import (
	"context"

	"moorage"
)

// Request is one use of a verb, in the form passed to an Authorizer.
type Request struct {
	Caller moorage.Caller
	Verb   Verb
	// On lists the objects of the verb. A transaction or a rename has several. A warehouse or
	// namespace has an empty name. On is empty for a verb on the whole server. If the request
	// cannot be parsed, On has at most the warehouse.
	On []moorage.Identifier
	// Done returns the effect of the change after it has happened, and zero before. Done is nil for
	// a verb that changes nothing.
	Done func() Done
}

// Done is the effect of a change.
type Done struct {
	Commit  string // the id of its change record
	Effects []Effect
}

// Effect is an object that a change created, changed or removed.
type Effect struct {
	Kind, ID string
	Ident    moorage.Identifier  // the name after the change, or before it for a removed object
	Previous *moorage.Identifier // the name before a rename, or nil if the name is unchanged
	Snapshot int64               // the head of a table's branch main, or 0 if it has no snapshot
}

// Authorizer authorizes requests and audits their outcomes. It must be safe for concurrent use.
type Authorizer interface {
	// Authorize returns nil if the request is allowed, and otherwise the refusal. Pass calls it
	// before the verb reads, locks or queues anything.
	Authorize(ctx context.Context, request Request) error
	// Pass calls Audit with the outcome of each request, including refused requests. For a verb
	// that reads, a nil outcome means that the request was admitted and its object was found.
	Audit(ctx context.Context, request Request, outcome error)
}

// AdmitAll returns an Authorizer that admits every caller and audits nothing.
func AdmitAll() Authorizer { return admitAll{} }

type admitAll struct{}

func (admitAll) Authorize(context.Context, Request) error { return nil }
func (admitAll) Audit(context.Context, Request, error)    {}

// Pass authorizes request, and calls do if it is admitted. Then it passes the outcome to Audit.
//
// Errors: the errors of the authorizer and of do; KindForbidden if the request has no caller;
// KindInternal if the verb has no row.
func Pass(ctx context.Context, authorizer Authorizer, request Request, do func() error) (err error) {
	ended := false
	defer func() {
		if !ended {
			err = moorage.Errorf(moorage.KindInternal, "The request panicked")
		}
		authorizer.Audit(ctx, request, err)
	}()
	err = pass(ctx, authorizer, request, do)
	ended = true
	return err
}

func pass(ctx context.Context, authorizer Authorizer, request Request, do func() error) error {
	if _, ok := request.Verb.Row(); !ok {
		return moorage.Errorf(moorage.KindInternal, "The verb %s is not in the table of verbs", request.Verb)
	}
	if request.Caller.IsNobody() {
		return moorage.Errorf(moorage.KindForbidden, "The request has no caller")
	}
	if err := authorizer.Authorize(ctx, request); err != nil {
		return err
	}
	return do()
}
