package vending

import (
	"context"
	"errors"
	"io"
	"slices"
	"time"

	"moorage"
	"moorage/catalog/claims"
	"moorage/catalog/directory"
	"moorage/catalog/documents"
	"moorage/catalog/gate"
	"moorage/registry"
	"moorage/storage"
)

// stagedDuration is the lifetime of credentials for a table that is not stored yet. It is short
// because no record reserves their location.
const stagedDuration = 15 * time.Minute

// Config holds the parts of a Vending. All fields are required.
type Config struct {
	Directory *directory.Directory
	Claims    *claims.Claims
	Documents *documents.Documents
	Gate      gate.Authorizer
	// Vending calls Given with each credential or signature that it gives to an engine. Given must
	// not block.
	Given  func(ctx context.Context, given Given)
	Now    func() time.Time
	Random io.Reader
}

// Vending gives engines access to the files of tables. It is safe for concurrent use.
type Vending struct {
	directory   *directory.Directory
	claims      *claims.Claims
	documents   *documents.Documents
	gate        gate.Authorizer
	given       func(ctx context.Context, given Given)
	credentials *credentials
}

// New returns a Vending over the parts of config, without cached credentials.
func New(config Config) *Vending {
	return &Vending{
		directory: config.Directory, claims: config.Claims, documents: config.Documents, gate: config.Gate,
		given: config.Given, credentials: newCredentials(config.Now, config.Random),
	}
}

// Delegated is the access to the files of a table given to a client.
type Delegated struct {
	// Delegation is the chosen delegation; empty if the client got none.
	Delegation Delegation
	// Credential is the credential for VendedCredentials.
	Credential storage.Credential
	// Encoded holds the parts of Credential as members of a JSON object, without the braces. It is
	// cached with the credential, so callers must not change it.
	Encoded []byte
	// Prefix is the location that the credential is for, with a slash at its end, in the spelling
	// of the table's metadata.
	Prefix string
	// Version identifies the credential: it stays the same as long as the same credential is
	// returned. It is not secret.
	Version string
	// Refresh is true if the client can call LoadCredentials to renew the credential, or Sign to
	// sign requests.
	Refresh bool
	// Staged is the location of a table that is not stored yet. The client passes it to
	// LoadCredentials and Sign, because no record contains it. It is empty if the table is stored.
	Staged string
	// Reason explains why the client got no delegation although it requested one that the warehouse
	// offers.
	Reason string
	// Through lists the views through which the caller reached the table. It is nil if there were
	// none or they did not count.
	Through []moorage.Identifier
}

// Reach holds the data that is needed to give access to the files of a table.
type Reach struct {
	offers    []string // the delegations offered by the warehouse
	store     storage.Store
	warehouse registry.ID
	place     storage.Place // the place that store reaches
	locations []string      // the present location first
	// found is nil for a staged table, which belongs to its creator. staged is the location of a
	// staged table, if clients can renew its credentials and have requests signed.
	found  *directory.Found
	staged string
	ident  moorage.Identifier
}

// ReachOf returns the reach of a stored table that the caller named as ident.
func ReachOf(found *directory.Found, ident moorage.Identifier) *Reach {
	locations := slices.Clone(found.Pointer.Claims)
	slices.Reverse(locations) // in the pointer, the present location is last
	return &Reach{
		offers: found.Delegation, store: found.Storage, warehouse: found.Warehouse, place: found.Place,
		locations: locations, found: found, ident: ident,
	}
}

// renews reports whether a client can renew its access to r after the first answer.
func (r *Reach) renews() bool { return r.found != nil || r.staged != "" }

// offersOne reports whether the warehouse of r offers one of the delegations.
func (r *Reach) offersOne(asked ...Delegation) bool {
	return slices.ContainsFunc(r.offers, func(offer string) bool { return slices.Contains(asked, Delegation(offer)) })
}

