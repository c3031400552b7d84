package warehouses

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"strings"

	"moorage"
	"moorage/catalog/commit"
	"moorage/catalog/gate"
	"moorage/catalog/rebase"
	"moorage/catalog/vending"
	"moorage/ledger"
	"moorage/metadata"
	"moorage/registry"
	"moorage/storage"
)

// Spec is a request for a new warehouse.
type Spec struct {
	Name     string
	Location string
	// AllowedLocations are further locations below which the warehouse's tables may live. There may
	// be at most AllowedLocationsMax. A location that is repeated, even in another spelling, is
	// kept once.
	AllowedLocations []string
	// Storage has the options for reaching the storage, in the form of storage.Place.Options. It
	// must not contain secrets.
	Storage map[string]string
	// Secrets are additional secret values for reaching the storage. The keys are the names
	// described at storage.Secret. The values are sealed before they are stored, and are never
	// returned. If Secrets is nil, the server uses the credentials of its process.
	Secrets map[string]map[string]string
	// Properties are sent to every client of the warehouse, as defaults for the client's own
	// configuration. They must not contain secrets.
	Properties map[string]string
	// Delegation lists the delegations that the warehouse offers, preferred first. With a
	// delegation, engines reach files without their own keys. The list may be empty.
	Delegation []vending.Delegation
}

// AllowedLocationsMax is the maximum number of allowed locations of a warehouse. The number is
// bounded because a change of the settings for reaching files writes a test file to each location.
const AllowedLocationsMax = 100

// Create creates a warehouse. The server must support storage at its location and its allowed
// locations. The warehouse is durable when Create returns. The caller needs admin.
//
// Further errors: KindBadRequest for an invalid name, location or property, or for a location that
// cannot be opened; KindTooLarge for properties longer than registry.PropertiesBytesMax;
// KindAlreadyExists. KindForbidden for a folder of this machine that Config.LocalFolder refuses,
// unless the caller is a job of the server.
func (w *Warehouses) Create(ctx context.Context, spec Spec) (Details, error) {
	value := registry.Warehouse{
		Location:   storage.Trim(spec.Location),
		Storage:    spec.Storage,
		Properties: spec.Properties,
		Delegation: namesOf(spec.Delegation),
		Since:      w.now(),
	}
	var secret registry.Secret
	_, err := w.pipeline.Submit(ctx, commit.Intent{
		Caller: w.caller, Verb: gate.CreateWarehouse, On: []moorage.Identifier{{Warehouse: spec.Name}},
		Look: func(ctx context.Context) (commit.Scope, error) {
			scope := commit.Scope{Warehouse: spec.Name}
			err := checkLocations(spec.AllowedLocations)
			if err == nil {
				value.AllowedLocations, err = Change{AllowLocations: spec.AllowedLocations}.locations(value)
			}
			if err != nil {
				return scope, err
			}
			if value.Creator, err = w.guard.Creator(ctx, w.caller); err != nil {
				return scope, err
			}
			if value.ID, err = w.ledger.NewID(); err != nil {
				return scope, err
			}
			place := w.directory.PlaceOf(value)
			if len(spec.Secrets) > 0 {
				place.Secret, secret, err = w.reseal(ctx, value, registry.Secret{}, spec.Secrets)
				if err == nil {
					value.Secret, err = refOf(place.Secret)
				}
				if err != nil {
					return scope, err
				}
			}
			return scope, w.check(ctx, spec, value, place)
		},
		Plan: func(ctx context.Context, attempt *commit.Attempt) (*commit.Plan, error) {
			records, err := w.ledger.Get(ctx, registry.WarehouseKey(spec.Name))
			if err != nil {
				return nil, err
			}
			value.Last = value.Written(registry.StateLive, attempt.Change)
			return planCreate(kept{spec.Name, records[0], value}, secret)
		},
	})
	if err != nil {
		return Details{}, moorage.Annotate("warehouses.Create", spec.Name, err)
	}
	details := Details{
		Warehouse: Of(spec.Name, value), ID: value.ID, Storage: maps.Clone(value.Storage),
		Creator: moorage.NameOf(value.Creator),
	}
	if len(secret.Sealed) > 0 {
		details.Secret = secretDetails(secret)
	}
	return details, nil
}

// planCreate plans the record of a new warehouse, and the record of its secret if it has one.
// made.record is the present record at its name.
func planCreate(made kept, secret registry.Secret) (*commit.Plan, error) {
	if made.record.Exists() {
		return nil, moorage.Errorf(moorage.KindAlreadyExists, "Warehouse already exists: %s", made.name)
	}
	key := registry.WarehouseKey(made.name)
	puts, conditions := []ledger.Write{ledger.Put(key, registry.StateLive, made.value)}, []registry.Condition{
		registry.Absent(key),
	}
	if id := made.value.Secret.ID; !id.IsZero() {
		puts = append(puts, ledger.Put(registry.SecretKey(id), registry.StateNone, secret))
		conditions = append(conditions, registry.Absent(registry.SecretKey(id)))
	}
	writes, err := ledger.Encode(puts...)
	return &commit.Plan{Conditions: conditions, Writes: writes, Items: []registry.Item{made.item()}}, err
}

