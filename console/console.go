package console

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"time"

	"moorage"
	"moorage/internal/web"
	"moorage/management/client"
)

// Root is the path of the console's first page. All its paths begin with it.
const Root = "/console"

// Config has what the console needs from the process that it runs in.
type Config struct {
	// Version is shown in the footer of each page.
	Version string
	// Recipes returns the lines with which each engine reads a table.
	Recipes func(reach Reach) []Recipe
	// Authenticates reports that callers of the API must authenticate.
	Authenticates bool
	// SessionKey returns the key that encrypts the sessions of visitors: 32 bytes, the same on all
	// nodes. Required if Authenticates is set.
	SessionKey func(ctx context.Context) ([]byte, error)
	// IsEncrypted reports whether a proxy that the server trusts received a request over TLS.
	// Default: there is no such proxy.
	IsEncrypted func(r *http.Request) bool
	// IsFromProxy reports whether a request comes from a proxy that the server trusts. Default:
	// there is no such proxy.
	IsFromProxy func(r *http.Request) bool
	// Providers signs visitors in at identity providers. Default: there are none.
	Providers Providers
	// Now returns the time. Default time.Now.
	Now func() time.Time
}

// Reach is how an engine reaches a table of this server.
type Reach struct {
	URI       string // base address of the server, as the visitor's browser knows it
	Warehouse string
	Location  string   // of the table
	Table     []string // its namespace and its name
}

// Recipe has the lines that connect one engine.
type Recipe struct {
	Title string
	Note  string // what else the engine needs; may be empty
	Lines []string
}

// needs is what pages ask for: the operations of the API, for one visitor. *client.Client
// implements it.
type needs interface {
	Do(ctx context.Context, asked client.Request, answer any) error
	Send(ctx context.Context, method, path string, headers http.Header, body io.Reader) (*http.Response, error)
}

// console answers the requests of browsers. It is safe for concurrent use.
type console struct {
	config  Config
	server  *web.Server // answers, and has the API
	origins *http.CrossOriginProtection
	files   map[string]file
	secrets *secretsShown
}

// Names of the console's operations in logs and metrics.
const (
	operationPage   = "consolePage"
	operationChange = "consoleChange"
)

// Mount adds the console to on, whose other routes are the API that it uses.
func Mount(on *web.Server, config Config) {
	if config.Now == nil {
		config.Now = time.Now
	}
	if config.Recipes == nil {
		config.Recipes = func(Reach) []Recipe { return nil }
	}
	if config.IsEncrypted == nil {
		config.IsEncrypted = func(*http.Request) bool { return false }
	}
	if config.Providers == nil {
		config.Providers = noProviders{}
	}
	if config.IsFromProxy == nil {
		config.IsFromProxy = func(*http.Request) bool { return false }
	}
	c := &console{
		config: config, server: on, origins: http.NewCrossOriginProtection(), files: staticFiles(),
		secrets: &secretsShown{ends: make(map[string]time.Time)},
	}
	for _, path := range []string{Root, Root + "/*"} {
		on.HandleOpen(operationPage, http.MethodGet, path, c.get)
		on.HandleOpen(operationPage, http.MethodHead, path, c.get)
		on.HandleOpen(operationChange, http.MethodPost, path, c.post)
	}
}

// loader makes the page that a request asks for.
type loader func(ctx context.Context, v *visit) (*page, error)

// changer makes the change that a form asks for, and returns the page to show then.
type changer func(ctx context.Context, v *visit) (target, error)

// pages returns the pages by their place.
func pages() map[place]loader {
	return map[place]loader{
		placeHome:       loadHome,
		placeWarehouses: loadWarehouses,
		placeBrowse:     loadBrowse,
		placeTable:      loadTable,
		placeHistory:    loadHistory,
		placeDiff:       loadDiff,
		placeMetadata:   loadMetadata,
		placeView:       loadView,
		placeChanges:    loadChanges,
		placeSearch:     loadSearch,
		placeRollback:   loadRollback,
		placeSnapshots:  loadSnapshots,
		placeRef:        loadRef,
		placeMaintain:   loadMaintenance,
		placeRun:        loadRun,
		placeGrants:     loadGrants,
		placeGrant:      loadGrant,
		placePrincipals: loadPrincipals,
		placePrincipal:  loadPrincipal,
		placeKey:        loadKey,
		placeOperations: loadOperations,
		placeUnfinished: loadUnfinished,
		placeAPI:        loadAPI,
		placeCluster:    loadCluster,
		placeLogin:      loadLogin,
		placeDropped:    loadDropped,
		placeWarehouse:  loadWarehouse,
		placeRows:       loadRows,
		placeUndrop:     loadUndrop,
	}
}

