package web

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

// Failure is the client's view of a failure.
type Failure struct {
	Status int
	// Type is the simple name of the Java exception into which clients turn the failure, if there
	// is such an exception.
	Type string
	// Fallback is the message if the error has no message that a client may see.
	Fallback string
}

// failures maps kinds to answers. There is no other such table. Source: REST specification,
// responses; and the reference server's answer to each exception.
var failures = map[moorage.Kind]Failure{
	moorage.KindInternal:        {http.StatusInternalServerError, "InternalServerError", "Internal server error"},
	moorage.KindBadRequest:      {http.StatusBadRequest, "BadRequestException", "Malformed request"},
	moorage.KindIllegalArgument: {http.StatusBadRequest, "IllegalArgumentException", "Invalid argument"},
	moorage.KindValidation:      {http.StatusBadRequest, "ValidationException", "Invalid metadata"},
	moorage.KindNotAuthorized:   {http.StatusUnauthorized, "NotAuthorizedException", "Not authorized"},
	moorage.KindForbidden:       {http.StatusForbidden, "ForbiddenException", "Forbidden"},
	moorage.KindNoSuchWarehouse: {http.StatusNotFound, "NoSuchWarehouseException", "Warehouse does not exist"},
	moorage.KindNoSuchNamespace: {http.StatusNotFound, "NoSuchNamespaceException", "Namespace does not exist"},
	moorage.KindNoSuchTable:     {http.StatusNotFound, "NoSuchTableException", "Table does not exist"},
	moorage.KindNoSuchView:      {http.StatusNotFound, "NoSuchViewException", "View does not exist"},
	moorage.KindNotFound:        {http.StatusNotFound, "NotFoundException", "File does not exist"},
	moorage.KindGone:            {http.StatusGone, "ChangesGoneException", "The changes are no longer known"},
	moorage.KindNotShown:        {http.StatusConflict, "RowsNotShownException", "The rows of the table are not shown"},
	moorage.KindUnsupported: {http.StatusNotAcceptable, "UnsupportedOperationException",
		"Operation is not supported"},
	moorage.KindAlreadyExists:     {http.StatusConflict, "AlreadyExistsException", "Already exists"},
	moorage.KindNamespaceNotEmpty: {http.StatusConflict, "NamespaceNotEmptyException", "Namespace is not empty"},
	moorage.KindCommitFailed:      {http.StatusConflict, "CommitFailedException", "Commit failed, refresh and retry"},
	moorage.KindUnprocessable: {http.StatusUnprocessableEntity, "UnprocessableEntityException",
		"Unprocessable request"},
	moorage.KindTooLarge: {http.StatusRequestEntityTooLarge, "RequestTooLargeException", "Request is too large"},
	moorage.KindTooManyRequests: {http.StatusTooManyRequests, "TooManyRequestsException",
		"Too many requests, nothing was changed"},
	moorage.KindUnavailable: {http.StatusServiceUnavailable, "ServiceUnavailableException",
		"Service is unavailable, nothing was changed"},
	moorage.KindCommitUnknown: {http.StatusInternalServerError, "CommitStateUnknownException",
		"The outcome of the request is unknown, it may have been applied"},
	moorage.KindPreconditionFailed: {http.StatusPreconditionFailed, "PreconditionFailedException",
		"The object has another version"},
}

// FailureOf returns the client's view of a kind. An unknown kind counts as a failure of the server.
func FailureOf(kind moorage.Kind) Failure {
	if f, ok := failures[kind]; ok {
		return f
	}
	return failures[moorage.KindInternal]
}

// Failures without a kind, because they exist only in HTTP.
var (
	failureNoRoute  = Failure{http.StatusNotFound, "NoSuchRouteException", "No such route"}
	failureNoMethod = Failure{http.StatusMethodNotAllowed, "MethodNotAllowedException", "Method is not allowed here"}
	failureNoHost   = Failure{http.StatusMisdirectedRequest, "MisdirectedRequestException", "No such host"}
)

// help has one sentence of advice for the client, by status.
var help = map[int]string{
	http.StatusBadRequest:            "Correct the request as the message says; openapi.yaml describes it.",
	http.StatusUnauthorized:          "Authenticate with an API key, a token, or a client certificate.",
	http.StatusForbidden:             "Use a caller, or an address, that the message allows.",
	http.StatusNotFound:              "List the existing objects; openapi.yaml has every path.",
	http.StatusMethodNotAllowed:      "Use a method that the header Allow names.",
	http.StatusMisdirectedRequest:    "Use localhost, or start the server with --host.",
	http.StatusNotAcceptable:         "This server cannot do that; the message says what does.",
	http.StatusConflict:              "Check the current state, and choose another name or repeat the request.",
	http.StatusGone:                  "List what you follow again, then go on from the position in the message.",
	http.StatusPreconditionFailed:    "Load the present version, and repeat the change with its ETag in If-Match.",
	http.StatusRequestEntityTooLarge: "Send less at once.",
	http.StatusUnprocessableEntity:   "Check the current state first; the same request fails again.",
	http.StatusTooManyRequests:       "Repeat the request after the seconds in Retry-After.",
	http.StatusServiceUnavailable:    "Repeat the request after the seconds in Retry-After.",
	http.StatusInternalServerError:   "Find request-id in the server's log, and check the state before repeating.",
}

