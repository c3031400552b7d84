package rest

import (
	"net/http"
	"strings"

	"moorage/catalog"
	"moorage/catalog/vending"
	"moorage/internal/web"
)

// operation is one operation of the Iceberg REST specification. It has either a handler or, if it
// changes something, a mutation. A mutation accepts an Idempotency-Key.
type operation struct {
	id     string // operationId
	method string
	path   string // as in the specification
	often  bool   // nearly all requests use it
	handle web.Handler
	mutate mutation
	// commits is the path parameter that names the table or view to which the operation commits. It
	// is empty for other operations.
	commits string
	// offer is the delegation that a warehouse must offer for the operation to be advertised. If it
	// is empty, the operation is always advertised.
	offer vending.Delegation
}

// operations returns the supported operations of the specification. Each has a route for its path,
// and a route without {prefix} for the default warehouse.
func (s *server) operations() []operation {
	const (
		prefix     = "/v1/{prefix}"
		namespaces = prefix + "/namespaces"
		namespace  = namespaces + "/{namespace}"
		tables     = namespace + "/tables"
		table      = tables + "/{table}"
		views      = namespace + "/views"
		view       = views + "/{view}"
	)
	return []operation{
		{id: "getConfig", method: http.MethodGet, path: "/v1/config", handle: s.getConfig},

		{id: "listNamespaces", method: http.MethodGet, path: namespaces, handle: s.listNamespaces},
		{id: "createNamespace", method: http.MethodPost, path: namespaces, mutate: s.createNamespace},
		{id: "loadNamespaceMetadata", method: http.MethodGet, path: namespace, handle: s.loadNamespace},
		{id: "namespaceExists", method: http.MethodHead, path: namespace, handle: s.loadNamespace},
		{id: "dropNamespace", method: http.MethodDelete, path: namespace, mutate: s.dropNamespace},
		{id: "updateProperties", method: http.MethodPost, path: namespace + "/properties", mutate: s.updateProperties},

		{id: "listTables", method: http.MethodGet, path: tables, handle: s.list("tables", catalog.Verbs.ListTables)},
		{id: "createTable", method: http.MethodPost, path: tables, mutate: s.createTable},
		{id: "loadTable", method: http.MethodGet, path: table, handle: s.loadTable, often: true},
		{id: "tableExists", method: http.MethodHead, path: table,
			handle: s.exists(paramTable, catalog.Verbs.TableExists)},
		{id: "updateTable", method: http.MethodPost, path: table, mutate: s.commitTable, often: true,
			commits: paramTable},
		{id: "dropTable", method: http.MethodDelete, path: table, mutate: s.dropTable},
		{id: "unregisterTable", method: http.MethodPost, path: table + "/unregister", mutate: s.unregisterTable},
		{id: "reportMetrics", method: http.MethodPost, path: table + "/metrics", handle: s.reportMetrics},
		{id: "loadCredentials", method: http.MethodGet, path: table + "/credentials", handle: s.loadCredentials,
			offer: vending.VendedCredentials},
		{id: "signRequest", method: http.MethodPost, path: table + "/sign", handle: s.signRequest, often: true,
			offer: vending.RemoteSigning},
		{id: "registerTable", method: http.MethodPost, path: namespace + "/register", mutate: s.registerTable},
		{id: "renameTable", method: http.MethodPost, path: prefix + "/tables/rename",
			mutate: rename("rename table request", catalog.Verbs.RenameTable)},
		{id: "commitTransaction", method: http.MethodPost, path: prefix + "/transactions/commit",
			mutate: s.commitTransaction},

		{id: "listViews", method: http.MethodGet, path: views, handle: s.list("views", catalog.Verbs.ListViews)},
		{id: "createView", method: http.MethodPost, path: views, mutate: s.createView},
		{id: "loadView", method: http.MethodGet, path: view, handle: s.loadView},
		{id: "viewExists", method: http.MethodHead, path: view, handle: s.exists(paramView, catalog.Verbs.ViewExists)},
		{id: "replaceView", method: http.MethodPost, path: view, mutate: s.replaceView, commits: paramView},
		{id: "dropView", method: http.MethodDelete, path: view, mutate: s.dropView},
		{id: "registerView", method: http.MethodPost, path: namespace + "/register-view", mutate: s.registerView},
		{id: "renameView", method: http.MethodPost, path: prefix + "/views/rename",
			mutate: rename("rename view request", catalog.Verbs.RenameView)},
	}
}

// routes adds every operation to the server.
func (s *server) routes() {
	s.SumRefusals("loadTable", "tableExists", "updateTable", "commitTransaction",
		"loadView", "viewExists", "replaceView")
	s.HandleOpen("getToken", http.MethodPost, "/v1/oauth/tokens", s.getToken)
	for _, op := range s.operations() {
		handle := op.handle
		if op.mutate != nil {
			handle = s.mutate(op.id, op.commits, op.mutate)
		}
		if op.method == http.MethodPost {
			handle = s.admitting(op.id, handle)
		}
		add := s.Handle
		if op.often {
			add = s.HandleOften
		}
		add(op.id, op.method, op.path, handle)
		if short := strings.Replace(op.path, "/{prefix}", "", 1); short != op.path {
			add(op.id, op.method, short, handle)
		}
		if op.offer == "" {
			s.endpoints = append(s.endpoints, op.method+" "+op.path)
		}
	}
}
