package identity

import (
	"cmp"
	"context"
	cryptorand "crypto/rand"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"time"

	"moorage"
)

// stageLife is the lifetime of a token of a Stage. No job takes longer to create a table.
const stageLife = 24 * time.Hour

// stageAudience is the audience of a token of a Stage. Such a token has no subject, so it cannot
// authenticate a caller.
const stageAudience = "stage"

// Stage is a table that a caller is about to create. The store has no record of it yet.
type Stage struct {
	Caller   string // the caller's whole name
	Table    moorage.Identifier
	Location string // the location that the server has chosen
}

// stageClaims are the claims of the token of a Stage.
type stageClaims struct {
	Issuer    string            `json:"iss"`
	Audience  string            `json:"aud"`
	Caller    string            `json:"caller"`
	Warehouse string            `json:"warehouse"`
	Namespace moorage.Namespace `json:"namespace"`
	Name      string            `json:"name"`
	Location  string            `json:"location"`
	Issued    int64             `json:"iat"`
	Ends      int64             `json:"exp"`
}

func (c stageClaims) stage() Stage {
	table := moorage.Identifier{Warehouse: c.Warehouse, Namespace: c.Namespace, Name: c.Name}
	return Stage{c.Caller, table, c.Location}
}

// Stages signs and reads tokens for tables that are about to be created. With such a token, a
// client proves which location the server has chosen for its table. It is safe for concurrent use.
type Stages struct {
	mint *mint
	now  func() time.Time
}

// StagesConfig configures Stages.
type StagesConfig struct {
	// Keys gives access to the public keys of all nodes. Without Keys, only this process can read
	// its tokens.
	Keys PublicKeys
	// Now returns the time. Default time.Now.
	Now func() time.Time
	// Random is the source of keys. Default crypto/rand.
	Random io.Reader
}

// NewStages returns Stages. It draws a signing key when it signs the first token.
func NewStages(config StagesConfig) *Stages {
	if config.Keys == nil {
		config.Keys = noKeys{}
	}
	if config.Now == nil {
		config.Now = time.Now
	}
	random := cmp.Or[io.Reader](config.Random, cryptorand.Reader)
	made := newMint(Config{Now: config.Now, Random: random, TokenLifetime: stageLife}, config.Keys)
	return &Stages{made, config.Now}
}

// noKeys is the PublicKeys of a process that publishes no keys.
type noKeys struct{}

func (noKeys) Store(context.Context) (string, error) { return "", nil }

func (noKeys) PublicKey(context.Context, string) (PublicKey, bool, error) {
	return PublicKey{}, false, nil
}

func (noKeys) Publish(context.Context, string, PublicKey) error { return nil }

// Token returns a token for stage that needs no escaping in a URL. It is valid for a day.
//
// Errors: KindUnavailable if the store does not answer.
func (s *Stages) Token(ctx context.Context, stage Stage) (string, error) {
	const op = "identity.Token"
	store, err := s.mint.records.Store(ctx)
	if err != nil {
		return "", moorage.E(op, "", moorage.KindUnavailable, err)
	}
	now := s.now()
	text, err := s.mint.sign(ctx, stageClaims{
		Issuer: ownIssuer + store, Audience: stageAudience, Caller: stage.Caller,
		Warehouse: stage.Table.Warehouse, Namespace: stage.Table.Namespace, Name: stage.Table.Name,
		Location: stage.Location, Issued: now.Unix(), Ends: now.Add(stageLife).Unix(),
	})
	return text, moorage.E(op, "", moorage.KindInternal, err)
}

// Location returns the location in a token that was issued to caller for table.
//
// Errors: KindForbidden if text is not such a token, or if it has expired. KindUnavailable if the
// token cannot be verified now.
func (s *Stages) Location(ctx context.Context, text, caller string, table moorage.Identifier) (string, error) {
	stage, err := s.read(ctx, text, caller)
	if err == nil && (stage.Caller != caller || !stage.Table.Equal(table)) {
		err = refuse(reasonAudience)
	}
	if refused, ok := errors.AsType[*refusal](err); ok {
		return "", &moorage.Error{
			Kind: moorage.KindForbidden, Err: refused,
			Message: "Not allowed: staged is not a token that you were given for this table, or has ended",
		}
	}
	return stage.Location, err
}

// read reads a token sent by caller. Lookups of the token's key count against the limit of caller.
func (s *Stages) read(ctx context.Context, text, caller string) (Stage, error) {
	t, err := parseToken(text)
	if err != nil {
		return Stage{}, err
	}
	body, err := s.mint.verify(ctx, t, caller)
	if err != nil {
		return Stage{}, err
	}
	store, err := s.mint.records.Store(ctx)
	if err != nil {
		return Stage{}, unavailable("look up the store", err)
	}
	var c stageClaims
	if audience, err := t.claims.texts("aud"); err != nil || !slices.Equal(audience, []string{stageAudience}) {
		return Stage{}, refuse(reasonAudience)
	}
	if json.Unmarshal(body, &c) != nil || c.Location == "" {
		return Stage{}, refuse(reasonClaims)
	}
	if c.Issuer != ownIssuer+store {
		return Stage{}, refuse(reasonStore)
	}
	_, err = t.claims.checkTimes(s.now(), stageLife, 0)
	return c.stage(), err
}
