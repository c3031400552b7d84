package vending

import (
	"context"
	"errors"
	"slices"

	"moorage"
	"moorage/storage"
)

// Delegation is a way for an engine to reach files without its own key.
type Delegation string

// The delegations, as clients request them in X-Iceberg-Access-Delegation.
const (
	// VendedCredentials: the engine gets temporary credentials for the files of one table.
	VendedCredentials Delegation = "vended-credentials"
	// RemoteSigning: the server signs each of the engine's requests to the storage.
	RemoteSigning Delegation = "remote-signing"
)

// Delegations returns all delegations that a warehouse can offer.
func Delegations() []Delegation { return []Delegation{VendedCredentials, RemoteSigning} }

// CheckOffers returns KindBadRequest if offers is not a valid list of delegations for a warehouse.
func CheckOffers(offers []Delegation) error {
	for i, offer := range offers {
		if !slices.Contains(Delegations(), offer) || slices.Contains(offers[:i], offer) {
			return moorage.Errorf(moorage.KindBadRequest,
				"Invalid delegation of a warehouse: %q, want vended-credentials, remote-signing or both", offer)
		}
	}
	return nil
}

// Probe checks that a storage enforces a delegation, so that credentials or signatures give no
// access to the files of other tables. It sends some thirty small requests. The error is
// storage.ErrUnenforced if the storage does not enforce the delegation.
func (d Delegation) Probe(ctx context.Context, store storage.Store) error {
	switch d {
	case VendedCredentials:
		if vender, ok := store.(storage.Vender); ok {
			return vender.ProbeVending(ctx)
		}
	case RemoteSigning:
		if signer, ok := store.(storage.Signer); ok {
			return signer.ProbeSigning(ctx)
		}
	}
	return errors.New("there is no such thing for this kind of storage")
}
