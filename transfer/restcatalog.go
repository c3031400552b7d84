package transfer

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"

	"moorage/management/client"
)

// Access is how a REST catalog is reached.
type Access struct {
	URI       string // such as https://catalog.example.com; a path in front of /v1 belongs to it
	Warehouse string // of GET /v1/config; empty for the catalog's default
	Prefix    string // instead of the prefix that the catalog configures
	Token     string // bearer token; empty for none
	// Credential is CLIENT:SECRET of OAuth2 client credentials, or only a secret; empty for none.
	Credential string
	OAuthURI   string // the token endpoint; empty for the catalog's own
	Scope      string // of the token; empty for "catalog"
	Header     http.Header
	HTTP       *http.Client
	Now        func() time.Time
	Patience   *Patience // with the catalog; nil for one without jitter
}

// REST is a catalog that speaks the Iceberg REST protocol. It is a Source, a Detacher if the
// catalog can unregister tables, and a Target. It is safe for concurrent use.
type REST struct {
	access    Access
	prefix    []string // segments of paths
	shown     string   // its URI in messages, without a password
	separator string   // between the levels of a namespace
	endpoints map[string]bool

	mu    sync.Mutex // guards the fields below; leaf
	token string
	until time.Time // when the token is drawn again; zero if it does not end
}

// The endpoints that a catalog may lack.
const (
	endpointListViews    = "GET /v1/{prefix}/namespaces/{namespace}/views"
	endpointUnregister   = "POST /v1/{prefix}/namespaces/{namespace}/tables/{table}/unregister"
	endpointRegisterView = "POST /v1/{prefix}/namespaces/{namespace}/register-view"
)

// OpenREST asks a catalog for its configuration. If the catalog does not answer, OpenREST fails at
// once.
func OpenREST(ctx context.Context, access Access) (*REST, error) {
	access.URI = strings.TrimSuffix(strings.TrimRight(access.URI, "/"), "/v1")
	if access.HTTP == nil {
		access.HTTP = http.DefaultClient
	}
	if access.Patience == nil {
		access.Patience = NewPatience(nil)
	}
	c := &REST{access: access, shown: redacted(access.URI), separator: "\x1f", token: access.Token}
	var config struct {
		Defaults, Overrides map[string]string
		Endpoints           []string
	}
	query := url.Values{}
	if access.Warehouse != "" {
		query.Set("warehouse", access.Warehouse)
	}
	err := c.ask(ctx, false, func() error { // an address that never answered is rather wrong than busy
		return c.send(ctx, http.MethodGet, "/v1/config", query, "", nil, &config)
	})
	if err != nil {
		return nil, err
	}
	settings := maps.Clone(config.Defaults)
	if settings == nil {
		settings = make(map[string]string)
	}
	maps.Copy(settings, config.Overrides)
	// Clients put the prefix into a path as it is, so some catalogs escape it: Nessie has
	// main%7Clake. The prefix of Unity Catalog has a slash. The prefix of S3 Tables has an escaped
	// slash.
	for segment := range strings.SplitSeq(cmp.Or(access.Prefix, settings["prefix"]), "/") {
		if plain, err := url.PathUnescape(segment); err == nil && access.Prefix == "" {
			segment = plain
		}
		if segment != "" {
			c.prefix = append(c.prefix, segment)
		}
	}
	if separator, err := url.PathUnescape(settings["namespace-separator"]); err == nil && separator != "" {
		c.separator = separator
	}
	if config.Endpoints != nil {
		c.endpoints = make(map[string]bool)
		for _, endpoint := range config.Endpoints {
			c.endpoints[endpoint] = true
		}
	}
	return c, nil
}

// redacted returns an address for a message. It hides a password.
func redacted(address string) string {
	if at, err := url.Parse(address); err == nil {
		return at.Redacted()
	}
	return "the catalog"
}

// causeOf returns the cause of an error of net/http, without the address of the request.
func causeOf(err error) error {
	if refused, ok := errors.AsType[*url.Error](err); ok {
		return refused.Err
	}
	return err
}