// changes returns the changes by the place that their forms are sent to.
func changes() map[place]changer {
	return map[place]changer{
		placeTheme:    changeTheme,
		placeLogin:    changeLogin,
		placeLogout:   changeLogout,
		placeDo:       changePrepared,
		placeWithdraw: changeWithdraw,
	}
}

// answered returns the changes whose result no later page can show, by the place that their forms
// are sent to. The answer to the form is the page.
func answered() map[place]loader {
	return map[place]loader{
		placeValidate: showValidation,
		placeProvider: showProvider,
		placeMakeKey:  showKey,
	}
}

// get answers with a page or a file.
func (c *console) get(w http.ResponseWriter, r *http.Request) error {
	path := strings.TrimPrefix(r.URL.Path, Root)
	if name, isFile := strings.CutPrefix(path, staticPath); isFile {
		return c.serveFile(w, r, name)
	}
	v := c.visitOf(r)
	defer v.end()
	if err := c.resume(r, v); err != nil {
		return c.answer(w, r, v, failed(v, err))
	}
	if provider, isReturn := strings.CutPrefix(path, returnPath); isReturn && r.Method == http.MethodGet {
		return c.finishSignIn(w, r, v, provider)
	}
	if place(path) == placeRaw {
		return c.serveRaw(w, r, v)
	}
	load, found := pages()[place(path)]
	if !found {
		return c.answer(w, r, v, notFound())
	}
	shown, err := load(r.Context(), v)
	if c.config.Authenticates && statusOf(err) == http.StatusUnauthorized {
		return v.sendTo(w, to(placeLogin, client.Object{}, fieldBack, v.here))
	}
	if err != nil {
		failure := problemOf(v, err)
		if failure.status == http.StatusNotFound {
			failure.now, failure.dropped = v.now, droppedOf(r.Context(), v, v.object())
		}
		shown = failure.page()
	}
	return c.answer(w, r, v, shown)
}

// formBytesMax bounds the body of a form. The longest field is a prepared commit, which may have a
// schema.
const formBytesMax = 4 << 20

// post makes a change and sends the browser to a page. Pages of other origins cannot make changes.
func (c *console) post(w http.ResponseWriter, r *http.Request) error {
	if err := c.origins.Check(r); err != nil {
		return moorage.Errorf(moorage.KindForbidden, "A page from another origin may not change anything here")
	}
	v := c.visitOf(r)
	defer v.end()
	if err := c.resume(r, v); err != nil {
		return c.answer(w, r, v, failed(v, err))
	}
	if err := v.readForm(w, r); err != nil {
		return err
	}
	sentTo := place(strings.TrimPrefix(r.URL.Path, Root))
	if show, found := answered()[sentTo]; found {
		shown, err := show(r.Context(), v)
		return c.finish(w, r, v, shown, err)
	}
	change, found := changes()[sentTo]
	if !found {
		return c.answer(w, r, v, notFound())
	}
	next, err := change(r.Context(), v)
	if err != nil {
		return c.finish(w, r, v, nil, err)
	}
	return v.sendTo(w, next)
}

// finish answers a form with a page, or with the page for the error of its change.
func (c *console) finish(w http.ResponseWriter, r *http.Request, v *visit, shown *page, err error) error {
	if again, ok := errors.AsType[*refusedLogin](err); ok {
		shown = again.form.page()
		shown.status = again.status
		return c.answer(w, r, v, shown)
	}
	if c.config.Authenticates && statusOf(err) == http.StatusUnauthorized {
		return v.sendTo(w, to(placeLogin, client.Object{}, fieldBack, v.form.Get(fieldBack)))
	}
	if err != nil {
		shown = failed(v, err)
	}
	return c.answer(w, r, v, shown)
}

// readForm reads the fields of a form.
func (v *visit) readForm(w http.ResponseWriter, r *http.Request) error {
	r.Body = http.MaxBytesReader(w, r.Body, formBytesMax)
	if err := r.ParseForm(); err != nil {
		return moorage.Errorf(moorage.KindBadRequest, "The form cannot be read")
	}
	v.form = unescaped(r.PostForm)
	return nil
}

// sendTo sends the browser to another page, with the cookies of the visit.
func (v *visit) sendTo(w http.ResponseWriter, next target) error {
	for _, cookie := range v.cookies {
		http.SetCookie(w, cookie)
	}
	w.Header().Set("Location", next.href())
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(http.StatusSeeOther)
	return nil
}
