package catalog

import (
	"moorage/catalog/commit"
	"moorage/catalog/directory"
	"moorage/catalog/documents"
	"moorage/catalog/gate"
	"moorage/metadata"
	"moorage/registry"
	"moorage/storage"
)

// kind is a kind of object that a name can have: table or view. It holds all differences between
// the two, except in the verbs themselves.
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

// kindOf returns the kind of a pointer.
func kindOf(pointer registry.Pointer) *kind {
	if pointer.View {
		return viewKind
	}
	return tableKind
}

// document is a metadata document of a table or a view.
type document = documents.Document

// clientConfig returns the configuration that a client needs to reach the files in s. It is nil if
// the client needs none.
func clientConfig(s storage.Store) map[string]string {
	if remote, ok := s.(storage.Remote); ok {
		return remote.ClientConfig()
	}
	return nil
}

// tableOf returns v, a version of a table, in the form for callers. It returns nil if v is nil.
func tableOf(v *commit.Version) *Table {
	if v == nil {
		return nil
	}
	return &Table{
		Identifier: v.Ident, MetadataLocation: v.Location, Document: v.Document.(*metadata.Document),
		Config: clientConfig(v.Storage), Registration: v.Registration, Labels: LabelText{Version: v.Labels},
		pointer: v.Pointer, found: v.Found,
	}
}

// viewOf returns v, a version of a view, in the form for callers. It returns nil if v is nil.
func viewOf(v *commit.Version) *View {
	if v == nil {
		return nil
	}
	return &View{
		Identifier: v.Ident, MetadataLocation: v.Location, Document: v.Document.(*metadata.ViewDocument),
		Config: clientConfig(v.Storage), Labels: LabelText{Version: v.Labels}, pointer: v.Pointer,
	}
}
