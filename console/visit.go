package console

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/google/uuid"

	"moorage"
	"moorage/internal/web"
	"moorage/management/client"
)

// visit is one request of a browser.
type visit struct {
	api     needs
	now     time.Time
	query   url.Values
	form    url.Values    // of a change
	uri     string        // base address of the server
	about   client.Object // of a change: the object of the page that prepared it
	theme   string        // empty: as the browser prefers
	here    string        // address of the page, for the way back
	recipes func(Reach) []Recipe
	// authenticates reports that callers of the API must authenticate.
	authenticates bool
	cookies       []*http.Cookie // to set with the answer
	token         string         // of the session; empty: there is none
	name          string         // of the visitor; empty without a session
	channel       channel
	// sessionKey returns the key of sessions.
	sessionKey func(ctx context.Context) ([]byte, error)
	providers  Providers
	secrets    *secretsShown
	key        string // Idempotency-Key of changes; empty: the client draws one
	// releases give back the room of large answers of the API, which the page may still use.
	releases []func()
}

// visitOf returns the visit of r.
func (c *console) visitOf(r *http.Request) *visit {
	v := &visit{
		now: c.config.Now(), query: unescaped(r.URL.Query()), uri: c.baseURI(r),
		here: r.URL.RequestURI(), recipes: c.config.Recipes, sessionKey: c.config.SessionKey,
		authenticates: c.config.Authenticates, providers: c.config.Providers, secrets: c.secrets,
	}
	v.api = client.Over(c.transport(r, v))
	if cookie, err := r.Cookie(themeCookie); err == nil && isTheme(cookie.Value) {
		v.theme = cookie.Value
	}
	return v
}

// baseURI returns the address that the browser of r used for the server.
func (c *console) baseURI(r *http.Request) string {
	if r.TLS != nil || c.config.IsEncrypted(r) {
		return "https://" + r.Host
	}
	return "http://" + r.Host
}

// clientName is the program that the log of changes has for changes by the console.
const clientName = "Moorage console"

// requestIDPrefix marks the ids of requests that the console makes. The rest is the id of the
// visitor's request.
const requestIDPrefix = "console:"

// transport returns the way to the API on behalf of the visitor that sent r.
func (c *console) transport(r *http.Request, v *visit) http.RoundTripper {
	api := web.InProcess{Handler: c.server, AnswerBytesMax: answerBytesMax}
	api.Keep = func(release func()) { v.releases = append(v.releases, release) }
	api.Prepare = func(asked *http.Request) {
		asked.RemoteAddr, asked.Host, asked.TLS = r.RemoteAddr, r.Host, r.TLS
		maps.Copy(asked.Header, web.ProxyHeaders(r.Header))
		if v.token != "" {
			asked.Header.Set("Authorization", "Bearer "+v.token)
		}
		if v.key != "" && asked.Header.Get("Idempotency-Key") != "" {
			asked.Header.Set("Idempotency-Key", v.key)
		}
		asked.Header.Set("X-Client-Version", clientName)
		asked.Header.Set("User-Agent", r.UserAgent())
		asked.Header.Set("X-Request-Id", requestIDPrefix+moorage.RequestID(r.Context()))
	}
	return api
}

// answerBytesMax bounds an answer of the API, as the client does.
const answerBytesMax = 64 << 20

// end ends a visit that was answered.
func (v *visit) end() {
	for _, release := range v.releases {
		release()
	}
	v.releases = nil
}

// object returns the object that the address of the page names. For a change it is the object of
// the page that prepared it.
func (v *visit) object() client.Object {
	if v.query.Has(paramWarehouse) {
		return objectIn(v.query)
	}
	return v.about
}

// get asks for an operation of the management API.
func (v *visit) get(ctx context.Context, path string, query url.Values, answer any) error {
	return v.api.Do(ctx, client.Request{Method: http.MethodGet, Path: path, Query: query}, answer)
}

// statusOf returns the HTTP status of an error of the API; 0 for other errors.
func statusOf(err error) int {
	if refused, ok := errors.AsType[*client.Error](err); ok {
		return refused.Code
	}
	return 0
}

// optional returns nil for an error that only means that the visitor gets less: the operation is
// not there, or not for this visitor.
func optional(err error) error {
	switch statusOf(err) {
	case http.StatusNotFound, http.StatusForbidden, http.StatusNotAcceptable, http.StatusMethodNotAllowed:
		return nil
	}
	return err
}

// text returns a parameter of the page, without spaces around it.
func (v *visit) text(name string) string { return strings.TrimSpace(v.query.Get(name)) }

// setKey makes key the Idempotency-Key of the changes of this visit. The client draws a key of its
// own otherwise.
func (v *visit) setKey(key string) {
	if _, err := uuid.Parse(key); err == nil {
		v.key = key
	}
}
