package storage

import (
	"context"
	"errors"
	"time"
)

// Vender is implemented by stores that can make credentials for engines.
type Vender interface {
	// Vend makes credentials that reach the objects at and below the locations of scope, and
	// nothing else, until they end. ErrUnscopable: the storage has no policy that says exactly
	// this, so there are none. ErrOutside: a location is outside the store's roots. ErrUnavailable:
	// the storage did not answer, or not now. Any other error: it makes no credentials for this
	// store.
	Vend(ctx context.Context, scope Scope) (Credential, error)
	// ProbeVending makes credentials for a folder of its own below each root. It checks that they
	// reach that folder, and that the storage refuses them for a sibling whose name begins alike.
	// ErrUnenforced: the storage does not refuse, so nobody may be given its credentials.
	ProbeVending(ctx context.Context) error
}

// Limited is implemented by Venders that know how long the credentials live that they make.
type Limited interface {
	// CredentialLife is the longest time that a credential lives.
	CredentialLife() time.Duration
}

// Scope says what a credential is to reach.
type Scope struct {
	// Locations are those of one table, the present one first. A store may leave out others than
	// the first, from the end on, where a policy has no room for them.
	Locations []string
	// Write allows to make and delete objects too.
	Write bool
	// Session names who asks, for the logs of the storage. It is cut and spelled as these need it.
	Session string
	// Duration is how long the credential is to live. The storage may make it shorter, and longer
	// if it knows one length only. Zero: what the options of the store say.
	Duration time.Duration
}

// Credential is what an engine needs to reach the objects of a Scope. It is a secret.
type Credential struct {
	// Config has the credential by the names that Iceberg's clients have for its parts. It has
	// nothing that ClientConfig says already.
	Config map[string]string
	// Expires is when it ends, by the storage's clock.
	Expires time.Time
	// RefreshedAt is the name that clients have for the address at which they renew it; empty if
	// they know none.
	RefreshedAt string
}

// Signer is implemented by stores that can sign single requests of engines, where the storage
// cannot make credentials.
type Signer interface {
	// Sign signs a request with the key of the store, if it does nothing but read, write, list or
	// delete objects within the request's locations. Nothing is sent. ErrMalformedRequest: it is
	// not a request to this storage that anybody could sign. ErrNotSigned: this one is not signed.
	// ErrNeedsWrite: it would be, for somebody who may write. ErrUnavailable: it was to be found
	// out first what the storage looks at, and the storage does not answer.
	Sign(ctx context.Context, request SignRequest) (Signature, error)
	// ProbeSigning replays signed requests with one part changed. Those that the storage lets
	// through are not signed from then on; Featured says which. ErrUnenforced: reads or writes are
	// among them, so the storage is not fit for signatures.
	ProbeSigning(ctx context.Context) error
}

// SignRequest is a request that an engine is about to send to the storage.
type SignRequest struct {
	Method  string
	URI     string
	Region  string
	Headers map[string][]string
	// Body is what a request that names objects in its body would send; nil if the engine did not
	// say.
	Body []byte
	// Locations are those of the table. Every object that the request names must be within one.
	Locations []string
	// Write is whether the caller may make and delete objects.
	Write bool
}

// Signature is what an engine adds to its request.
type Signature struct {
	// Headers are only those that the signer adds or changes.
	Headers map[string][]string
}

// Errors of a Vender and a Signer.
var (
	// ErrUnscopable: no policy of the storage allows exactly the locations that were asked for.
	ErrUnscopable = errors.New("storage: no policy can say exactly this")
	// ErrUnenforced: the storage lets through what it had to refuse.
	ErrUnenforced = errors.New("storage: the server does not enforce what credentials are narrowed to")
	// ErrMalformedRequest: the request that is to be signed is not one.
	ErrMalformedRequest = errors.New("storage: not a request that can be signed")
	// ErrNotSigned: the request does something that is not signed.
	ErrNotSigned = errors.New("storage: the request is not signed")
	// ErrNeedsWrite: the request changes objects, and the caller may read only.
	ErrNeedsWrite = errors.New("storage: the request needs the right to write")
)
