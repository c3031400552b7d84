package catalog

import (
	"context"
	"errors"
	"slices"
	"time"

	"moorage"
	"moorage/storage"
)

// delegationProbeMax bounds the probe of a warehouse's delegations: some thirty small requests.
const delegationProbeMax = 30 * time.Second

// namesOf returns the names of delegations for a record.
func namesOf(offers []Delegation) (names []string) {
	for _, offer := range offers {
		names = append(names, string(offer))
	}
	return names
}

func delegationsOf(names []string) []Delegation {
	offers := make([]Delegation, len(names))
	for i, name := range names {
		offers[i] = Delegation(name)
	}
	return offers
}

// checkDelegation returns KindBadRequest if a warehouse cannot offer the delegations.
func checkDelegation(offers []Delegation) error {
	for i, offer := range offers {
		if !slices.Contains(Delegations(), offer) || slices.Contains(offers[:i], offer) {
			return moorage.Errorf(moorage.KindBadRequest,
				"Invalid delegation of a warehouse: %q, want vended-credentials, remote-signing or both", offer)
		}
	}
	return nil
}

// probeDelegation checks that a storage enforces the delegations that a warehouse will offer. It
// returns KindBadRequest if it does not: its credentials would open the files of all tables.
func probeDelegation(ctx context.Context, store storage.Store, offers []Delegation) error {
	for _, offer := range offers {
		if err := probeOffer(ctx, store, offer); err != nil {
			if errors.Is(err, storage.ErrUnavailable) || ctx.Err() != nil {
				return moorage.E("catalog.probeDelegation", "", moorage.KindUnavailable, err)
			}
			return moorage.Errorf(moorage.KindBadRequest,
				"The storage of the warehouse cannot offer %s, leave it out: %w", offer, err)
		}
	}
	return nil
}

// probeOffer probes one delegation.
func probeOffer(ctx context.Context, store storage.Store, offer Delegation) error {
	switch offer {
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