// Name implements Source and Target.
func (c *REST) Name() string {
	name := c.access.URI
	if at, err := url.Parse(name); err == nil {
		at.User = nil
		name = at.String()
	}
	if part := cmp.Or(strings.Join(c.prefix, "/"), c.access.Warehouse); part != "" {
		name += " " + part
	}
	return name
}

// path returns the path of an operation below the prefix.
func (c *REST) path(segments ...string) string {
	path := "/v1"
	for _, segment := range slices.Concat(c.prefix, segments) {
		path += "/" + escaped(segment)
	}
	return path
}

// escaped returns a segment of a path. Servers differ in how they read a plus, so there is none.
func escaped(segment string) string {
	return strings.ReplaceAll(url.QueryEscape(segment), "+", "%20")
}

func (c *REST) joined(levels []string) string { return strings.Join(levels, c.separator) }

func (c *REST) objectPath(o Object) string {
	kind := "tables"
	if o.View {
		kind = "views"
	}
	return c.path("namespaces", c.joined(o.Namespace), kind, o.Name)
}

// call sends a request, and decodes the answer. It repeats requests: see Patience. A token that the
// catalog does not take any more is drawn again once.
//
// Errors: *client.Error for an answer of the server; *DeniedError if the caller is not known.
func (c *REST) call(ctx context.Context, method, path string, query url.Values, body, answer any) error {
	return c.change(ctx, method, path, query, uuid.NewString(), body, answer)
}

// change is call with the key by which the catalog recognises a repetition.
func (c *REST) change(ctx context.Context, method, path string, query url.Values, key string, body, answer any) error {
	return c.ask(ctx, method == http.MethodGet, func() error {
		return c.send(ctx, method, path, query, key, body, answer)
	})
}

// ask calls send until it succeeds, or a repetition is of no use: see Patience.ask.
func (c *REST) ask(ctx context.Context, reads bool, send func() error) error {
	unknown := func(err error) bool {
		refused, ok := errors.AsType[*client.Error](err)
		return ok && refused.Code == http.StatusUnauthorized
	}
	err := c.access.Patience.ask(ctx, reads, func() error {
		err := send()
		if unknown(err) && c.access.Credential != "" {
			c.forgetToken()
			err = send()
		}
		return err
	})
	if unknown(err) {
		return &DeniedError{c.shown, err.Error()}
	}
	return err
}

// Bounds of one request.
const (
	answerMax      = 512 << 20       // bytes of the answer
	requestTimeout = 5 * time.Minute // until the whole answer is there
)

func (c *REST) send(ctx context.Context, method, path string, query url.Values, key string, body, answer any) error {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	var content io.Reader
	if body != nil {
		text, err := json.Marshal(body)
		if err != nil {
			return err
		}
		content = bytes.NewReader(text)
	}
	address := c.access.URI + path
	if len(query) > 0 {
		address += "?" + query.Encode()
	}
	request, err := http.NewRequestWithContext(ctx, method, address, content)
	if err != nil {
		return fmt.Errorf("ask %s: %w", c.shown, causeOf(err))
	}
	maps.Copy(request.Header, c.access.Header)
	if body != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	if method != http.MethodGet {
		request.Header.Set("Idempotency-Key", key)
	}
	if token, err := c.bearer(ctx); err != nil {
		return err
	} else if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	response, err := c.access.HTTP.Do(request)
	if err != nil {
		return fmt.Errorf("ask %s: %w", c.shown, causeOf(err))
	}
	defer response.Body.Close()
	if response.StatusCode >= 300 {
		return c.refusal(response)
	}
	if answer == nil || response.StatusCode == http.StatusNoContent {
		return nil
	}
	if err := json.NewDecoder(io.LimitReader(response.Body, answerMax)).Decode(answer); err != nil {
		return fmt.Errorf("read the answer of %s: %w", c.shown, err)
	}
	return nil
}

