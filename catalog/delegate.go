package catalog

import (
	"context"
	"errors"
	"slices"
	"time"

	"moorage"
	"moorage/catalog/directory"
	"moorage/catalog/guard"
	"moorage/catalog/verb"
	"moorage/registry"
	"moorage/storage"
)

// Delegation is a way in which an engine reaches files without a key of its own.
type Delegation string

// The delegations, as clients ask for them in X-Iceberg-Access-Delegation.
const (
	// VendedCredentials are credentials that reach the files of one table for a while.
	VendedCredentials Delegation = "vended-credentials"
	// RemoteSigning is that the server signs each request to the storage.
	RemoteSigning Delegation = "remote-signing"
)

// Delegations returns all that a warehouse can offer.
func Delegations() []Delegation { return []Delegation{VendedCredentials, RemoteSigning} }

// stagedDuration is how long the credentials of a table live that is not stored yet. It is short
// because no record keeps others away from their location.
const stagedDuration = 15 * time.Minute

// Delegated is how a client reaches the files of a table.
type Delegated struct {
	// Delegation is what it was given; empty: nothing.
	Delegation Delegation
	// Credential is what it was given of VendedCredentials.
	Credential storage.Credential
	// Encoded has the parts of Credential as members of a JSON object, without its braces. It is
	// kept with the credential, and must not be changed.
	Encoded []byte
	// Prefix is the location that the credential is for, as the table spells it, with a slash at
	// its end.
	Prefix string
	// Version is the same as long as the same credential is given. It is no secret.
	Version string
	// Refresh says that LoadCredentials renews the credential, or that Sign signs.
	Refresh bool
	// Staged is the location of a table that is not stored yet, for LoadCredentials and Sign, which
	// cannot know it otherwise; empty: it is stored.
	Staged string
	// Reason says why the client was given nothing although it asked and the warehouse offers it.
	Reason string
	// Through are the views by which the caller came to the table, if they counted.
	Through []moorage.Identifier
}

// Files are the verbs by which a caller reaches the files of a table. They are safe for concurrent
// use.
type Files interface {
	// Delegate gives a client what it asks for to reach the files of table: the first of the
	// warehouse's delegations that it named. A client that named none is given nothing, nor is one
	// that may not read the table, or whose table no credential can be made for.
	//
	// Errors: KindUnavailable if the storage makes no credentials now, KindTooManyRequests if too
	// many were asked for. The table is as it was.
	Delegate(ctx context.Context, table *Table, asked []Delegation) (Delegated, error)
	// LoadCredentials returns new credentials for the files of a table, for a client that was given
	// some before. If Delegated.Staged was not empty then, staged is what it was. Such a table need
	// not be stored yet: a caller who may make it is given credentials for a short while, if nobody
	// else lives there.
	//
	// through is that of LoadTable. Who comes through views that count is given nothing to write
	// with.
	//
	// Errors: those of Delegate; KindNoSuchTable; KindForbidden; KindBadRequest if the warehouse
	// gives no credentials, or none can be made for this table. Source: REST specification,
	// loadCredentials.
	LoadCredentials(ctx context.Context, ident moorage.Identifier, staged string, through ...moorage.Identifier) (
		Delegated, error)
	// Sign signs a request that a client is about to send to the storage of a table. The request
	// needs no locations: they are the table's. staged and through are as for LoadCredentials.
	//
	// Errors: KindNoSuchTable; KindBadRequest if the warehouse signs nothing, or the request cannot
	// be read; KindForbidden if it is not one that is signed, or that the caller may send. Source:
	// REST specification, signRequest.
	Sign(ctx context.Context, ident moorage.Identifier, staged string, request SignRequest,
		through ...moorage.Identifier) (Signature, error)
}

// reach is what the files of a table are reached by.
type reach struct {
	offers    []string // the delegations of the warehouse
	store     storage.Store
	warehouse registry.ID
	place     storage.Place // that store reaches
	locations []string      // the present one first
	// found is nil for a staged table, which belongs to who made it. staged is its location, if its
	// credentials are renewed and its requests are signed.
	found  *directory.Found
	staged string
	ident  moorage.Identifier
	// through are the views by which the caller comes to the table; nil for none.
	through *guard.Through
}

