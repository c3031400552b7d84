package moorage

import (
	"errors"
	"fmt"
	"strings"
	"unicode"
)

// Kind is the kind of a failure. The Kind alone determines the HTTP response (package rest,
// errors.go), and whether the request may be retried. The text of an error determines neither.
type Kind uint8

// The kinds of failure. Each comment has the name of the exception in Iceberg clients.
const (
	KindInternal           Kind = iota // a fault of the server, of unknown nature
	KindBadRequest                     // BadRequestException: the request cannot be read
	KindIllegalArgument                // IllegalArgumentException: the request can be read, but can never be accepted
	KindValidation                     // ValidationException: the resulting table would not be valid
	KindNotAuthorized                  // NotAuthorizedException
	KindForbidden                      // ForbiddenException
	KindNoSuchWarehouse                // NoSuchWarehouseException
	KindNoSuchNamespace                // NoSuchNamespaceException
	KindNoSuchTable                    // NoSuchTableException
	KindNoSuchView                     // NoSuchViewException
	KindNotFound                       // NotFoundException: a required file is missing
	KindUnsupported                    // UnsupportedOperationException
	KindAlreadyExists                  // AlreadyExistsException
	KindNamespaceNotEmpty              // NamespaceNotEmptyException
	KindCommitFailed                   // CommitFailedException: certainly not applied; refresh and retry
	KindUnprocessable                  // UnprocessableEntityException
	KindTooLarge                       // the request exceeds a bound of the server
	KindTooManyRequests                // TooManyRequestsException: nothing was applied; a later retry may succeed
	KindUnavailable                    // ServiceUnavailableException: nothing was or will be applied
	KindCommitUnknown                  // CommitStateUnknownException: the commit may have been applied
	KindPreconditionFailed             // PreconditionFailedException: If-Match has another version
	KindGone                           // ChangesGoneException: the changes after a position are no longer known
	KindNotShown                       // RowsNotShownException: the server cannot show the rows of a table as they are
)

var kindNames = [...]string{
	KindInternal: "internal", KindBadRequest: "bad request", KindIllegalArgument: "illegal argument",
	KindValidation: "validation", KindNotAuthorized: "not authorized", KindForbidden: "forbidden",
	KindNoSuchWarehouse: "no such warehouse", KindNoSuchNamespace: "no such namespace",
	KindNoSuchTable: "no such table", KindNoSuchView: "no such view", KindNotFound: "not found", KindGone: "gone",
	KindUnsupported: "unsupported", KindAlreadyExists: "already exists",
	KindNamespaceNotEmpty: "namespace not empty", KindCommitFailed: "commit failed",
	KindUnprocessable: "unprocessable", KindTooLarge: "too large",
	KindTooManyRequests: "too many requests", KindUnavailable: "unavailable",
	KindCommitUnknown: "commit state unknown", KindPreconditionFailed: "precondition failed",
	KindNotShown: "not shown",
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

// MarshalText returns the text of String. Records store this text, so the words for a kind never
// change.
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

// Final reports whether a failure of this kind is permanent. The server refuses such a request
// because of its content, however often a client sends it. Other failures are faults of the server,
// or may end when the caller gets access.
func (k Kind) Final() bool {
	switch k {
	case KindInternal, KindUnavailable, KindCommitUnknown, KindNotAuthorized, KindForbidden, KindTooManyRequests:
		return false
	}
	return int(k) < len(kindNames)
}

// Error is a failure with a kind. Errorf makes an Error whose text is for a client. E gives a kind
// to an error of a lower layer.
type Error struct {
	Op      string // the exported method that failed, "catalog.Commit"; may be empty
	Ident   string // the object on which Op failed, "ns.table"; may be empty
	Kind    Kind
	Message string // safe for clients; empty if the cause is not
	Err     error  // the cause, for logs; may be nil
	// Hidden is true if an object exists but must not be revealed to the caller. The response is
	// the same as for a missing object, whatever the value of Hidden.
	Hidden bool
}

// Errorf returns an error whose text a client may see. %w keeps a cause, and includes the cause's
// text in the message.
func Errorf(kind Kind, format string, args ...any) error {
	err := fmt.Errorf(format, args...)
	return &Error{Kind: kind, Message: err.Error(), Err: errors.Unwrap(err)}
}

// E adds the operation, its object and the kind to err. It returns nil if err is nil. Clients do
// not see the text of err unless err was made by Errorf.
func E(op, ident string, kind Kind, err error) error {
	if err == nil {
		return nil
	}
	return &Error{Op: op, Ident: ident, Kind: kind, Err: err}
}

// Annotate is E with the kind of err.
func Annotate(op, ident string, err error) error {
	return E(op, ident, KindOf(err), err)
}

// Error returns all fields, for logs.
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

// KindOf returns the kind of the outermost Error in err's chain. It returns KindInternal if the
// chain has no Error.
func KindOf(err error) Kind {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Kind
	}
	return KindInternal
}

