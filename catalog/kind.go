package catalog

import (
	"moorage/catalog/commit"
	"moorage/catalog/directory"
	"moorage/catalog/documents"
	"moorage/catalog/gate"
	"moorage/metadata"
	"moorage/storage"
)

// kind is a kind of object that a name can have. It holds all differences between tables and views
// below their verbs.
type kind struct {
	*directory.Kind
	create, register, drop, rename, list gate.Verb
}

// The kinds. They are never written to.
var (
	tableKind = &kind{
		Kind:   directory.Table(),
		create: gate.CreateTable, register: gate.Register, drop: gate.DropTable, rename: gate.Rename,
		list: gate.ListTables,
	}
	viewKind = &kind{
		Kind:   directory.View(),
		create: gate.CreateView, register: gate.RegisterView, drop: gate.DropView, rename: gate.RenameView,
		list: gate.ListViews,
	}
)

// document is a metadata document of a table or a view.
type document = documents.Document

// clientConfig returns the configuration that a client needs to reach the files in s; nil if it
// needs none.
func clientConfig(s storage.Store) map[string]string {
	if remote, ok := s.(storage.Remote); ok {
		return remote.ClientConfig()
	}
	return nil
}

// tableOf returns v, which must be of a table, in the form for callers; nil for nil.
func tableOf(v *commit.Version) *Table {
	if v == nil {
		return nil
	}
	return &Table{
		Identifier: v.Ident, MetadataLocation: v.Location, Document: v.Document.(*metadata.Document),
		Config: clientConfig(v.Storage), Registration: v.Registration, pointer: v.Pointer, found: v.Found,
	}
}

// viewOf returns v, which must be of a view, in the form for callers; nil for nil.
func viewOf(v *commit.Version) *View {
	if v == nil {
		return nil
	}
	return &View{
		Identifier: v.Ident, MetadataLocation: v.Location, Document: v.Document.(*metadata.ViewDocument),
		Config: clientConfig(v.Storage), pointer: v.Pointer,
	}
}