// reachOf returns how the files of a pointer are reached, which was asked for as ident, through
// views; nil for none.
func reachOf(found *directory.Found, ident moorage.Identifier, through *guard.Through) *reach {
	locations := slices.Clone(found.Pointer.Claims)
	slices.Reverse(locations) // the present one is last there
	return &reach{
		offers: found.Delegation, store: found.Storage, warehouse: found.Warehouse, place: found.Place,
		locations: locations, found: found, ident: ident, through: through,
	}
}

// renews reports whether there is more than the first answer to be had for r.
func (r *reach) renews() bool { return r.found != nil || r.staged != "" }

// offersOne reports whether r can be reached by one of the delegations.
func (r *reach) offersOne(asked ...Delegation) bool {
	return slices.ContainsFunc(r.offers, func(offer string) bool { return slices.Contains(asked, Delegation(offer)) })
}

// Delegate is the one of Files.
func (c *Catalog) Delegate(ctx context.Context, table *Table, asked []Delegation) (Delegated, error) {
	const op = "catalog.Delegate"
	if len(asked) == 0 {
		return Delegated{}, nil
	}
	reach := table.staged
	if !table.pointer.IsZero() {
		found := table.found
		if found == nil { // it was just made, say
			var err error
			if found, err = c.planner.directory.Find(ctx, directory.Table(), table.Identifier); err != nil {
				return Delegated{}, moorage.Annotate(op, table.Identifier.String(), err)
			}
		}
		if len(found.Delegation) > 0 && found.Pointer.ID == table.pointer {
			reach = reachOf(found, table.Identifier, table.through)
		}
	}
	if reach == nil {
		return Delegated{}, nil
	}
	given, err := c.delegate(ctx, verb.LoadTable, reach, table.Document.Location(), asked)
	return given, moorage.Annotate(op, table.Identifier.String(), err)
}

// delegate returns what the first of the delegations gives that are offered and asked for, to who
// may read the table. Who may only describe it is given nothing.
func (c *Catalog) delegate(ctx context.Context, v verb.Verb, r *reach, location string, asked []Delegation) (
	Delegated, error) {
	if !r.offersOne(asked...) {
		return Delegated{}, nil
	}
	write := false
	if !r.through.Heeded() {
		var err error
		if write, err = c.may(ctx, v, r, verb.ForWriting); err != nil {
			return Delegated{}, err
		}
	}
	if !write {
		read, err := c.may(ctx, v, r, verb.Always)
		if err != nil || !read {
			return Delegated{Reason: "the caller may not read the table"}, err
		}
	}
	var reason string
	for _, name := range r.offers {
		switch offer := Delegation(name); {
		case !slices.Contains(asked, offer):
		case offer == RemoteSigning && !r.renews():
			reason = "requests for a table at a location that its client chose are signed once it is made"
		case offer == RemoteSigning:
			if _, ok := r.store.(storage.Signer); ok {
				return Delegated{
					Delegation: RemoteSigning, Refresh: true, Staged: r.staged, Through: r.through.Names(),
				}, nil
			}
			reason = "this storage signs no requests"
		case offer == VendedCredentials:
			made, err := c.vend(ctx, r, write)
			if err == nil {
				c.planner.given(ctx, r.vendedOf(c.caller, v, made, write))
				return Delegated{
					Delegation: VendedCredentials, Credential: made.credential, Encoded: made.encoded,
					Version: made.version, Through: r.through.Names(),
					Prefix: storage.Trim(location) + "/", Refresh: r.renews(), Staged: r.staged,
				}, nil
			}
			if !errors.Is(err, storage.ErrUnscopable) {
				return Delegated{}, err
			}
			reason = "no policy of the storage can spell the location of the table"
		}
	}
	return Delegated{Reason: reason}, nil
}

