package web

import (
	"net/http"
	"net/url"
	"strings"

	"github.com/go-chi/chi/v5"
	"github.com/google/uuid"

	"moorage"
)

// PathParam returns a name from the path, decoded once. The router uses the escaped path, so a
// slash inside a name arrives here as %2F. A plus sign means a space, because Java clients
// form-encode names. For a plus sign, clients send %2B.
func PathParam(r *http.Request, name string) (string, error) {
	escaped := chi.URLParam(r, name)
	decoded, err := url.QueryUnescape(escaped)
	if err != nil {
		return "", moorage.Errorf(moorage.KindBadRequest, "Malformed %s in the path: %q", name, escaped)
	}
	return decoded, nil
}

// Query is a decoded query string. If it is malformed, reading any parameter fails with
// KindBadRequest.
type Query struct {
	values url.Values
	err    error
}

// QueryOf decodes the query string of r.
func QueryOf(r *http.Request) (q Query) {
	if r.URL.RawQuery == "" {
		return q // most loads have no query; this saves a map
	}
	var err error
	if q.values, err = url.ParseQuery(r.URL.RawQuery); err != nil {
		q.err = moorage.Errorf(moorage.KindBadRequest, "Malformed query string: %q", r.URL.RawQuery)
	}
	return q
}

// Text returns the parameter called name, and whether it was given. If the parameter was given
// twice, its meaning is unclear, and the error is KindBadRequest.
func (q Query) Text(name string) (value string, given bool, err error) {
	values := q.values[name]
	switch {
	case q.err != nil || len(values) == 0:
		return "", false, q.err
	case len(values) == 1:
		return values[0], true, nil
	}
	return "", true, moorage.Errorf(moorage.KindBadRequest, "Parameter %s is given %d times", name, len(values))
}

// RawText returns the parameter called name from the query string of r without decoding it, and
// whether it was given. A client may repeat the parameter with the same value. If the query string
// is malformed, the error is KindBadRequest.
func RawText(r *http.Request, name string) (value string, given bool, err error) {
	if r.URL.RawQuery == "" {
		return "", false, nil
	}
	for part := range strings.SplitSeq(r.URL.RawQuery, "&") {
		key, text, _ := strings.Cut(part, "=")
		if decoded, err := url.QueryUnescape(key); err != nil || decoded != name {
			continue
		}
		if given && text != value {
			return "", true, moorage.Errorf(moorage.KindBadRequest, "Parameter %s is given with two values", name)
		}
		value, given = text, true
	}
	return value, given, QueryOf(r).err
}

// Boolean returns the parameter called name, or false if it is not given.
func (q Query) Boolean(name string) (bool, error) {
	value, given, err := q.Text(name)
	switch {
	case err != nil || !given:
		return false, err
	case strings.EqualFold(value, "true"):
		return true, nil
	case strings.EqualFold(value, "false"):
		return false, nil
	}
	return false, moorage.Errorf(moorage.KindBadRequest, "Invalid %s: %q, want true or false", name, value)
}

// uuidBytes is the length of a UUID in its usual form. Package uuid also reads other forms.
const uuidBytes = 36

// IdempotencyKey returns the idempotency key of a request in lower case, or "" if there is none.
// The key may be a UUID of any version. Source: REST specification, Idempotency-Key.
func IdempotencyKey(r *http.Request) (string, error) {
	given := r.Header["Idempotency-Key"]
	switch len(given) {
	case 0:
		return "", nil
	case 1:
	default:
		return "", moorage.Errorf(moorage.KindBadRequest, "There are %d Idempotency-Key headers", len(given))
	}
	id, err := uuid.Parse(given[0])
	if err != nil || len(given[0]) != uuidBytes {
		return "", moorage.Errorf(moorage.KindBadRequest, "Invalid Idempotency-Key: %q, want a UUID", given[0])
	}
	return id.String(), nil
}
