package claims

import (
	"context"
	"strings"

	"moorage"
	"moorage/ledger"
	"moorage/registry"
	"moorage/storage"
)

// Live calls visit for each location at or below folder that is claimed by a live table or view,
// with the pointer. It skips locations for which matters returns false, and does not read their
// pointers. Live stops at the first error of visit, and returns that error. It may miss a claim
// that is made during the call.
func (c *Claims) Live(ctx context.Context, folder storage.Location, matters func(at storage.Location) bool,
	visit func(at storage.Location, pointer registry.Pointer) error) error {
	var places []storage.Location
	var holders []registry.Key
	visitPage := func() error {
		pointers, err := c.ledger.Get(ctx, holders...)
		for i, record := range pointers {
			if record.State != registry.StateLive {
				continue
			}
			pointer, err := ledger.Decode[registry.Pointer](record)
			if err == nil {
				err = visit(places[i], pointer)
			}
			if err != nil {
				return err
			}
		}
		places, holders = places[:0], holders[:0]
		return err
	}
	collect := func(record registry.Record) (bool, error) {
		if record.State != registry.StateOwner {
			return true, nil
		}
		at, err := storage.Parse(record.Key.ID)
		if err != nil {
			return false, moorage.E("claims.Live", record.Key.ID, moorage.KindInternal, err)
		}
		if !matters(at) {
			return true, nil
		}
		claim, err := ledger.Decode[registry.LocationClaim](record)
		if err != nil {
			return false, err
		}
		places, holders = append(places, at), append(holders, registry.PointerKey(claim.Pointer))
		if len(holders) == ledger.ScanPage {
			err = visitPage()
		}
		return true, err
	}
	own, err := c.ledger.Get(ctx, registry.LocationKey(folder.String()))
	if err == nil {
		_, err = collect(own[0])
	}
	if err == nil {
		below := strings.TrimSuffix(folder.String(), "/") + "/"
		err = c.ledger.Scan(ctx, registry.TableLocation, below, "", collect)
	}
	if err != nil || len(holders) == 0 {
		return err
	}
	return visitPage()
}
