package storage

import (
	"context"
	"errors"
	"time"
)

// Vender is implemented by stores that can issue credentials for engines.
type Vender interface {
	// Vend issues credentials that, until they expire, give access to the objects at and below the
	// locations of scope, and to nothing else. ErrUnscopable means that the storage has no policy
	// that expresses exactly this scope, so Vend issues no credentials. ErrOutside means that a
	// location is outside the store's roots. ErrUnavailable means that the storage did not answer,
	// or cannot issue credentials at the moment. Any other error means that the storage refuses to
	// issue credentials for this store.
	Vend(ctx context.Context, scope Scope) (Credential, error)
	// ProbeVending issues credentials for a test folder below each root. It checks that they reach
	// that folder, and that the storage refuses them for a sibling with a similar name.
	// ErrUnenforced means that the storage does not refuse them there, so its credentials must not
	// be issued.
	ProbeVending(ctx context.Context) error
}

// Limited is implemented by Venders that know the lifetime of their credentials.
type Limited interface {
	// CredentialLife returns the longest lifetime of a credential.
	CredentialLife() time.Duration
}

// Scope is the set of objects and actions that a credential must allow.
type Scope struct {
	// Locations are the locations of one table, its present location first. If they do not fit into
	// a policy, a store may leave out the last ones, but never the first.
	Locations []string
	// Write is true if the credential must also allow creating and deleting objects.
	Write bool
	// Session identifies the caller in the logs of the storage. The store truncates and escapes it
	// as the storage requires.
	Session string
	// Duration is the requested lifetime of the credential. The storage may make it shorter, or
	// longer if it supports only one lifetime. If it is zero, the options of the store decide.
	Duration time.Duration
}

// Credential gives an engine access to the objects of a Scope. It is a secret.
type Credential struct {
	// Config holds the parts of the credential, under the names that Iceberg's clients use. It does
	// not repeat settings in ClientConfig.
	Config map[string]string
	// Expires is when the credential expires, by the storage's clock.
	Expires time.Time
	// RefreshedAt is the name of the clients' setting for the address at which they renew the
	// credential. It is empty if they have no such setting.
	RefreshedAt string
}

// Signer is implemented by stores that can sign single requests of engines, for storages that
// cannot issue credentials.
type Signer interface {
	// Sign signs a request with the key of the store, if the request only reads, writes, lists or
	// deletes objects within its Locations. Sign does not send the request. ErrMalformedRequest
	// means that it is not a request to this storage. ErrNotSigned means that this kind of request
	// is not signed. ErrNeedsWrite means that Sign would sign the request for a caller that may
	// write. ErrUnavailable means that Sign first had to find out which parts of a request the
	// storage checks, and the storage did not answer.
	Sign(ctx context.Context, request SignRequest) (Signature, error)
	// ProbeSigning replays signed requests with one part changed. If the storage accepts a changed
	// request, Sign no longer signs that kind of request; Features lists such kinds. ErrUnenforced
	// means that reads or writes are among them, so the storage is not suitable for signatures.
	ProbeSigning(ctx context.Context) error
}

// SignRequest is a request that an engine is about to send to the storage.
type SignRequest struct {
	Method  string
	URI     string
	Region  string
	Headers map[string][]string
	// Body is the body of a request that names objects in its body. It is nil if the engine has not
	// sent the body to the signer.
	Body []byte
	// Locations are the locations of the table. Every object in the request must be within one of
	// them.
	Locations []string
	// Write is true if the caller may create and delete objects.
	Write bool
}

// Signature holds the headers that an engine adds to its request.
type Signature struct {
	// Headers holds only headers that the signer adds or changes.
	Headers map[string][]string
}

// Errors of a Vender and a Signer.
var (
	// ErrUnscopable: no policy of the storage allows exactly the requested locations.
	ErrUnscopable = errors.New("storage: no policy can express exactly this")
	// ErrUnenforced: the storage accepts what it must refuse.
	ErrUnenforced = errors.New("storage: the server does not enforce the limits of credentials")
	// ErrMalformedRequest: the request to be signed is not one.
	ErrMalformedRequest = errors.New("storage: not a request that can be signed")
	// ErrNotSigned: the request does something that is not signed.
	ErrNotSigned = errors.New("storage: the request is not signed")
	// ErrNeedsWrite: the request changes objects, and the caller may only read.
	ErrNeedsWrite = errors.New("storage: the request requires write access")
)
