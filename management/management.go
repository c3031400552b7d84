// Package management is Moorage's own HTTP API for operators: /management/v1. The file openapi.yaml
// describes it, and the server serves that file.
//
// Members are spelled in kebab-case, times are in RFC 3339, and ids are 32 hexadecimal digits.
// Every list is paged: the next-page-token of a page is the parameter pageToken of the request for
// the next page. A change accepts an Idempotency-Key. A failure has the form of the Iceberg
// operations, and also contains the request's id and advice for the client.
//
// The package must not import storage, or code that reads the content of tables.
package management

import (
	"context"
	_ "embed" // openapi.yaml
	"net/http"
	"slices"
	"time"

	"github.com/maypok86/otter/v2"

	"moorage"
	"moorage/audit"
	"moorage/catalog"
	"moorage/catalog/activity"
	"moorage/catalog/gate"
	"moorage/check"
	"moorage/internal/web"
	"moorage/maintenance/policy"
	"moorage/management/client"
)

// Config has the parts of the server that the API uses. Fields without a default are required.
type Config struct {
	// Recovery and Purges give access to the transactions and purges that need an operator.
	Recovery Recovery
	Purges   Purges
	// Check checks the whole store, as check.Checker does.
	Check func(ctx context.Context) (check.Report, error)
	// Findings returns the findings that this node reports about itself. Default: no findings.
	Findings func(ctx context.Context) []client.Finding
	// Backup copies the store to a new folder called name, in a folder that Backup chooses, and
	// returns when the copy is durable. It checks the name. Default: KindUnsupported.
	Backup func(ctx context.Context, name string) (client.Backup, error)
	// History is the feed of changes. Default: KindUnsupported.
	History History
	// Leases grants leases on the tables that FindTable finds.
	Leases    Leases
	FindTable FindTable
	// Work hands out jobs to external programs. Default: KindUnsupported.
	Work Work
	// Gate decides which callers may use which operation. Default: gate.AdmitAll().
	Gate gate.Authorizer
	// Access returns access control with the rights of a caller.
	Access func(caller moorage.Caller) Access
	// Warehouses returns the management of warehouses with the rights of a caller.
	Warehouses func(caller moorage.Caller) Warehouses
	// Browse returns the verbs that show objects, with the rights of a caller.
	Browse func(caller moorage.Caller) Browse
	// Labels returns the verbs on labels, with the rights of a caller. key is the idempotency key
	// of the caller's request, or nil.
	Labels func(caller moorage.Caller, key *catalog.Key) Labels
	// Dropped is like Labels, for the verbs on dropped objects.
	Dropped func(caller moorage.Caller, key *catalog.Key) Dropped
	// Protections is like Labels, for the verbs on protection.
	Protections func(caller moorage.Caller, key *catalog.Key) Protections
	// Mirrors is like Labels, for the verbs on mirrors.
	Mirrors func(caller moorage.Caller, key *catalog.Key) Mirrors
	// Health returns this node's view of the storage of a warehouse. Default: there is no view.
	Health func(warehouse, location string) *client.StorageHealth
	// RotateSecrets reseals all secrets for a caller. Default: KindUnsupported.
	RotateSecrets func(ctx context.Context, caller moorage.Caller, rotation client.SecretsRotation) (
		client.SecretsRotated, error)
	// EndSessions ends the sessions of all people in browsers. Default: KindUnsupported.
	EndSessions func(ctx context.Context) error
	// Versions returns the versions of tables with the rights of a caller. Rollback makes its
	// commit only once for key, and under lease, as catalog.For does.
	Versions func(caller moorage.Caller, key *catalog.Key, lease *catalog.Lease) Versions
	// Scopes returns access to the objects whose maintenance a caller may see or change. Policies,
	// Steering and Jobs manage the maintenance of the whole store.
	Scopes   func(caller moorage.Caller) policy.Scopes
	Policies Policies
	Steering Steering
	Jobs     Jobs
	// Begun is called after a job on a table has begun. By default nothing is called, and the
	// node's workers find the job by themselves.
	Begun func(ctx context.Context, table moorage.Identifier, kind string)
	// DrawKey draws a secret: for a new key if id is empty, otherwise a further secret for the key
	// with that id. Default: KindUnsupported.
	DrawKey func(id string) (Drawn, error)
	// Authenticates is true if the server authenticates its callers.
	Authenticates bool
	// Admins are the principals that are always administrators. Only they may switch access control
	// on over the network, because the store has no administrator until then.
	Admins []string
	// Note writes a line of the audit log. Denials finds the lines about a denied request. Default:
	// there is no log.
	Note    func(line audit.Line)
	Denials func(requestID string) []audit.Line
	// LastDenials returns at most limit lines about denied requests, the newest first. Default:
	// there is no log.
	LastDenials func(limit int) []audit.Line
	// Activity is this node's memory of recent commits and loads. Default: an Activity of its own.
	Activity *activity.Activity
	// Node is the name of this node. Nodes returns the number of nodes that this node knows,
	// including itself. Default: 1.
	Node  string
	Nodes func() int
	// State returns the state of this node, without its name. Default: nothing is known.
	State func() client.NodeState
	// AskPeers sends a read-only request to the other nodes, on behalf of caller. Default: there
	// are no other nodes.
	AskPeers func(r *http.Request, caller moorage.Caller) []PeerAnswer
	// Stopping is closed when the server begins to stop. Then the server answers clients that wait
	// for a lease or for work. Default: never closed.
	Stopping <-chan struct{}
	// Now returns the time. Default time.Now.
	Now func() time.Time
}

