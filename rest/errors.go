package rest

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/go-chi/chi/v5"

	"moorage"
)

// wire is how a failure looks to a client.
type wire struct {
	status int
	// kind is the error's type: the simple name of the Java exception that clients turn it into,
	// where there is one.
	kind string
	// fallback is the message if the error carries none that a client may see.
	fallback string
}

// wires is the one table from kinds to answers. Source: REST specification, responses; and
// what the reference server answers for each exception.
var wires = map[moorage.Kind]wire{
	moorage.KindInternal:          {http.StatusInternalServerError, "InternalServerError", "Internal server error"},
	moorage.KindBadRequest:        {http.StatusBadRequest, "BadRequestException", "Malformed request"},
	moorage.KindIllegalArgument:   {http.StatusBadRequest, "IllegalArgumentException", "Invalid argument"},
	moorage.KindValidation:        {http.StatusBadRequest, "ValidationException", "Invalid metadata"},
	moorage.KindNotAuthorized:     {http.StatusUnauthorized, "NotAuthorizedException", "Not authorized"},
	moorage.KindForbidden:         {http.StatusForbidden, "ForbiddenException", "Forbidden"},
	moorage.KindNoSuchWarehouse:   {http.StatusNotFound, "NoSuchWarehouseException", "Warehouse does not exist"},
	moorage.KindNoSuchNamespace:   {http.StatusNotFound, "NoSuchNamespaceException", "Namespace does not exist"},
	moorage.KindNoSuchTable:       {http.StatusNotFound, "NoSuchTableException", "Table does not exist"},
	moorage.KindNoSuchView:        {http.StatusNotFound, "NoSuchViewException", "View does not exist"},
	moorage.KindNotFound:          {http.StatusNotFound, "NotFoundException", "File does not exist"},
	moorage.KindUnsupported:       {http.StatusNotAcceptable, "UnsupportedOperationException", "Operation is not supported"},
	moorage.KindAlreadyExists:     {http.StatusConflict, "AlreadyExistsException", "Already exists"},
	moorage.KindNamespaceNotEmpty: {http.StatusConflict, "NamespaceNotEmptyException", "Namespace is not empty"},
	moorage.KindCommitFailed:      {http.StatusConflict, "CommitFailedException", "Commit failed, refresh and retry"},
	moorage.KindUnprocessable:     {http.StatusUnprocessableEntity, "UnprocessableEntityException", "Unprocessable request"},
	moorage.KindTooLarge:          {http.StatusRequestEntityTooLarge, "RequestTooLargeException", "Request is too large"},
	moorage.KindTooManyRequests:   {http.StatusTooManyRequests, "TooManyRequestsException", "Too many requests, nothing was changed"},
	moorage.KindUnavailable:       {http.StatusServiceUnavailable, "ServiceUnavailableException", "Service is unavailable, nothing was changed"},
	moorage.KindCommitUnknown:     {http.StatusInternalServerError, "CommitStateUnknownException", "The outcome of the request is unknown, it may have been applied"},
}

// Failures that have no kind because only HTTP has them.
var (
	wireNoRoute  = wire{http.StatusNotFound, "NoSuchRouteException", "No such route"}
	wireNoMethod = wire{http.StatusMethodNotAllowed, "MethodNotAllowedException", "Method is not allowed here"}
	wireNoHost   = wire{http.StatusMisdirectedRequest, "MisdirectedRequestException", "No such host"}
)

// retryAfter is what a 503 and a 429 advise, in seconds. Several clients repeat any request, also a
// commit, after a 503 that has it, so nothing that may have been applied may carry it.
const retryAfter = "1"

// messageBytesMax bounds a message, which may quote what it refuses.
const messageBytesMax = 2 << 10

// statusClientGone is what logs and metrics show for a request whose client hung up.
const statusClientGone = 499

// errorAnswer is the body of every answer that is not a success.
type errorAnswer struct {
	Error errorModel `json:"error"`
}

type errorModel struct {
	Message string `json:"message"`
	Type    string `json:"type"`
	Code    int    `json:"code"`
}

// fail writes the answer to a failure and logs it if it is the server's own. A failure that cannot be answered
// any more cuts the connection.
func (s *server) fail(x *exchange, r *http.Request, err error) {
	if errors.Is(err, context.Canceled) && r.Context().Err() != nil {
		if !x.began() {
			x.status = statusClientGone
		}
		panic(http.ErrAbortHandler) // without an answer net/http would send 200 to whoever still listens
	}
	kind := moorage.KindOf(err)
	answer, ok := wires[kind]
	if !ok {
		answer = wires[moorage.KindInternal]
	}
	if answer.status >= http.StatusInternalServerError {
		level := slog.LevelError
		if kind == moorage.KindUnavailable {
			level = slog.LevelWarn
		}
		s.config.Logger.LogAttrs(r.Context(), level, "request failed", slog.String("request_id", x.requestID),
			slog.String("operation", x.operation), slog.String("kind", kind.String()), slog.Any("error", err))
	}
	if x.began() {
		panic(http.ErrAbortHandler) // a torn answer must not look whole
	}
	message := moorage.MessageOf(err)
	if message == "" || answer.status == http.StatusInternalServerError && kind != moorage.KindCommitUnknown {
		message = answer.fallback
	}
	if kind == moorage.KindUnavailable || kind == moorage.KindTooManyRequests {
		x.Header().Set("Retry-After", retryAfter)
	}
	writeFailure(x, r, answer, message)
}

func writeFailure(w http.ResponseWriter, r *http.Request, answer wire, message string) {
	message = shortened(message)
	if x, ok := w.(*exchange); ok {
		x.refusal = message
	}
	body, err := json.Marshal(errorAnswer{errorModel{Message: message, Type: answer.kind, Code: answer.status}})
	if err != nil {
		panic(err) // strings and a number can always be encoded
	}
	header := w.Header()
	header.Set("Content-Type", "application/json")
	header.Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(answer.status)
	if r.Method != http.MethodHead {
		_, _ = w.Write(body) // the client is gone if this fails
	}
}

// shortened returns message, or its beginning if it is longer than messageBytesMax.
func shortened(message string) string {
	if len(message) <= messageBytesMax {
		return message
	}
	end := messageBytesMax
	for end > 0 && !utf8.RuneStart(message[end]) {
		end--
	}
	return message[:end] + "…"
}

// noRoute answers a path that is not in the route table.
func (s *server) noRoute(w http.ResponseWriter, r *http.Request) error {
	writeFailure(w, r, wireNoRoute, "No such route: "+r.Method+" "+r.URL.EscapedPath())
	return nil
}

// noMethod answers a path that is in the route table, for other methods.
func (s *server) noMethod(w http.ResponseWriter, r *http.Request) error {
	var allowed []string
	for _, method := range []string{http.MethodGet, http.MethodHead, http.MethodPost, http.MethodDelete} {
		if s.router.Find(chi.NewRouteContext(), method, escapedPath(r.URL)) != "" {
			allowed = append(allowed, method)
		}
	}
	if allowed == nil {
		return s.noRoute(w, r) // the router calls here for every method that it does not know
	}
	w.Header().Set("Allow", strings.Join(allowed, ", "))
	writeFailure(w, r, wireNoMethod, "Method is not allowed here: "+r.Method+" "+r.URL.EscapedPath())
	return nil
}