// refusal returns the error in a response.
func (c *REST) refusal(response *http.Response) error {
	text, _ := io.ReadAll(io.LimitReader(response.Body, client.RefusalBytesMax))
	refused := client.New(c.shown, "").RefusalOf(response, text)
	refused.Code = response.StatusCode
	return refused
}

// bearer returns the token of requests. It draws one for the credential, and again before it ends.
func (c *REST) bearer(ctx context.Context) (string, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.access.Now()
	if c.access.Credential == "" || c.token != "" && (c.until.IsZero() || now.Before(c.until)) {
		return c.token, nil
	}
	id, secret, both := strings.Cut(c.access.Credential, ":")
	if !both {
		id, secret = "", c.access.Credential
	}
	form := url.Values{
		"grant_type": {"client_credentials"}, "client_secret": {secret}, "scope": {cmp.Or(c.access.Scope, "catalog")},
	}
	if id != "" {
		form.Set("client_id", id)
	}
	at := cmp.Or(c.access.OAuthURI, c.access.URI+"/v1/oauth/tokens")
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, at, strings.NewReader(form.Encode()))
	if err != nil {
		return "", fmt.Errorf("ask for a token: %w", causeOf(err))
	}
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	response, err := c.access.HTTP.Do(request)
	if err != nil {
		return "", fmt.Errorf("ask for a token: %w", err)
	}
	defer response.Body.Close()
	var answer struct {
		Token string  `json:"access_token"`
		Life  float64 `json:"expires_in"`
	}
	err = json.NewDecoder(io.LimitReader(response.Body, client.RefusalBytesMax*8)).Decode(&answer)
	switch code := response.StatusCode; {
	case code == http.StatusTooManyRequests || code == http.StatusServiceUnavailable:
		return "", c.refusal(response)
	case code >= http.StatusInternalServerError: // not an answer about the object of the request
		return "", fmt.Errorf("ask for a token: %s answered %s", redacted(at), response.Status)
	}
	if response.StatusCode != http.StatusOK || err != nil || answer.Token == "" {
		return "", &DeniedError{redacted(at), "it issued no token for the credential: " + response.Status}
	}
	c.token, c.until = answer.Token, time.Time{}
	if answer.Life > 0 {
		c.until = now.Add(time.Duration(answer.Life * 0.9 * float64(time.Second)))
	}
	return c.token, nil
}

func (c *REST) forgetToken() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.token = ""
}

// pages calls visit with each page of a list.
func pages[P interface{ Next() string }](ctx context.Context, c *REST, path string, query url.Values,
	visit func(P) error) error {
	query = maps.Clone(query)
	if query == nil {
		query = url.Values{}
	}
	query.Set("pageSize", strconv.Itoa(client.PageMax))
	query.Set("pageToken", "")
	for {
		var page P
		if err := c.call(ctx, http.MethodGet, path, query, nil, &page); err != nil {
			return err
		}
		if err := visit(page); err != nil || page.Next() == "" {
			return err
		}
		query.Set("pageToken", page.Next())
	}
}