func (c Config) withDefaults() Config {
	if c.Backup == nil {
		c.Backup = func(context.Context, string) (client.Backup, error) {
			return client.Backup{}, moorage.Errorf(moorage.KindUnsupported, "This server makes no backups")
		}
	}
	if c.History == nil {
		c.History = noHistory{}
	}
	if c.Gate == nil {
		c.Gate = gate.AdmitAll()
	}
	if c.DrawKey == nil {
		c.DrawKey = func(string) (Drawn, error) {
			return Drawn{}, moorage.Errorf(moorage.KindUnsupported, "This server has no keys: start it with --keys")
		}
	}
	if c.Findings == nil {
		c.Findings = func(context.Context) []client.Finding { return nil }
	}
	if c.Health == nil {
		c.Health = func(string, string) *client.StorageHealth { return nil }
	}
	if c.RotateSecrets == nil {
		c.RotateSecrets = func(context.Context, moorage.Caller, client.SecretsRotation) (client.SecretsRotated, error) {
			return client.SecretsRotated{}, moorage.Errorf(moorage.KindUnsupported,
				"This server has no keys for secrets: start it with --secrets-key")
		}
	}
	if c.EndSessions == nil {
		c.EndSessions = func(context.Context) error {
			return moorage.Errorf(moorage.KindUnsupported, "This server has no sessions of people in browsers")
		}
	}
	if c.Begun == nil {
		c.Begun = func(context.Context, moorage.Identifier, string) {}
	}
	if c.Work == nil {
		c.Work = noWork{}
	}
	if c.Note == nil {
		c.Note = func(audit.Line) {}
	}
	if c.Denials == nil {
		c.Denials = func(string) []audit.Line { return nil }
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.LastDenials == nil {
		c.LastDenials = func(int) []audit.Line { return nil }
	}
	if c.Activity == nil {
		c.Activity = activity.New(c.Now())
	}
	if c.Nodes == nil {
		c.Nodes = func() int { return 1 }
	}
	if c.State == nil {
		c.State = func() client.NodeState { return client.NodeState{Members: c.Nodes()} }
	}
	if c.AskPeers == nil {
		c.AskPeers = func(*http.Request, moorage.Caller) []PeerAnswer { return nil }
	}
	return c
}

// server has the shared state of the handlers. It is safe for concurrent use.
type server struct {
	*web.Server

	config Config
	made   *otter.Cache[string, *made] // by Idempotency-Key
}

// base is the prefix of the paths of all operations.
const base = "/management/v1"

// Mount adds the routes of the API to a server.
func Mount(on *web.Server, config Config) {
	s := &server{Server: on, config: config.withDefaults(), made: newMade()}
	on.Explain(base + "/")
	for _, op := range s.operations() {
		on.Handle(op.id, op.method, base+op.path, s.gated(op))
	}
}

// gated returns a handler that checks the gate before it calls the handler of op. The handler that
// takes a lease checks the gate itself, because it must know the table first.
func (s *server) gated(op operation) web.Handler {
	if op.verb() == gate.TakeLease {
		return op.handle
	}
	return func(w http.ResponseWriter, r *http.Request) error {
		request := gate.Request{Caller: web.CallerOf(r), Verb: op.verb()}
		// The audit log names the table even without access control.
		if request.Verb == gate.ReadRows || request.Verb == gate.ListManifests {
			if ident, err := tableOfQuery(web.QueryOf(r)); err == nil {
				request.On = []moorage.Identifier{ident}
			}
		}
		err := gate.Pass(r.Context(), s.config.Gate, request, func() error {
			if row, _ := request.Verb.Row(); !row.Reads && request.Verb != gate.Backup {
				return op.handle(w, r) // the code of a change checks the caller's rights again
			}
			return gate.Recheck(r.Context(), func(ctx context.Context) error {
				return s.config.Gate.Authorize(ctx, request)
			}, func(ctx context.Context) error { return op.handle(w, r.WithContext(ctx)) })
		})
		return s.tellDropped(r, err)
	}
}

// operation is one operation of openapi.yaml. Logs and metrics use its id.
type operation struct {
	id, method, path string
	handle           web.Handler
}

// verb returns the verb of op, from the table of verbs.
func (op operation) verb() gate.Verb {
	if verbs := gate.OfManagement(op.id); len(verbs) > 0 {
		return verbs[0]
	}
	return ""
}

// operations returns all operations.
func (s *server) operations() []operation {
	const get, post, put, remove = http.MethodGet, http.MethodPost, http.MethodPut, http.MethodDelete
	return slices.Concat(s.warehouseOperations(), s.accessOperations(), s.maintenanceOperations(), []operation{
		{"openapi", get, "/openapi.yaml", describe},
		{"diagnose", get, "/doctor", s.diagnose},
		{"listChanges", get, "/changes", s.listChanges},
		{"loadHistory", get, "/history", s.loadHistory},
		{"retryUnfinished", post, "/doctor/{id}/retry", s.change(s.retryUnfinished)},
		{"abortUnfinished", post, "/doctor/{id}/abort", s.change(s.abortUnfinished)},
		{"backup", post, "/backup", nearby(s.change(s.backup))},
		{"takeLease", post, "/leases", s.changeThatWaits(s.takeLease)},
		{"renewLeases", put, "/leases", s.change(s.renewLeases)},
		{"listLeases", get, "/leases", s.listLeases},
		{"releaseLeases", remove, "/leases", s.change(s.releaseLeases)},
		{"releaseLease", remove, "/leases/{lease}", s.change(s.releaseLease)},
		{"claimWork", post, "/work", s.changeThatWaits(s.claimWork)},
		{"progressWork", post, "/work/{job}/progress", s.change(s.progressWork)},
		{"finishWork", post, "/work/{job}/finish", s.change(s.finishWork)},
	}, s.labelOperations(), s.browseOperations(), s.activityOperations(), s.versionOperations(),
		s.droppedOperations(), s.protectionOperations(), s.mirrorOperations())
}

//go:embed openapi.yaml
var openAPI []byte

// describe answers with the description of this API.
func describe(w http.ResponseWriter, _ *http.Request) error {
	w.Header().Set("Content-Type", "application/yaml")
	_, _ = w.Write(openAPI) // if this fails, the client has disconnected
	return nil
}

// backup copies the store to a new folder whose name is in the request. It answers with a
// client.Backup when the copy is durable.
func (s *server) backup(r *http.Request, body []byte) (any, error) {
	f, err := web.ParseFields(body, "backup request")
	if err != nil {
		return nil, err
	}
	f.Require("name")
	name := f.Text("name")
	if f.Failure != nil {
		return nil, f.Failure
	}
	return s.config.Backup(r.Context(), name)
}

// nearby returns a handler that passes requests from this machine to h, and refuses others. These
// operations use disk space, and only a caller with an account on this machine can use the result.
// A request with a header that proxies add is refused, even if the proxy is on this machine.
func nearby(h web.Handler) web.Handler {
	return func(w http.ResponseWriter, r *http.Request) error {
		if !web.IsDirect(r) {
			return moorage.Errorf(moorage.KindForbidden, "Only the machine that the server runs on may ask for this")
		}
		return h(w, r)
	}
}

// pageSizes are the page sizes of most lists.
var pageSizes = web.PageSizes{Default: 100, Max: client.PageMax, Always: true}

// list returns the handler of a list. name identifies the list: the token of a page is refused for
// another list.
func list[T any](s *server, name string, sizes web.PageSizes,
	find func(context.Context, moorage.Page) ([]T, string, error), answer func([]T, *string) any) web.Handler {
	return func(w http.ResponseWriter, r *http.Request) error {
		pages, err := web.PagerOf(r, sizes, "management", name)
		if err != nil {
			return err
		}
		found, next, err := find(r.Context(), moorage.Page{After: pages.After, Limit: pages.Limit})
		if err != nil {
			return err
		}
		return s.AnswerJSON(w, r, answer(found, pages.Seal(next)))
	}
}

// pagesOf wraps find in a function that converts each element to the type of the API.
func pagesOf[T, U any](find func(context.Context, moorage.Page) ([]T, string, error), convert func(T) U) func(
	context.Context, moorage.Page) ([]U, string, error) {
	return func(ctx context.Context, page moorage.Page) ([]U, string, error) {
		found, next, err := find(ctx, page)
		return each(found, convert), next, err
	}
}