// may reports whether the caller has a privilege on what r reaches. An error says that it cannot be
// told.
func (c *Catalog) may(ctx context.Context, v verb.Verb, r *reach, met verb.When) (bool, error) {
	if r.found == nil {
		return true, nil
	}
	by := directory.Asker{Caller: c.caller, Verb: v, Through: r.through}
	asked := verb.LoadCredentials.Needs(verb.OfObject, met) // Sign asks for the same
	err := c.planner.directory.May(ctx, by, asked, r.found, r.ident)
	if err != nil && moorage.KindOf(err) == moorage.KindForbidden {
		return false, nil
	}
	return err == nil, err
}

// vend returns a credential that reaches what r does.
func (c *Catalog) vend(ctx context.Context, r *reach, write bool) (vended, error) {
	vender, ok := r.store.(storage.Vender)
	if !ok {
		return vended{}, storage.ErrUnscopable
	}
	scope := storage.Scope{Locations: r.locations, Write: write, Session: c.caller.Name}
	if r.found == nil {
		scope.Duration = stagedDuration
	}
	return c.planner.vends.get(ctx, wanted{vender, r.warehouse, r.place, scope})
}

// LoadCredentials is the one of Files.
func (c *Catalog) LoadCredentials(ctx context.Context, ident moorage.Identifier, staged string,
	through ...moorage.Identifier) (Delegated, error) {
	given, err := c.loadCredentials(ctx, ident, staged, through)
	return given, moorage.Annotate("catalog.LoadCredentials", ident.String(), err)
}

func (c *Catalog) loadCredentials(ctx context.Context, ident moorage.Identifier, staged string,
	through []moorage.Identifier) (Delegated, error) {
	reach, err := c.reachNow(ctx, verb.LoadCredentials, verb.LoadStaged, ident, staged, through)
	if err != nil {
		return Delegated{}, err
	}
	if !reach.offersOne(VendedCredentials) {
		return Delegated{}, moorage.Errorf(moorage.KindBadRequest,
			"The warehouse %s gives no credentials for its storage", ident.Warehouse)
	}
	given, err := c.delegate(ctx, verb.LoadCredentials, reach, reach.locations[0], []Delegation{VendedCredentials})
	if err == nil && given.Delegation == "" {
		err = moorage.Errorf(moorage.KindBadRequest, "There are no credentials for this table: %s", given.Reason)
	}
	return given, err
}

// SignRequest is a request that a client wants signed; Signature is what it adds to the request.
type (
	SignRequest = storage.SignRequest
	Signature   = storage.Signature
)

// Sign is the one of Files.
func (c *Catalog) Sign(ctx context.Context, ident moorage.Identifier, staged string, request SignRequest,
	through ...moorage.Identifier) (Signature, error) {
	signature, err := c.sign(ctx, ident, staged, request, through)
	return signature, moorage.Annotate("catalog.Sign", ident.String(), err)
}

func (c *Catalog) sign(ctx context.Context, ident moorage.Identifier, staged string, request SignRequest,
	through []moorage.Identifier) (Signature, error) {
	reach, err := c.reachNow(ctx, verb.Sign, verb.SignStaged, ident, staged, through)
	if err != nil {
		return Signature{}, err
	}
	signer, ok := reach.store.(storage.Signer)
	if !ok || !reach.offersOne(RemoteSigning) {
		return Signature{}, moorage.Errorf(moorage.KindBadRequest,
			"The warehouse %s signs no requests to its storage", ident.Warehouse)
	}
	write := false
	if !reach.through.Heeded() {
		if write, err = c.may(ctx, verb.Sign, reach, verb.ForWriting); err != nil {
			return Signature{}, err
		}
	}
	request.Locations, request.Write = reach.locations, write
	signature, err := signer.Sign(ctx, request)
	switch {
	case err == nil:
		noteSigned(ctx, c.planner, c.caller, reach, request)
	case errors.Is(err, storage.ErrNeedsWrite):
		return Signature{}, moorage.Errorf(moorage.KindForbidden, "Not allowed: write on table %s", ident)
	case errors.Is(err, storage.ErrMalformedRequest):
		return Signature{}, moorage.Errorf(moorage.KindBadRequest, "%w", err)
	case errors.Is(err, storage.ErrNotSigned):
		return Signature{}, moorage.Errorf(moorage.KindForbidden, "%w", err)
	}
	return signature, moorage.E("catalog.sign", "", moorage.KindUnavailable, err)
}