// IsHidden reports whether err states that an object does not exist because its caller must not see
// it. The server does not store such an answer for repeated requests, because the caller may get
// access later.
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

// MessageOf returns the text that a client may see. It is the message of the outermost Error in the
// chain that has a message, or "" if no Error has a message.
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

// linesShown is the maximum number of lines that OneLine keeps. If a failure is caused by many
// files, their faults are mostly similar.
const linesShown = 3

// OneLine returns the text of a failure as one line, for a log, a record or a terminal. Some
// failures have a line for each faulty file; OneLine keeps the first few.
func OneLine(text string) string {
	lines := strings.Split(text, "\n")
	if more := len(lines) - linesShown; more > 0 {
		lines = append(lines[:linesShown], fmt.Sprintf("and %d more", more))
	}
	return strings.Join(lines, "; ")
}

// ShownBytesMax is the maximum number of bytes of an invalid value that an error repeats.
const ShownBytesMax = 100

// Cut returns text, truncated to at most bytesMax bytes, as valid UTF-8.
func Cut(text string, bytesMax int) string {
	return strings.ToValidUTF8(text[:min(len(text), bytesMax)], "")
}

// ShellWord returns text as one word of a command line, for remedies that users copy into a shell.
func ShellWord(text string) string {
	isPlain := func(r rune) bool {
		return unicode.IsLetter(r) || unicode.IsDigit(r) || strings.ContainsRune("._-/:@%+=,", r)
	}
	if text != "" && !strings.ContainsFunc(text, func(r rune) bool { return !isPlain(r) }) {
		return text
	}
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}

// DefaultWarehouse is the warehouse of requests and commands that name none.
const DefaultWarehouse = "default"

// CommandName returns the name of an object in the form used by commands for operators: its levels,
// beginning with the warehouse, joined by dots. Levels with a dot, a blank or a quote are quoted.
func CommandName(levels ...string) string { return quotedLevels(levels, ". \"") }

// PersonName returns the name of an object in the form used by commands for people: its levels
// joined by dots. Unless the warehouse is DefaultWarehouse, the warehouse and a slash come first.
// Levels with a dot, a slash, a blank or a quote are quoted.
func PersonName(warehouse string, levels ...string) string {
	name := PersonLevels(levels...)
	if warehouse != DefaultWarehouse {
		name = PersonLevels(warehouse) + "/" + name
	}
	return name
}

// PersonLevels is like PersonName, without a warehouse.
func PersonLevels(levels ...string) string { return quotedLevels(levels, "./\" \t\n") }

// quotedLevels returns levels joined by dots. A level that is empty or contains one of the special
// characters is put in double quotes, with its own quotes doubled.
func quotedLevels(levels []string, special string) string {
	names := make([]string, len(levels))
	for i, level := range levels {
		names[i] = level
		if level == "" || strings.ContainsAny(level, special) {
			names[i] = `"` + strings.ReplaceAll(level, `"`, `""`) + `"`
		}
	}
	return strings.Join(names, ".")
}

// Counted returns a number with its noun: "1 table", "2 tables".
func Counted(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// SizeOf returns a number of bytes for human readers: 512 bytes, 1.4 GB.
func SizeOf(bytes uint64) string {
	if bytes < 1000 {
		return fmt.Sprintf("%d bytes", bytes)
	}
	size, unit := float64(bytes)/1000, 0
	units := []string{"kB", "MB", "GB", "TB", "PB", "EB"}
	for ; size >= 999.95; unit++ {
		size /= 1000
	}
	return fmt.Sprintf("%.1f %s", size, units[unit])
}
