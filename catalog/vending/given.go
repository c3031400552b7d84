package vending

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"net/url"
	"slices"
	"time"

	"moorage"
	"moorage/catalog/directory"
	"moorage/catalog/gate"
)

// Given describes a credential or signature that an engine has received for a table's files. It
// contains no secret.
type Given struct {
	Caller moorage.Caller
	Verb   gate.Verb
	Table  moorage.Identifier
	// Through lists the views through which the caller reached the table. It is nil if there were
	// none or they did not count.
	Through    []moorage.Identifier
	Delegation Delegation
	Locations  []string // the locations that the credential reaches
	Write      bool
	// Credential is the id of a vended credential. For a credential without an id, it is a part of
	// the credential's hash.
	Credential string
	Ends       time.Time
	// Method and Target describe a signed request. Target is the SHA-256 of the request's path.
	Method, Target string
}

// accessKeyID is the name of the member that identifies a credential. The logs of the storage
// contain the same id.
const accessKeyID = "s3.access-key-id"

// idOf returns an ID of a credential for logs.
func idOf(credential map[string]string) string {
	if id := credential[accessKeyID]; id != "" {
		return id
	}
	sum := sha256.New()
	for _, name := range slices.Sorted(maps.Keys(credential)) {
		sum.Write([]byte(name + "\x00" + credential[name] + "\x00"))
	}
	return hex.EncodeToString(sum.Sum(nil)[:8])
}

// noteVended reports a vended credential.
func (v *Vending) noteVended(ctx context.Context, by directory.Asker, r *Reach, made vended, write bool) {
	v.given(ctx, Given{
		Caller: by.Caller, Verb: by.Verb, Table: r.ident, Through: by.Through.Names(), Delegation: VendedCredentials,
		Locations: r.locations, Write: write,
		Credential: idOf(made.credential.Config), Ends: made.credential.Expires,
	})
}

// noteSigned reports a signed request.
func (v *Vending) noteSigned(ctx context.Context, by directory.Asker, r *Reach, request SignRequest) {
	path := request.URI
	if parsed, err := url.Parse(request.URI); err == nil {
		path = parsed.Path
	}
	sum := sha256.Sum256([]byte(path))
	v.given(ctx, Given{
		Caller: by.Caller, Verb: by.Verb, Table: r.ident, Through: by.Through.Names(), Delegation: RemoteSigning,
		Write: request.Write, Method: request.Method, Target: hex.EncodeToString(sum[:]),
	})
}
