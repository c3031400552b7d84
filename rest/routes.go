package rest

import (
	"net/http"
	"strings"

	"github.com/go-chi/chi/v5"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// handler answers a request. An error that it returns is written by the adapter
// (server.adapt) if the handler has not begun to answer.
type handler func(w http.ResponseWriter, r *http.Request) error

// operation is one operation of the Iceberg REST specification.
type operation struct {
	id     string // operationId
	method string
	path   string // as the specification spells it
	handle handler
}

// operations returns the operations of the specification that are served. Each is routed
// as it stands, and again without {prefix} for the default warehouse.
func (s *server) operations() []operation {
	const (
		namespaces = "/v1/{prefix}/namespaces"
		namespace  = namespaces + "/{namespace}"
		tables     = namespace + "/tables"
		table      = tables + "/{table}"
	)
	return []operation{
		{"getConfig", http.MethodGet, "/v1/config", s.getConfig},

		{"listNamespaces", http.MethodGet, namespaces, s.listNamespaces},
		{"createNamespace", http.MethodPost, namespaces, s.createNamespace},
		{"loadNamespaceMetadata", http.MethodGet, namespace, s.loadNamespace},
		{"namespaceExists", http.MethodHead, namespace, s.namespaceExists},
		{"dropNamespace", http.MethodDelete, namespace, s.dropNamespace},
		{"updateProperties", http.MethodPost, namespace + "/properties", s.updateProperties},

		{"listTables", http.MethodGet, tables, s.listTables},
		{"createTable", http.MethodPost, tables, s.createTable},
		{"loadTable", http.MethodGet, table, s.loadTable},
		{"tableExists", http.MethodHead, table, s.tableExists},
		{"updateTable", http.MethodPost, table, s.commitTable},
		{"dropTable", http.MethodDelete, table, s.dropTable},
		{"unregisterTable", http.MethodPost, table + "/unregister", s.unregisterTable},
		{"reportMetrics", http.MethodPost, table + "/metrics", s.reportMetrics},
		{"registerTable", http.MethodPost, namespace + "/register", s.registerTable},
		{"renameTable", http.MethodPost, "/v1/{prefix}/tables/rename", s.renameTable},
		{"commitTransaction", http.MethodPost, "/v1/{prefix}/transactions/commit", s.commitTransaction},
	}
}

// routes is the whole route table.
func (s *server) routes() {
	s.router = chi.NewRouter()
	for _, op := range s.operations() {
		h := s.adapt(op.id, op.handle)
		s.router.Method(op.method, op.path, h)
		if short := strings.Replace(op.path, "/{prefix}", "", 1); short != op.path {
			s.router.Method(op.method, short, h)
		}
		s.endpoints = append(s.endpoints, op.method+" "+op.path)
	}
	metrics := promhttp.HandlerFor(s.config.Registry, promhttp.HandlerOpts{})
	s.router.Get("/healthz", s.adapt("health", s.health))
	s.router.Get("/readyz", s.adapt("ready", s.ready))
	s.router.Get("/metrics", s.adapt("metrics", func(w http.ResponseWriter, r *http.Request) error {
		metrics.ServeHTTP(w, r)
		return nil
	}))
	s.router.Get("/management/v1/check", s.adapt("check", s.check))
	s.router.Post("/management/v1/check", s.adapt("check", s.check))
	s.router.Post("/management/v1/backup", s.adapt("backup", s.backup))
	s.router.Get("/management/v1/transactions", s.adapt("listTransactions", s.listTransactions))
	s.router.Get("/management/v1/blocked-purges", s.adapt("listBlockedPurges", s.listBlockedPurges))
	s.router.Post("/management/v1/unfinished/{id}/retry", s.adapt("retryUnfinished", s.retryUnfinished))
	s.router.Post("/management/v1/unfinished/{id}/abort", s.adapt("abortUnfinished", s.abortUnfinished))
	s.router.NotFound(s.adapt(operationUnknown, s.noRoute))
	s.router.MethodNotAllowed(s.adapt(operationUnknown, s.noMethod))
}
