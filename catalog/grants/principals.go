package grants

import (
	"context"
	"slices"
	"strings"
	"time"

	"moorage"
	"moorage/access"
	"moorage/catalog/gate"
	"moorage/ledger"
	"moorage/registry"
)

const (
	// keysMax is the maximum number of API keys of a principal. The number is bounded because each
	// change rewrites the principal's whole record.
	keysMax = 100
	// descriptionBytesMax bounds the description of a principal, a role or a key.
	descriptionBytesMax = 1024
	// keyAlias is the alias of all principals that have API keys.
	keyAlias = "key:"
)

// Principal is the record of a principal.
type Principal struct {
	Name string
	PrincipalSpec
	Created time.Time // zero if the principal has no record
	Keys    []APIKey
}

// PrincipalSpec holds the fields of a principal that can be set.
type PrincipalSpec struct {
	Disabled    bool
	Description string
	// SpeaksFor is the alias of an issuer. The principal may act for the subjects of that issuer if
	// it has impersonate.
	SpeaksFor string
}

// APIKey is an API key, without its secret or its hash.
type APIKey struct {
	ID          string
	Description string
	Generation  uint64
	Roles       []string // the roles to which the key is narrowed; nil if it is not narrowed
	Created     time.Time
	By          string
	Ends        time.Time // the expiry of its newest secret
	// Parent is the id of the API key with which the newest secret was requested. It is empty if
	// the secret was requested without an API key.
	Parent string
}

// KeyLifeMax is the maximum lifetime of an API key that was requested with a token or a
// certificate. Tokens and certificates expire soon, so the lifetime of a key that outlives them is
// bounded.
const KeyLifeMax = 90 * 24 * time.Hour

// KeySpec is a request for a new API key. The HTTP API that receives the request generates the id
// and the secret.
type KeySpec struct {
	ID          string
	SHA256      [32]byte // the hash of the secret
	Description string
	Roles       []string
	// Ends is when the key expires. If the caller did not authenticate with an API key, the key
	// expires after KeyLifeMax at the latest.
	Ends time.Time
}

// principalAt is the record of a principal from one read. The record may be missing.
type principalAt struct {
	name   string
	record registry.Record
	value  registry.Principal
	exists bool // whether the principal exists; a deleted principal also has a record
}

// readPrincipal reads the record of a principal.
func (g *Grants) readPrincipal(ctx context.Context, name string) (p principalAt, err error) {
	if access.GranteeOf(name) != access.IsPrincipal {
		return p, moorage.Errorf(moorage.KindIllegalArgument, "%q is not the name of a principal: issuer:subject", name)
	}
	records, err := g.ledger.Get(ctx, registry.PrincipalKey(name))
	if err != nil {
		return p, err
	}
	p.name, p.record = name, records[0]
	if p.record.Exists() {
		p.value, err = ledger.Decode[registry.Principal](p.record)
		p.exists = !p.value.Deleted
	}
	if !p.exists {
		p.value = registry.Principal{Created: g.now(), Generation: p.value.Generation}
	}
	return p, err
}

// put returns the edit that writes p.
func (p principalAt) put() edit {
	key := registry.PrincipalKey(p.name)
	return edit{
		puts:  []ledger.Write{ledger.Put(key, registry.StateNone, p.value)},
		read:  []registry.Condition{ledger.AsRead(p.record, key)},
		items: []registry.Item{policyItem(registry.ItemPrincipal, p.name)},
	}
}

// policyItem returns the item for a principal or a role in a change record.
func policyItem(kind, name string) registry.Item {
	return registry.Item{Kind: kind, Ident: moorage.Identifier{Name: name}}
}

// asCaller returns p in the form for callers.
func (p principalAt) asCaller() Principal {
	principal := Principal{
		Name: p.name, Created: p.value.Created, Keys: []APIKey{}, PrincipalSpec: PrincipalSpec{
			Disabled: p.value.Disabled, Description: p.value.Description, SpeaksFor: p.value.SpeaksFor,
		},
	}
	for _, key := range p.value.Keys {
		principal.Keys = append(principal.Keys, keyOf(key))
	}
	return principal
}

// keyOf returns an API key in the form for callers.
func keyOf(key registry.APIKey) APIKey {
	made := APIKey{
		ID: key.ID, Description: key.Description, Roles: key.Roles, Created: key.Created, By: key.By,
		Parent: key.Parent,
	}
	if n := len(key.Secrets); n > 0 {
		made.Generation, made.Ends = key.Secrets[n-1].Generation, key.Secrets[n-1].Ends
	}
	return made
}

func checkDescription(text string) error {
	if len(text) > descriptionBytesMax {
		return moorage.Errorf(moorage.KindTooLarge, "A description of %d bytes, at most %d are allowed",
			len(text), descriptionBytesMax)
	}
	return nil
}

