package catalog

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"net/url"
	"slices"
	"time"

	"moorage"
	"moorage/catalog/verb"
)

// Given is what an engine was given to reach the files of a table with. It holds no secret.
type Given struct {
	Caller moorage.Caller
	Verb   verb.Verb
	Table  moorage.Identifier
	// Through are the views by which the caller came to the table, if they counted.
	Through    []moorage.Identifier
	Delegation Delegation
	Locations  []string // that it reaches
	Write      bool
	// Credential is the id of a vended credential. One without an id is called by a part of
	// its hash.
	Credential string
	Ends       time.Time
	// Method and Target are those of a signed request. Target is the SHA-256 of its path.
	Method, Target string
}

// accessKeyID is the name of the part of a credential that is its id, in the logs of the storage
// too.
const accessKeyID = "s3.access-key-id"

// idOf returns what a credential is called in logs.
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

// vendedOf returns what is noted of a credential that somebody was given.
func (r *reach) vendedOf(caller moorage.Caller, v verb.Verb, made vended, write bool) Given {
	return Given{
		Caller: caller, Verb: v, Table: r.ident, Through: r.through.Names(), Delegation: VendedCredentials,
		Locations: r.locations, Write: write,
		Credential: idOf(made.credential.Config), Ends: made.credential.Expires,
	}
}

// noteSigned notes that a request was signed.
func noteSigned(ctx context.Context, p *planner, caller moorage.Caller, r *reach, request SignRequest) {
	path := request.URI
	if parsed, err := url.Parse(request.URI); err == nil {
		path = parsed.Path
	}
	sum := sha256.Sum256([]byte(path))
	p.given(ctx, Given{
		Caller: caller, Verb: verb.Sign, Table: r.ident, Through: r.through.Names(), Delegation: RemoteSigning,
		Write:  request.Write,
		Method: request.Method, Target: hex.EncodeToString(sum[:]),
	})
}
