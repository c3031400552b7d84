package catalog

import (
	"context"

	"moorage"
	"moorage/catalog/gate"
	"moorage/catalog/warehouses"
)

// Verbs has the verbs on namespaces, tables and views. *Catalog implements it.
type Verbs interface {
	Files

	// Refuse refuses a request for v that could not be decoded. why is the error. See
	// Catalog.Refuse.
	Refuse(ctx context.Context, v gate.Verb, on moorage.Identifier, why error) error
	// Sees reports whether a warehouse is visible to the caller of a request for v.
	Sees(ctx context.Context, v gate.Verb, warehouse string) (bool, error)
	// Admit returns an error if a warehouse is hidden from the caller of a request for v. Call it
	// before reading the rest of the request.
	Admit(ctx context.Context, v gate.Verb, warehouse string) error
	LoadWarehouse(ctx context.Context, name string) (warehouses.Warehouse, error)
	CreateNamespace(ctx context.Context, warehouse string, ns moorage.Namespace, properties map[string]string) (
		map[string]string, error)
	ListNamespaces(ctx context.Context, warehouse string, parent moorage.Namespace, page moorage.Page) (
		[]moorage.Namespace, string, error)
	LoadNamespace(ctx context.Context, warehouse string, ns moorage.Namespace) (map[string]string, error)
	DropNamespace(ctx context.Context, warehouse string, ns moorage.Namespace) error
	UpdateNamespaceProperties(ctx context.Context, warehouse string, ns moorage.Namespace,
		change PropertiesChange) (PropertiesResult, error)
	ListTables(ctx context.Context, warehouse string, ns moorage.Namespace, page moorage.Page) ([]string, string, error)
	CreateTable(ctx context.Context, ident moorage.Identifier, asked CreateTableRequest) (*Table, error)
	LoadTable(ctx context.Context, ident moorage.Identifier, through ...moorage.Identifier) (*Table, error)
	TableExists(ctx context.Context, ident moorage.Identifier) error
	ReportMetrics(ctx context.Context, ident moorage.Identifier) error
	Commit(ctx context.Context, ident moorage.Identifier, asked CommitRequest) (*Table, error)
	CommitTransaction(ctx context.Context, warehouse string, changes []TableChange) error
	DropTable(ctx context.Context, ident moorage.Identifier, options DropOptions) error
	RenameTable(ctx context.Context, from, to moorage.Identifier) error
	RegisterTable(ctx context.Context, ident moorage.Identifier, asked RegisterRequest) (*Table, error)
	UnregisterTable(ctx context.Context, ident moorage.Identifier) (*Table, error)
	ListViews(ctx context.Context, warehouse string, ns moorage.Namespace, page moorage.Page) ([]string, string, error)
	CreateView(ctx context.Context, ident moorage.Identifier, asked CreateViewRequest) (*View, error)
	LoadView(ctx context.Context, ident moorage.Identifier, through ...moorage.Identifier) (*View, error)
	ViewExists(ctx context.Context, ident moorage.Identifier) error
	ReplaceView(ctx context.Context, ident moorage.Identifier, asked ReplaceViewRequest) (*View, error)
	DropView(ctx context.Context, ident moorage.Identifier) error
	RenameView(ctx context.Context, from, to moorage.Identifier) error
	RegisterView(ctx context.Context, ident moorage.Identifier, metadataLocation string) (*View, error)
}