// retryAfter is the header Retry-After of a 503 or 429, in seconds. After a 503 with this header,
// several clients repeat any request, even a commit. So an answer must not have the header if the
// server may have applied the request.
const retryAfter = "1"

// messageBytesMax is the maximum length of a message, which may quote the refused value.
const messageBytesMax = 2 << 10

// statusClientGone is the status that logs and metrics show for a request whose client closed the
// connection.
const statusClientGone = 499

// errorAnswer is the body of every answer that is not a success.
type errorAnswer struct {
	Error errorModel `json:"error"`
}

type errorModel struct {
	Message string `json:"message"`
	Type    string `json:"type"`
	Code    int    `json:"code"`
	// RequestID and the help are only in failures below the prefix of Explain.
	RequestID string `json:"request-id,omitempty"`
	Help      string `json:"help,omitempty"`
	// TraceID is only in failures of traced requests.
	TraceID string `json:"trace-id,omitempty"`
}

// fail writes the answer to a failure, and logs the failure if the server caused it. If an answer
// has already begun, fail closes the connection.
func (s *Server) fail(x *exchange, r *http.Request, err error) {
	if errors.Is(err, context.Canceled) && r.Context().Err() != nil {
		if !x.began() {
			x.status = statusClientGone
		}
		panic(http.ErrAbortHandler) // otherwise net/http would send 200
	}
	kind := moorage.KindOf(err)
	answer := FailureOf(kind)
	if answer.Status >= http.StatusInternalServerError {
		level := slog.LevelError
		if kind == moorage.KindUnavailable {
			level = slog.LevelWarn
		}
		s.config.Logger.LogAttrs(r.Context(), level, "request failed",
			x.ids(), slog.String("operation", x.operation.name),
			slog.String("kind", kind.String()), slog.String("error", moorage.Cut(err.Error(), messageBytesMax)))
	}
	if x.began() {
		panic(http.ErrAbortHandler) // an incomplete answer must not look complete
	}
	message := moorage.MessageOf(err)
	if message == "" || answer.Status == http.StatusInternalServerError && kind != moorage.KindCommitUnknown {
		message = answer.Fallback
	}
	if kind == moorage.KindUnavailable || kind == moorage.KindTooManyRequests {
		x.Header().Set("Retry-After", retryAfter)
	}
	if asked, ok := errors.AsType[challenger](err); ok && kind == moorage.KindNotAuthorized {
		x.Header().Set("WWW-Authenticate", asked.Challenge())
	}
	s.writeFailure(x, r, answer, message)
}

// challenger is an error that describes how a client can authenticate.
type challenger interface {
	error
	Challenge() string
}

func (s *Server) writeFailure(x *exchange, r *http.Request, answer Failure, message string) {
	message = shortened(message)
	x.refusal = message
	model := errorModel{Message: message, Type: answer.Type, Code: answer.Status, TraceID: x.traceID}
	if s.explained != "" && strings.HasPrefix(r.URL.Path, s.explained) {
		model.RequestID, model.Help = x.requestID, help[answer.Status]
	}
	body, err := json.Marshal(errorAnswer{model})
	if err != nil {
		panic(err) // strings and a number can always be encoded
	}
	header := x.Header()
	header.Set("Content-Type", "application/json")
	header.Set("Content-Length", strconv.Itoa(len(body)))
	x.WriteHeader(answer.Status)
	if r.Method != http.MethodHead {
		_, _ = x.Write(body) // if this fails, the client has disconnected
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

// noRoute answers a request whose path is not in the route table.
func (s *Server) noRoute(w http.ResponseWriter, r *http.Request) error {
	s.writeFailure(w.(*exchange), r, failureNoRoute, noRouteMessage(r))
	return nil
}

// noMethod answers a request whose path is in the route table only for other methods.
func (s *Server) noMethod(w http.ResponseWriter, r *http.Request) error {
	var allowed []string
	for _, method := range []string{http.MethodGet, http.MethodHead, http.MethodPost, http.MethodDelete} {
		if s.router.Find(chi.NewRouteContext(), method, EscapedPath(r.URL)) != "" {
			allowed = append(allowed, method)
		}
	}
	if allowed == nil {
		return s.noRoute(w, r) // the router calls noMethod for every unknown method
	}
	w.Header().Set("Allow", strings.Join(allowed, ", "))
	s.writeFailure(w.(*exchange), r, failureNoMethod, "Method is not allowed here: "+r.Method+" "+r.URL.EscapedPath())
	return nil
}
