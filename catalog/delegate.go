package catalog

import (
	"context"
	"errors"
	"slices"
	"time"

	"moorage"
	"moorage/catalog/directory"
	"moorage/catalog/gate"
	"moorage/registry"
	"moorage/storage"
)

// Delegation is a way in which an engine reaches files without a key of its own.
type Delegation string

// The delegations, as clients request them in X-Iceberg-Access-Delegation.
const (
	// VendedCredentials are credentials that reach the files of one table for a while.
	VendedCredentials Delegation = "vended-credentials"
	// RemoteSigning means that the server signs each request to the storage.
	RemoteSigning Delegation = "remote-signing"
)

// Delegations returns all delegations that a warehouse can offer.
func Delegations() []Delegation { return []Delegation{VendedCredentials, RemoteSigning} }

// stagedDuration is the lifetime of credentials for a table that is not stored yet. It is short
// because no record reserves their location.
const stagedDuration = 15 * time.Minute

// Delegated is the client's access to the files of a table.
type Delegated struct {
	// Delegation is the chosen delegation; empty if the client got none.
	Delegation Delegation
	// Credential is the credential for VendedCredentials.
	Credential storage.Credential
	// Encoded has the parts of Credential as members of a JSON object, without its braces. It is
	// kept with the credential, and must not be changed.
	Encoded []byte
	// Prefix is the location that the credential is for, as the table spells it, with a slash at
	// its end.
	Prefix string
	// Version identifies the credential: it is unchanged as long as the same credential is
	// returned. It is not secret.
	Version string
	// Refresh means that LoadCredentials renews the credential, or that Sign signs.
	Refresh bool
	// Staged is the location of a table that is not stored yet, for LoadCredentials and Sign, which
	// have no other source for it. Empty if the table is stored.
	Staged string
	// Reason is why the client got no delegation although it requested one that the warehouse
	// offers.
	Reason string
	// Through are the views through which the caller reached the table, if they counted.
	Through []moorage.Identifier
}

// Files has the verbs that give a caller access to the files of a table. They are safe for
// concurrent use.
type Files interface {
	// Delegate gives a client access to the files of table by the first of the warehouse's
	// delegations that it requested. A client gets no delegation if it requested none, may not read
	// the table, or if no credential is possible for the table.
	//
	// Errors: KindUnavailable if the storage issues no credentials now, KindTooManyRequests if too
	// many were requested. The table is unchanged.
	Delegate(ctx context.Context, table *Table, asked []Delegation) (Delegated, error)
	// LoadCredentials returns new credentials for the files of a table, for a client that had some
	// before. staged is the Delegated.Staged of that time. If it is not empty, the table need not
	// be stored yet. Then a caller that may create it gets credentials for a short time, if no
	// other table lives there.
	//
	// through has the same meaning as in LoadTable. A caller that comes through views that count
	// gets no write access.
	//
	// Errors: those of Delegate; KindNoSuchTable; KindForbidden; KindBadRequest if the warehouse
	// offers no credentials, or none are possible for this table. Source: REST specification,
	// loadCredentials.
	LoadCredentials(ctx context.Context, ident moorage.Identifier, staged string, through ...moorage.Identifier) (
		Delegated, error)
	// Sign signs a request that a client will send to the storage of a table. The request needs no
	// locations: Sign uses the table's. staged and through are as for LoadCredentials.
	//
	// Errors: KindNoSuchTable; KindBadRequest if the warehouse signs nothing, or the request cannot
	// be parsed; KindForbidden if the request is of a kind that is not signed, or if the caller
	// lacks the privilege. Source: REST specification, signRequest.
	Sign(ctx context.Context, ident moorage.Identifier, staged string, request SignRequest,
		through ...moorage.Identifier) (Signature, error)
}

// reach holds the data for access to the files of a table.
type reach struct {
	offers    []string // the delegations that the warehouse offers
	store     storage.Store
	warehouse registry.ID
	place     storage.Place // reached by store
	locations []string      // the present one first
	// found is nil for a staged table, which belongs to its creator. staged is its location, if its
	// credentials are renewed and its requests are signed.
	found  *directory.Found
	staged string
	ident  moorage.Identifier
	// through are the views through which the caller reaches the table; nil if there are none.
	through *gate.Through
}

// reachOf returns the reach of a pointer that the caller named as ident, through views; nil if
// there are none.
func reachOf(found *directory.Found, ident moorage.Identifier, through *gate.Through) *reach {
	locations := slices.Clone(found.Pointer.Claims)
	slices.Reverse(locations) // there the present one is last
	return &reach{
		offers: found.Delegation, store: found.Storage, warehouse: found.Warehouse, place: found.Place,
		locations: locations, found: found, ident: ident, through: through,
	}
}