// Principals returns the principals that have a record, sorted by name. It requires admin.
func (g *Grants) Principals(ctx context.Context, page moorage.Page) (principals []Principal, next string, err error) {
	const op = "grants.Principals"
	call, err := g.begin(ctx, gate.ListPrincipals)
	if err == nil {
		err = call.onServer(ctx, gate.Always)
	}
	if err != nil {
		return nil, "", moorage.Annotate(op, "", err)
	}
	principals = []Principal{}
	err = g.ledger.Scan(ctx, registry.TablePrincipal, "", page.After,
		func(record registry.Record) (bool, error) {
			if page.Limit > 0 && len(principals) == page.Limit {
				next = principals[len(principals)-1].Name
				return false, nil
			}
			value, err := ledger.Decode[registry.Principal](record)
			if !value.Deleted {
				principals = append(principals, principalAt{record.Key.ID, record, value, true}.asCaller())
			}
			return true, err
		})
	return principals, next, moorage.Annotate(op, "", err)
}

// LoadPrincipal returns the record of a principal. It requires admin, unless the principal is the
// caller. A principal without a record is KindNotFound.
func (g *Grants) LoadPrincipal(ctx context.Context, name string) (Principal, error) {
	const op = "grants.LoadPrincipal"
	call, err := g.begin(ctx, gate.LoadPrincipal)
	if err == nil {
		err = call.adminOrSelf(ctx, name)
	}
	if err != nil {
		return Principal{}, moorage.Annotate(op, name, err)
	}
	p, err := g.readPrincipal(ctx, name)
	if err == nil && !p.exists {
		err = noSuch("Principal", name)
	}
	return p.asCaller(), moorage.Annotate(op, name, err)
}

// PutPrincipal creates or changes the record of a principal. It does not change the principal's
// keys. It requires admin.
func (g *Grants) PutPrincipal(ctx context.Context, name string, spec PrincipalSpec) (made Principal, err error) {
	err = g.change(ctx, gate.PutPrincipal, func(ctx context.Context, c *call) (edit, error) {
		if err := c.onServer(ctx, gate.Always); err != nil {
			return edit{}, err
		}
		if err := checkDescription(spec.Description); err != nil {
			return edit{}, err
		}
		isAlias := access.GranteeOf(spec.SpeaksFor+":x") == access.IsPrincipal && !isReserved(spec.SpeaksFor)
		if spec.SpeaksFor != "" && !isAlias {
			return edit{}, moorage.Errorf(moorage.KindIllegalArgument,
				"A principal cannot speak for %q: name an issuer of the configuration", spec.SpeaksFor)
		}
		p, err := c.readPrincipal(ctx, name)
		if err != nil {
			return edit{}, err
		}
		p.value.Disabled, p.value.Description, p.value.SpeaksFor = spec.Disabled, spec.Description, spec.SpeaksFor
		made = p.asCaller()
		return p.put(), nil
	})
	return made, moorage.Annotate("grants.PutPrincipal", name, err)
}

// isReserved reports whether an alias cannot belong to an issuer.
func isReserved(alias string) bool {
	return slices.Contains([]string{"key", "cert", "system", "anonymous", "moorage"}, alias)
}

// DeletePrincipal removes a principal, with its keys. Its grants, memberships and ownership end. A
// later principal of the same name does not inherit them. It requires admin. A principal without a
// record is KindNotFound.
func (g *Grants) DeletePrincipal(ctx context.Context, name string) error {
	err := g.change(ctx, gate.DeletePrincipal, func(ctx context.Context, c *call) (edit, error) {
		if err := c.onServer(ctx, gate.Always); err != nil {
			return edit{}, err
		}
		p, err := c.readPrincipal(ctx, name)
		switch {
		case err != nil:
			return edit{}, err
		case !p.exists:
			return edit{}, noSuch("Principal", name)
		}
		p.value = registry.Principal{Deleted: true, Generation: p.value.Generation + 1}
		return p.put(), nil
	})
	return moorage.Annotate("grants.DeletePrincipal", name, err)
}

// CreateKey creates an API key for a principal with the alias "key". If that principal has no
// record, CreateKey creates it too. It requires admin, unless the principal is the caller.
func (g *Grants) CreateKey(ctx context.Context, principal string, spec KeySpec) (made APIKey, err error) {
	err = g.change(ctx, gate.CreateKey, func(ctx context.Context, c *call) (edit, error) {
		p, err := c.keysOf(ctx, principal, spec)
		if err != nil {
			return edit{}, err
		}
		if taken, _ := c.policy.Keys(spec.ID); taken != nil || len(p.value.Keys) >= keysMax {
			return edit{}, moorage.Errorf(moorage.KindAlreadyExists,
				"There is an API key called %s, or %s has %d keys already", spec.ID, principal, keysMax)
		}
		key := registry.APIKey{
			ID: spec.ID, Description: spec.Description, Roles: spec.Roles, Created: g.now(), By: c.caller.Name,
			Secrets: []registry.KeySecret{{SHA256: spec.SHA256, Generation: 1, Ends: c.endOfKey(spec)}},
			Parent:  g.caller.KeyID,
		}
		p.value.Keys = append(slices.Clip(p.value.Keys), key)
		made = keyOf(key)
		return p.put(), nil
	})
	return made, moorage.Annotate("grants.CreateKey", principal, err)
}

