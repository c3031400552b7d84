package rest

import (
	"encoding/json"
	"errors"
	"net/http"
	"strconv"

	"moorage"
	"moorage/identity"
	"moorage/internal/web"
)

// Tokens issues tokens. *identity.Authenticator implements it.
type Tokens interface {
	Token(r *http.Request, body []byte) (identity.TokenAnswer, error)
}

// tokenBodyBytesMax is the maximum length of the form in a request for a token. The form may
// contain two tokens.
const tokenBodyBytesMax = 64 << 10

// tokenRetryAfter is the header Retry-After, in seconds, if the token endpoint cannot answer now.
const tokenRetryAfter = "1"

// tokenError is the body of an error response of the token endpoint. Source: RFC 6749, 5.2.
type tokenError struct {
	Code        string `json:"error"`
	Description string `json:"error_description"`
}

// noTokens is the Tokens of a server that issues no tokens.
type noTokens struct{}

// Token implements Tokens.
func (noTokens) Token(*http.Request, []byte) (identity.TokenAnswer, error) {
	return identity.TokenAnswer{}, &identity.OAuthError{
		Status: http.StatusBadRequest, Code: "unsupported_grant_type",
		Description: "This server issues no tokens: start it with --keys",
	}
}

// getToken issues a token. Its responses follow OAuth, unlike the responses of other operations.
func (s *server) getToken(w http.ResponseWriter, r *http.Request) error {
	r.Body = http.MaxBytesReader(w, r.Body, tokenBodyBytesMax)
	body, err := s.ReadBody(w, r)
	if err != nil {
		return answerTokenError(w, err)
	}
	answer, err := s.config.Tokens.Token(r, body)
	if err != nil {
		return answerTokenError(w, err)
	}
	text, err := json.Marshal(answer)
	if err != nil {
		return moorage.E("rest.getToken", "", moorage.KindInternal, err)
	}
	return writeToken(w, http.StatusOK, text)
}

// answerTokenError answers with an error in the form of the token endpoint. If the error is the
// server's own fault, answerTokenError returns it instead.
func answerTokenError(w http.ResponseWriter, err error) error {
	refused, ok := errors.AsType[*identity.OAuthError](err)
	switch kind := moorage.KindOf(err); {
	case ok:
	case kind == moorage.KindUnavailable, kind == moorage.KindTooManyRequests:
		refused = &identity.OAuthError{
			Status: web.FailureOf(kind).Status, Code: "temporarily_unavailable", Description: moorage.MessageOf(err),
		}
	case kind == moorage.KindInternal:
		return err
	default:
		refused = &identity.OAuthError{
			Status: http.StatusBadRequest, Code: "invalid_request", Description: moorage.MessageOf(err),
		}
	}
	text, err := json.Marshal(tokenError{refused.Code, refused.Description})
	if err != nil {
		return moorage.E("rest.answerTokenError", "", moorage.KindInternal, err)
	}
	switch refused.Status {
	case http.StatusUnauthorized:
		w.Header().Set("WWW-Authenticate", `Basic realm="moorage"`)
	case http.StatusTooManyRequests, http.StatusServiceUnavailable:
		w.Header().Set("Retry-After", tokenRetryAfter)
	}
	return writeToken(w, refused.Status, text)
}

// writeToken writes a response of the token endpoint, which must not be cached.
func writeToken(w http.ResponseWriter, status int, text []byte) error {
	header := w.Header()
	header["Content-Type"] = web.HeaderJSON
	header.Set("Cache-Control", "no-store")
	header.Set("Content-Length", strconv.Itoa(len(text)))
	w.WriteHeader(status)
	_, _ = w.Write(text) // if this fails, the client has disconnected
	return nil
}