// namesOf returns the names of delegations in records.
func namesOf(offers []vending.Delegation) (names []string) {
	for _, offer := range offers {
		names = append(names, string(offer))
	}
	return names
}

// check returns nil if a warehouse with spec is possible, and otherwise the error. value is the
// value of its record, and place is the place of its files.
func (w *Warehouses) check(ctx context.Context, spec Spec, value registry.Warehouse, place storage.Place) error {
	const op = "warehouses.check"
	err := cmp.Or(moorage.ValidateName("warehouse name", spec.Name), registry.CheckProperties(spec.Properties),
		checkProperties(spec.Properties), vending.CheckOffers(spec.Delegation), checkLocations(value.Roots()),
		w.checkFolders(value), checkOptions(value))
	if err != nil {
		return err
	}
	err = w.directory.Probe(ctx, place)
	switch {
	case errors.Is(err, storage.ErrUnavailable):
		return moorage.E(op, spec.Name, moorage.KindUnavailable, err)
	case err != nil:
		return moorage.E(op, spec.Name, moorage.KindBadRequest,
			moorage.Errorf(moorage.KindBadRequest, "Cannot open the location of the warehouse: %s", err))
	}
	return w.try(ctx, value, place)
}

// checkLocations returns KindBadRequest if a location of a warehouse is malformed, or if there are
// too many locations.
func checkLocations(locations []string) error {
	if len(locations) > 1+AllowedLocationsMax {
		return moorage.Errorf(moorage.KindBadRequest, "The warehouse has %d allowed locations, at most %d are possible",
			len(locations)-1, AllowedLocationsMax)
	}
	for _, location := range locations {
		if _, err := storage.Normalise(location); err != nil {
			return moorage.Errorf(moorage.KindBadRequest, "Invalid location of a warehouse: %s", location)
		}
	}
	return nil
}

// checkFolders returns KindForbidden if the warehouse has folders on this machine that the caller
// may not make the server use. It does not restrict a job of the server: a process that opens the
// store itself can access the machine's files anyway.
func (w *Warehouses) checkFolders(value registry.Warehouse) error {
	if w.localFolder == nil || gate.IsSystem(w.caller) {
		return nil
	}
	for _, location := range value.Roots() {
		parsed, err := storage.Parse(location)
		if err != nil || parsed.Scheme != storage.SchemeFile {
			continue // this location is not on this machine
		}
		if err := w.localFolder(parsed.Path); err != nil {
			return moorage.Errorf(moorage.KindForbidden, "Not allowed: the location %s of a warehouse: %s",
				location, err)
		}
	}
	return nil
}

// checkOptions returns KindBadRequest if a warehouse has only folders but has storage options,
// because folders have no options. Other storages refuse unknown options themselves.
func checkOptions(value registry.Warehouse) error {
	for _, location := range value.Roots() {
		parsed, err := storage.Parse(location)
		if err == nil && parsed.Scheme != storage.SchemeFile {
			return nil
		}
	}
	if len(value.Storage) == 0 {
		return nil
	}
	return moorage.Errorf(moorage.KindBadRequest,
		"Unknown storage option %q: a warehouse in folders of the server has none. Remove it",
		moorage.Cut(slices.Min(slices.Collect(maps.Keys(value.Storage))), moorage.ShownBytesMax))
}

// checkProperties returns KindBadRequest if properties include a property that only the server
// itself may send to clients. It also returns KindBadRequest if a property that the catalog uses
// has an invalid value.
func checkProperties(properties map[string]string) error {
	for _, name := range []string{"prefix", "namespace-separator"} {
		if _, ok := properties[name]; ok {
			return moorage.Errorf(moorage.KindBadRequest,
				"The property %s of a warehouse is the server's own: leave it out", name)
		}
	}
	if said, set := properties[metadata.PropPurgeDelay]; set {
		if _, err := metadata.ParsePurgeDelay(said); err != nil {
			return err
		}
	}
	if value, set := properties[metadata.PropAppendRebase]; set && value != metadata.AppendRebaseOff {
		return moorage.Errorf(moorage.KindBadRequest,
			"Invalid %s: %s. A warehouse can only say off; tables and requests consent to a rebase themselves",
			metadata.PropAppendRebase, moorage.Cut(value, moorage.ShownBytesMax))
	}
	for name := range properties {
		if strings.EqualFold(name, headerProperty+rebase.Header) {
			return moorage.Errorf(moorage.KindBadRequest,
				"The property %s of a warehouse would make every client consent to a rebase: "+
					"set it at the clients that only append", moorage.Cut(name, moorage.ShownBytesMax))
		}
	}
	return nil
}

// headerProperty is the prefix of properties that make clients send a header.
const headerProperty = "header."