// endOfKey returns the expiry of the key that the caller requests. A token or certificate with a
// lifetime of an hour must not create a key that is valid for a century.
func (c *call) endOfKey(spec KeySpec) time.Time {
	caller := c.caller
	latest := c.now().Add(KeyLifeMax)
	if gate.IsSystem(caller) || caller.Source == moorage.SourceKey || spec.Ends.Before(latest) {
		return spec.Ends
	}
	return latest
}

// keysOf reads the principal for a change of its keys by spec, and checks spec and the caller.
func (c *call) keysOf(ctx context.Context, principal string, spec KeySpec) (principalAt, error) {
	if err := c.adminOrSelf(ctx, principal); err != nil {
		return principalAt{}, err
	}
	switch {
	case !strings.HasPrefix(principal, keyAlias):
		return principalAt{}, moorage.Errorf(moorage.KindIllegalArgument,
			"%s cannot have API keys: principals called key:NAME can", principal)
	case spec.ID == "" || spec.SHA256 == [32]byte{}:
		return principalAt{}, moorage.Errorf(moorage.KindIllegalArgument, "An API key needs an id and a secret")
	case !c.now().Before(spec.Ends):
		return principalAt{}, moorage.Errorf(moorage.KindIllegalArgument, "The API key would end before it begins")
	}
	for _, role := range spec.Roles {
		if kind := access.GranteeOf(role); kind != access.IsRole {
			return principalAt{}, moorage.Errorf(moorage.KindIllegalArgument, "%q is not the name of a role", role)
		}
	}
	if err := checkDescription(spec.Description); err != nil {
		return principalAt{}, err
	}
	return c.readPrincipal(ctx, principal)
}

// RotateKey gives an API key a new secret, from spec. The present secret expires after grace, or at
// its own expiry if that is earlier. It requires the same privileges as CreateKey.
func (g *Grants) RotateKey(ctx context.Context, principal string, spec KeySpec, grace time.Duration) (
	made APIKey, err error) {
	err = g.change(ctx, gate.RotateKey, func(ctx context.Context, c *call) (edit, error) {
		p, err := c.keysOf(ctx, principal, spec)
		if err != nil {
			return edit{}, err
		}
		at := p.keyAt(spec.ID)
		if at < 0 {
			return edit{}, noSuch("API key", spec.ID)
		}
		p.value.Keys = slices.Clone(p.value.Keys)
		key := &p.value.Keys[at]
		present := key.Secrets[len(key.Secrets)-1]
		if ends := g.now().Add(max(grace, 0)); ends.Before(present.Ends) {
			present.Ends = ends
		}
		key.Secrets = []registry.KeySecret{
			present, {SHA256: spec.SHA256, Generation: present.Generation + 1, Ends: c.endOfKey(spec)},
		}
		if by := g.caller.KeyID; by != "" && by != key.ID {
			key.Parent = by // the holder of that key knows the new secret
		}
		made = keyOf(*key)
		return p.put(), nil
	})
	return made, moorage.Annotate("grants.RotateKey", principal, err)
}

// keyAt returns the index of the API key called id, or -1 if p does not have that key.
func (p principalAt) keyAt(id string) int {
	return slices.IndexFunc(p.value.Keys, func(key registry.APIKey) bool {
		return key.ID == id && len(key.Secrets) > 0
	})
}

// WithdrawKey ends an API key at once. It requires the same privileges as CreateKey. If the key
// does not exist, the error is KindNotFound.
func (g *Grants) WithdrawKey(ctx context.Context, principal, id string) error {
	err := g.change(ctx, gate.WithdrawKey, func(ctx context.Context, c *call) (edit, error) {
		if err := c.adminOrSelf(ctx, principal); err != nil {
			return edit{}, err
		}
		p, err := c.readPrincipal(ctx, principal)
		if err != nil {
			return edit{}, err
		}
		at := slices.IndexFunc(p.value.Keys, func(key registry.APIKey) bool { return key.ID == id })
		if at < 0 {
			return edit{}, noSuch("API key", id)
		}
		p.value.Keys = slices.Delete(slices.Clone(p.value.Keys), at, at+1)
		return p.put(), nil
	})
	return moorage.Annotate("grants.WithdrawKey", principal, err)
}