// eachNamespace calls visit with the levels of all namespaces, parents before children.
func (c *REST) eachNamespace(ctx context.Context, visit func(levels []string) error) error {
	open := [][]string{nil}
	met := make(map[string]bool)
	for len(open) > 0 {
		parent := open[0]
		open = open[1:]
		query := url.Values{}
		if parent != nil {
			query.Set("parent", c.joined(parent))
		}
		err := pages(ctx, c, c.path("namespaces"), query, func(page client.NamespacesPage) error {
			for _, levels := range page.Namespaces {
				key := c.joined(levels)
				if len(levels) <= len(parent) || met[key] { // a server without nested namespaces repeats itself
					continue
				}
				met[key] = true
				open = append(open, levels)
				if err := visit(levels); err != nil {
					return err
				}
			}
			return nil
		})
		if refused := aboutObject(err); refused != nil && parent != nil && refused.Code != http.StatusForbidden {
			continue // it has no nested namespaces, or this one is gone
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// Namespaces implements Source.
func (c *REST) Namespaces(ctx context.Context) ([]Namespace, error) {
	var all []Namespace
	err := c.eachNamespace(ctx, func(levels []string) error {
		properties, err := c.Properties(ctx, levels)
		if errors.Is(err, ErrGone) {
			return nil
		}
		all = append(all, Namespace{Levels: levels, Properties: properties})
		return err
	})
	return all, err
}

// Properties returns the properties of a namespace. The error is ErrGone if there is none.
func (c *REST) Properties(ctx context.Context, levels []string) (map[string]string, error) {
	var loaded client.LoadedNamespace
	err := c.call(ctx, http.MethodGet, c.path("namespaces", c.joined(levels)), nil, nil, &loaded)
	return loaded.Properties, orGone(err)
}

// orGone returns ErrGone for an answer that there is no such object.
func orGone(err error) error {
	if refused, ok := errors.AsType[*client.Error](err); ok && refused.Code == http.StatusNotFound {
		return ErrGone
	}
	return err
}

// List implements Source.
func (c *REST) List(ctx context.Context, visit func(Object) error) error {
	return c.eachNamespace(ctx, func(levels []string) error {
		if err := c.listKind(ctx, levels, false, visit); err != nil {
			return err
		}
		return c.listKind(ctx, levels, true, visit)
	})
}

// listKind calls visit with the tables, or the views, in a namespace. There are none if the
// namespace is gone, or if the catalog knows no views.
func (c *REST) listKind(ctx context.Context, levels []string, views bool, visit func(Object) error) error {
	kind := "tables"
	if views {
		kind = "views"
	}
	if views && c.endpoints != nil && !c.endpoints[endpointListViews] {
		return nil
	}
	path := c.path("namespaces", c.joined(levels), kind)
	err := pages(ctx, c, path, nil, func(page client.IdentifiersPage) error {
		for _, ident := range page.Identifiers {
			if err := visit(Object{Namespace: ident.Namespace, Name: ident.Name, View: views}); err != nil {
				return err
			}
		}
		return nil
	})
	refused := aboutObject(err)
	if refused != nil && (refused.Code == http.StatusNotFound || views && c.endpoints == nil) {
		return nil
	}
	return err
}

// Load implements Source and Target.
func (c *REST) Load(ctx context.Context, o Object) (Object, error) {
	var loaded client.Loaded
	query := url.Values{}
	if !o.View {
		query.Set("snapshots", "refs")
	}
	if err := c.call(ctx, http.MethodGet, c.objectPath(o), query, nil, &loaded); err != nil {
		return o, c.orDenied(ctx, orGone(err))
	}
	facts, err := client.FactsOf(loaded.Metadata)
	if err != nil {
		return o, fmt.Errorf("%w: %w", ErrUnreadable, err)
	}
	o.MetadataLocation, o.Facts = loaded.MetadataLocation, &facts
	return o, nil
}

// orDenied returns a *DeniedError in place of a 403 for an object, if the catalog refuses to list
// its namespaces too. Some catalogs answer so when a token has ended.
func (c *REST) orDenied(ctx context.Context, err error) error {
	if refused := aboutObject(err); refused == nil || refused.Code != http.StatusForbidden {
		return err
	}
	listed := c.call(ctx, http.MethodGet, c.path("namespaces"), url.Values{"pageSize": {"1"}}, nil, nil)
	if denied, ok := errors.AsType[*DeniedError](listed); ok {
		return denied
	}
	if refused := aboutObject(listed); refused != nil && refused.Code == http.StatusForbidden {
		return &DeniedError{c.shown, listed.Error()}
	}
	return err
}

// CanDetach implements Detacher: tables of a catalog that can unregister them can.
func (c *REST) CanDetach(o Object) bool { return !o.View && c.endpoints[endpointUnregister] }

// Detach implements Detacher: it unregisters the table. The answer has the last version. The key of
// the attempt is the Idempotency-Key, so a catalog that knows such keys repeats its answer.
func (c *REST) Detach(ctx context.Context, a Attempt) (Object, error) {
	var loaded client.Loaded
	o, path := a.Object, c.objectPath(a.Object)+"/unregister"
	if err := c.change(ctx, http.MethodPost, path, nil, a.Key, struct{}{}, &loaded); err != nil {
		return o, orGone(err)
	}
	if loaded.MetadataLocation == "" {
		return o, errors.New("the catalog unregistered it, and did not name its last metadata file")
	}
	o.MetadataLocation = loaded.MetadataLocation
	return o, nil
}

// Check implements Target by a load: this protocol has no check.
func (c *REST) Check(ctx context.Context, o Object) (client.RegisterChecked, error) {
	there, err := c.Load(ctx, o)
	switch {
	case errors.Is(err, ErrGone) && o.View && c.endpoints != nil && !c.endpoints[endpointRegisterView]:
		return client.RegisterChecked{Fitness: string(StatusView), Why: "The target cannot register views"}, nil
	case errors.Is(err, ErrGone):
		return client.RegisterChecked{Fitness: string(StatusNew), Facts: o.Facts}, nil
	case err != nil:
		return client.RegisterChecked{}, err
	case there.MetadataLocation == o.MetadataLocation:
		return client.RegisterChecked{Fitness: string(StatusSame), Facts: there.Facts}, nil
	case o.Facts != nil && there.Facts.UUID != o.Facts.UUID:
		return client.RegisterChecked{Fitness: "name-taken", Facts: o.Facts, Why: "Another " + o.Kind() +
			" has the name, with the uuid " + there.Facts.UUID}, nil
	}
	return client.RegisterChecked{Fitness: string(StatusChanged), Facts: o.Facts, Why: "The target has it with the " +
		"metadata file " + there.MetadataLocation + ": unregister it there, or drop it there without its files"}, nil
}

// MakeNamespace implements Target.
func (c *REST) MakeNamespace(ctx context.Context, n Namespace) error {
	there, err := c.Properties(ctx, n.Levels)
	if errors.Is(err, ErrGone) {
		return c.createNamespace(ctx, n)
	}
	if err != nil {
		return err
	}
	missing := make(map[string]string)
	for name, value := range n.Properties {
		if _, has := there[name]; !has && name != propertyLocation {
			missing[name] = value
		}
	}
	if len(missing) == 0 {
		return nil
	}
	body := map[string]any{"updates": missing, "removals": []string{}}
	return c.call(ctx, http.MethodPost, c.path("namespaces", c.joined(n.Levels), "properties"), nil, body, nil)
}

// propertyLocation is the property of a namespace that has the location of its tables.
const propertyLocation = "location"

// createNamespace makes a namespace. If the target refuses its location, the namespace gets that of
// the target: the tables keep theirs.
func (c *REST) createNamespace(ctx context.Context, n Namespace) error {
	body := map[string]any{"namespace": n.Levels, "properties": n.Properties}
	if n.Properties == nil {
		body["properties"] = map[string]string{}
	}
	err := c.call(ctx, http.MethodPost, c.path("namespaces"), nil, body, nil)
	refused := aboutObject(err)
	if refused == nil {
		return err
	}
	if refused.Code == http.StatusConflict { // made meanwhile
		return nil
	}
	if n.Properties[propertyLocation] == "" {
		return err
	}
	own := maps.Clone(n.Properties)
	delete(own, propertyLocation)
	return c.createNamespace(ctx, Namespace{Levels: slices.Clone(n.Levels), Properties: own})
}

// Register implements Target. This protocol has no mirrors.
func (c *REST) Register(ctx context.Context, o Object, mirror string) error {
	if mirror != "" {
		return errors.New("a REST catalog has no mirrors")
	}
	body := map[string]any{"name": o.Name, "metadata-location": o.MetadataLocation}
	operation := "register"
	if o.View {
		operation = "register-view"
	}
	return c.call(ctx, http.MethodPost, c.path("namespaces", c.joined(o.Namespace), operation), nil, body, nil)
}

// EndMirror implements Target.
func (c *REST) EndMirror(context.Context, Object) error {
	return errors.New("a REST catalog has no mirrors")
}
