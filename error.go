package moorage

import (
	"errors"
	"fmt"
	"strings"
)

// Kind says what sort of failure an error is. It alone decides which answer goes out on the wire
// (package rest, errors.go) and whether the request may be retried. The text of an error never
// does.
type Kind uint8

// The kinds of failure. The comment names the exception that Iceberg clients know.
const (
	KindInternal          Kind = iota // a fault of the server; nothing is known about it
	KindBadRequest                    // BadRequestException: the request cannot be read
	KindIllegalArgument               // IllegalArgumentException: readable, but never acceptable
	KindValidation                    // ValidationException: the resulting table would not be valid
	KindNotAuthorized                 // NotAuthorizedException
	KindForbidden                     // ForbiddenException
	KindNoSuchWarehouse               // NoSuchWarehouseException
	KindNoSuchNamespace               // NoSuchNamespaceException
	KindNoSuchTable                   // NoSuchTableException
	KindNoSuchView                    // NoSuchViewException
	KindNotFound                      // NotFoundException: a file that should be there is missing
	KindUnsupported                   // UnsupportedOperationException
	KindAlreadyExists                 // AlreadyExistsException
	KindNamespaceNotEmpty             // NamespaceNotEmptyException
	KindCommitFailed                  // CommitFailedException: certainly not applied; refresh and retry
	KindUnprocessable                 // UnprocessableEntityException
	KindTooLarge                      // the request exceeds a bound of the server
	KindTooManyRequests               // TooManyRequestsException: nothing was applied; later there will be room
	KindUnavailable                   // ServiceUnavailableException: nothing was and nothing will be applied
	KindCommitUnknown                 // CommitStateUnknownException: it may have been applied
)

var kindNames = [...]string{
	KindInternal: "internal", KindBadRequest: "bad request", KindIllegalArgument: "illegal argument",
	KindValidation: "validation", KindNotAuthorized: "not authorized", KindForbidden: "forbidden",
	KindNoSuchWarehouse: "no such warehouse", KindNoSuchNamespace: "no such namespace",
	KindNoSuchTable: "no such table", KindNoSuchView: "no such view", KindNotFound: "not found",
	KindUnsupported: "unsupported", KindAlreadyExists: "already exists",
	KindNamespaceNotEmpty: "namespace not empty", KindCommitFailed: "commit failed",
	KindUnprocessable: "unprocessable", KindTooLarge: "too large",
	KindTooManyRequests: "too many requests", KindUnavailable: "unavailable",
	KindCommitUnknown: "commit state unknown",
}

// Kinds returns every kind, in order.
func Kinds() []Kind {
	kinds := make([]Kind, len(kindNames))
	for i := range kinds {
		kinds[i] = Kind(i)
	}
	return kinds
}

// String returns the kind in words, for logs and records.
func (k Kind) String() string {
	if int(k) < len(kindNames) {
		return kindNames[k]
	}
	return fmt.Sprintf("kind %d", uint8(k))
}

// MarshalText returns the text of String, which records hold: the words for a kind never change.
func (k Kind) MarshalText() ([]byte, error) { return []byte(k.String()), nil }

// UnmarshalText reads the text of String.
func (k *Kind) UnmarshalText(text []byte) error {
	for i, name := range kindNames {
		if name == string(text) {
			*k = Kind(i)
			return nil
		}
	}
	return fmt.Errorf("unknown kind of failure: %q", text)
}

// Final reports whether a failure of this kind is the last word on a request. Such a request is
// refused for what it asks for, however often it is sent. Other failures are the server's own, or
// concern a caller who may yet be let in.
func (k Kind) Final() bool {
	switch k {
	case KindInternal, KindUnavailable, KindCommitUnknown, KindNotAuthorized, KindForbidden, KindTooManyRequests:
		return false
	}
	return int(k) < len(kindNames)
}

// Error is a failure with a kind. Make one with Errorf where the text is written
// for a client, or with E where an error of a lower layer gets its meaning.
type Error struct {
	Op      string // the exported method that failed, "catalog.Commit"; may be empty
	Ident   string // what it worked on, "ns.table"; may be empty
	Kind    Kind
	Message string // safe to show to a client; empty if the cause is not
	Err     error  // the cause, for logs; may be nil
	// Hidden says that something is there which the caller must not see: he is answered as if it
	// did not exist. It decides nothing on the wire.
	Hidden bool
}

// Errorf returns an error whose text a client may see. %w keeps a cause, and
// shows its text.
func Errorf(kind Kind, format string, args ...any) error {
	err := fmt.Errorf(format, args...)
	return &Error{Kind: kind, Message: err.Error(), Err: errors.Unwrap(err)}
}

// E says in which operation and on what err happened, and of what kind it is. It returns nil if err
// is nil. Clients do not see the text of err unless Errorf made err.
func E(op, ident string, kind Kind, err error) error {
	if err == nil {
		return nil
	}
	return &Error{Op: op, Ident: ident, Kind: kind, Err: err}
}

// Annotate is E with the kind that err has already.
func Annotate(op, ident string, err error) error {
	return E(op, ident, KindOf(err), err)
}

// Error returns everything that is known, for logs.
func (e *Error) Error() string {
	var parts []string
	for _, part := range []string{e.Op, e.Ident} {
		if part != "" {
			parts = append(parts, part)
		}
	}
	switch {
	case e.Message != "":
		parts = append(parts, e.Message)
	case e.Err != nil:
		parts = append(parts, e.Err.Error())
	default:
		parts = append(parts, e.Kind.String())
	}
	return strings.Join(parts, ": ")
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// KindOf returns the kind of the outermost Error in err's chain. An error without one is
// KindInternal.
func KindOf(err error) Kind {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Kind
	}
	return KindInternal
}

// IsHidden reports whether err says that something does not exist because its caller must not see
// it. Such an answer may be another one tomorrow, so it is not kept.
func IsHidden(err error) bool {
	var e *Error
	for errors.As(err, &e) {
		if e.Hidden {
			return true
		}
		err = e.Err
	}
	return false
}

// MessageOf returns the text that a client may see: that of the outermost Error in the
// chain that carries one, and "" if none does.
func MessageOf(err error) string {
	var e *Error
	for errors.As(err, &e) {
		if e.Message != "" {
			return e.Message
		}
		err = e.Err
	}
	return ""
}

// linesShown is how many faults of a failure OneLine returns. The faults of many files are mostly
// alike.
const linesShown = 3

// OneLine returns the text of a failure as one line, for a log, a record or a terminal. Some
// failures have a line for each file that made them; OneLine keeps the first few.
func OneLine(text string) string {
	lines := strings.Split(text, "\n")
	if more := len(lines) - linesShown; more > 0 {
		lines = append(lines[:linesShown], fmt.Sprintf("and %d more", more))
	}
	return strings.Join(lines, "; ")
}

// Cut returns text, or as much of it as bytesMax bytes hold, as UTF-8.
func Cut(text string, bytesMax int) string {
	return strings.ToValidUTF8(text[:min(len(text), bytesMax)], "")
}