// renews reports whether r gets access after the first answer.
func (r *reach) renews() bool { return r.found != nil || r.staged != "" }

// offersOne reports whether the warehouse of r offers one of the delegations.
func (r *reach) offersOne(asked ...Delegation) bool {
	return slices.ContainsFunc(r.offers, func(offer string) bool { return slices.Contains(asked, Delegation(offer)) })
}

// Delegate implements Files.
func (c *Catalog) Delegate(ctx context.Context, table *Table, asked []Delegation) (Delegated, error) {
	const op = "catalog.Delegate"
	if len(asked) == 0 {
		return Delegated{}, nil
	}
	reach := table.staged
	if !table.pointer.IsZero() {
		found := table.found
		if found == nil { // it may have just been created
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
	given, err := c.delegate(ctx, gate.LoadTable, reach, table.Document.Location(), asked)
	return given, moorage.Annotate(op, table.Identifier.String(), err)
}

// delegate returns access by the first delegation that is offered and requested, if the caller may
// read the table. A caller that may only describe the table gets none.
func (c *Catalog) delegate(ctx context.Context, v gate.Verb, r *reach, location string, asked []Delegation) (
	Delegated, error) {
	if !r.offersOne(asked...) {
		return Delegated{}, nil
	}
	write := false
	if !r.through.Counts() {
		var err error
		if write, err = c.may(ctx, v, r, gate.ForWriting); err != nil {
			return Delegated{}, err
		}
	}
	if !write {
		read, err := c.may(ctx, v, r, gate.Always)
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

// may reports whether the caller has a privilege on the table of r. An error means that this cannot
// be determined.
func (c *Catalog) may(ctx context.Context, v gate.Verb, r *reach, met gate.When) (bool, error) {
	if r.found == nil {
		return true, nil
	}
	by := directory.Asker{Caller: c.caller, Verb: v, Through: r.through}
	asked := gate.LoadCredentials.Needs(gate.OfObject, met) // Sign requires the same privileges
	err := c.planner.directory.May(ctx, by, asked, r.found, r.ident)
	if err != nil && moorage.KindOf(err) == moorage.KindForbidden {
		return false, nil
	}
	return err == nil, err
}

// vend returns a credential for the locations of r.
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

// LoadCredentials implements Files.
func (c *Catalog) LoadCredentials(ctx context.Context, ident moorage.Identifier, staged string,
	through ...moorage.Identifier) (Delegated, error) {
	given, err := c.loadCredentials(ctx, ident, staged, through)
	return given, moorage.Annotate("catalog.LoadCredentials", ident.String(), err)
}

func (c *Catalog) loadCredentials(ctx context.Context, ident moorage.Identifier, staged string,
	through []moorage.Identifier) (Delegated, error) {
	reach, err := c.reachNow(ctx, gate.LoadCredentials, gate.LoadStaged, ident, staged, through)
	if err != nil {
		return Delegated{}, err
	}
	if !reach.offersOne(VendedCredentials) {
		return Delegated{}, moorage.Errorf(moorage.KindBadRequest,
			"The warehouse %s gives no credentials for its storage", ident.Warehouse)
	}
	given, err := c.delegate(ctx, gate.LoadCredentials, reach, reach.locations[0], []Delegation{VendedCredentials})
	if err == nil && given.Delegation == "" {
		err = moorage.Errorf(moorage.KindBadRequest, "There are no credentials for this table: %s", given.Reason)
	}
	return given, err
}

// SignRequest is a request to be signed; Signature holds the headers that the client adds to it.
type (
	SignRequest = storage.SignRequest
	Signature   = storage.Signature
)

// Sign implements Files.
func (c *Catalog) Sign(ctx context.Context, ident moorage.Identifier, staged string, request SignRequest,
	through ...moorage.Identifier) (Signature, error) {
	signature, err := c.sign(ctx, ident, staged, request, through)
	return signature, moorage.Annotate("catalog.Sign", ident.String(), err)
}

func (c *Catalog) sign(ctx context.Context, ident moorage.Identifier, staged string, request SignRequest,
	through []moorage.Identifier) (Signature, error) {
	reach, err := c.reachNow(ctx, gate.Sign, gate.SignStaged, ident, staged, through)
	if err != nil {
		return Signature{}, err
	}
	signer, ok := reach.store.(storage.Signer)
	if !ok || !reach.offersOne(RemoteSigning) {
		return Signature{}, moorage.Errorf(moorage.KindBadRequest,
			"The warehouse %s signs no requests to its storage", ident.Warehouse)
	}
	write := false
	if !reach.through.Counts() {
		if write, err = c.may(ctx, gate.Sign, reach, gate.ForWriting); err != nil {
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