// Delegate returns access to the files of r. It uses the first of the warehouse's delegations that
// the client requested. The client gets no delegation if it requested none, if it may not read the
// table, or if no credential is possible for the table. location is the table's location in the
// spelling of its metadata. The parameter by has the verb of the request, and the views through
// which the caller came.
//
// Errors: KindUnavailable if the storage issues no credentials now; KindTooManyRequests if too many
// were requested. The table is unchanged.
func (v *Vending) Delegate(ctx context.Context, by directory.Asker, r *Reach, location string, asked []Delegation) (
	Delegated, error) {
	if !r.offersOne(asked...) {
		return Delegated{}, nil
	}
	write, err := v.mayWrite(ctx, by, r)
	if err != nil {
		return Delegated{}, err
	}
	if !write { // a caller that may only describe the table gets no access
		read, err := v.isAllowed(ctx, by, r, gate.Always)
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
					Delegation: RemoteSigning, Refresh: true, Staged: r.staged, Through: by.Through.Names(),
				}, nil
			}
			reason = "this storage signs no requests"
		case offer == VendedCredentials:
			made, err := v.vend(ctx, by.Caller, r, write)
			if err == nil {
				v.noteVended(ctx, by, r, made, write)
				return Delegated{
					Delegation: VendedCredentials, Credential: made.credential, Encoded: made.encoded,
					Version: made.version, Through: by.Through.Names(),
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

// mayWrite reports whether the caller may write the files of r. A caller that comes through views
// that count gets no write access. No caller gets write access to a mirror: only the catalog that
// it follows writes and commits its files.
func (v *Vending) mayWrite(ctx context.Context, by directory.Asker, r *Reach) (bool, error) {
	if by.Through.Counts() || r.found != nil && r.found.Pointer.Frozen != "" {
		return false, nil
	}
	return v.isAllowed(ctx, by, r, gate.ForWriting)
}

// isAllowed reports whether the caller has the privileges on the table of r that a request
// requires. The parameter met has the conditions that the request meets. It returns an error if it
// cannot determine the answer.
func (v *Vending) isAllowed(ctx context.Context, by directory.Asker, r *Reach, met gate.When) (bool, error) {
	if r.found == nil {
		return true, nil
	}
	asked := gate.LoadCredentials.Needs(gate.OfObject, met) // Sign requires the same privileges
	err := v.directory.May(ctx, by, asked, r.found, r.ident)
	if err != nil && moorage.KindOf(err) == moorage.KindForbidden {
		return false, nil
	}
	return err == nil, err
}

// vend returns a credential for the locations of r.
func (v *Vending) vend(ctx context.Context, caller moorage.Caller, r *Reach, write bool) (vended, error) {
	vender, ok := r.store.(storage.Vender)
	if !ok {
		return vended{}, storage.ErrUnscopable
	}
	scope := storage.Scope{Locations: r.locations, Write: write, Session: caller.Name}
	if r.found == nil {
		scope.Duration = stagedDuration
	}
	return v.credentials.get(ctx, wanted{vender, r.warehouse, r.place, scope})
}

// Named is a caller's request for the files of a table by its name.
type Named struct {
	Caller moorage.Caller
	Table  moorage.Identifier
	// Staged is the value of Delegated.Staged in the first answer for the table, which may be
	// empty. If it is set, the table need not be stored yet. Then a caller that may create the
	// table gets access for a short time, if no other table lives at that location.
	Staged string
	// Through lists the views through which the caller came, outermost first. A caller that comes
	// through views that count gets no write access.
	Through []moorage.Identifier
}

// LoadCredentials returns new credentials for the files of a table, for a client that had
// credentials before.
//
// Errors: the errors of Delegate; KindNoSuchTable; KindForbidden; KindBadRequest if the warehouse
// offers no credentials, or if no credentials are possible for this table. Source: REST
// specification, loadCredentials.
func (v *Vending) LoadCredentials(ctx context.Context, table Named) (Delegated, error) {
	by, reach, err := v.find(ctx, gate.LoadCredentials, gate.LoadStaged, table)
	if err != nil {
		return Delegated{}, err
	}
	if !reach.offersOne(VendedCredentials) {
		return Delegated{}, moorage.Errorf(moorage.KindBadRequest,
			"The warehouse %s gives no credentials for its storage", table.Table.Warehouse)
	}
	given, err := v.Delegate(ctx, by, reach, reach.locations[0], []Delegation{VendedCredentials})
	if err == nil && given.Delegation == "" {
		err = moorage.Errorf(moorage.KindBadRequest, "There are no credentials for this table: %s", given.Reason)
	}
	return given, err
}

// SignRequest is a request to be signed for a client. Signature holds the headers that the client
// must add to that request.
type (
	SignRequest = storage.SignRequest
	Signature   = storage.Signature
)

// Sign signs a request that a client will send to the storage of a table. Sign sets the locations
// of request to the table's locations.
//
// Errors: KindNoSuchTable; KindBadRequest if the warehouse signs nothing, or the request cannot be
// parsed; KindForbidden if the request is of a kind that is not signed, or if the caller lacks the
// privilege. Source: REST specification, signRequest.
func (v *Vending) Sign(ctx context.Context, table Named, request SignRequest) (Signature, error) {
	by, reach, err := v.find(ctx, gate.Sign, gate.SignStaged, table)
	if err != nil {
		return Signature{}, err
	}
	signer, ok := reach.store.(storage.Signer)
	if !ok || !reach.offersOne(RemoteSigning) {
		return Signature{}, moorage.Errorf(moorage.KindBadRequest,
			"The warehouse %s signs no requests to its storage", table.Table.Warehouse)
	}
	request.Locations = reach.locations
	if request.Write, err = v.mayWrite(ctx, by, reach); err != nil {
		return Signature{}, err
	}
	signature, err := signer.Sign(ctx, request)
	switch {
	case err == nil:
		v.noteSigned(ctx, by, reach, request)
		return signature, nil
	case errors.Is(err, storage.ErrNeedsWrite):
		return Signature{}, moorage.Errorf(moorage.KindForbidden, "Not allowed: write on table %s", table.Table)
	case errors.Is(err, storage.ErrMalformedRequest):
		return Signature{}, moorage.Errorf(moorage.KindBadRequest, "%w", err)
	case errors.Is(err, storage.ErrNotSigned):
		return Signature{}, moorage.Errorf(moorage.KindForbidden, "%w", err)
	}
	return Signature{}, moorage.E("vending.Sign", "", moorage.KindUnavailable, err)
}
