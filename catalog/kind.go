package catalog

import (
	"moorage"
	"moorage/catalog/directory"
	"moorage/catalog/documents"
	"moorage/metadata"
	"moorage/registry"
	"moorage/storage"
)

// kind is what a name may stand for. It holds everything in which tables and views differ below
// their verbs.
type kind struct {
	*directory.Kind
	create, register, drop, rename, commit, commitContended Operation
}

// The kinds. A view's files are compressed by default.
// Source: Java TableProperties, ViewProperties.
var (
	aTable = &kind{
		Kind:   directory.Table(),
		create: OpCreateTable, register: OpRegister, drop: OpDropTable, rename: OpRename,
		commit: OpCommit, commitContended: OpCommitContended,
	}
	aView = &kind{
		Kind:   directory.View(),
		create: OpCreateView, register: OpRegisterView, drop: OpDropView, rename: OpRenameView,
		commit: OpReplace, commitContended: OpReplaceContended,
	}
)

// kindOf returns the kind of a pointer.
func kindOf(pointer registry.Pointer) *kind {
	if pointer.View {
		return aView
	}
	return aTable
}

// document is a metadata document of a table or a view.
type document = documents.Document

// version is one version of a table or view, as loads and mutations answer it.
type version struct {
	ident    moorage.Identifier
	pointer  registry.ID // zero for a staged table
	location string      // of the metadata file; empty for a staged table, which has none
	document document
	storage  storage.Store // that the files are in
	// registration is that of the pointer; zero if it is not known any more.
	registration registry.ID
}

// newVersion returns the version of ident that r names, which is in document.
func newVersion(r *directory.Found, ident moorage.Identifier, document document) *version {
	return &version{ident, r.Pointer.ID, r.Pointer.MetadataLocation, document, r.Storage, r.Pointer.Registration}
}

// clientConfig returns what a client must know to reach the files in s; nil for nothing.
func clientConfig(s storage.Store) map[string]string {
	if remote, ok := s.(storage.Remote); ok {
		return remote.ClientConfig()
	}
	return nil
}

// table returns v, which must be of a table, as callers get it; nil for nil.
func (v *version) table() *Table {
	if v == nil {
		return nil
	}
	return &Table{
		Identifier: v.ident, MetadataLocation: v.location, Document: v.document.(*metadata.Document),
		Config: clientConfig(v.storage), Registration: v.registration, pointer: v.pointer,
	}
}

// view returns v, which must be of a view, as callers get it; nil for nil.
func (v *version) view() *View {
	if v == nil {
		return nil
	}
	return &View{
		Identifier: v.ident, MetadataLocation: v.location, Document: v.document.(*metadata.ViewDocument),
		Config: clientConfig(v.storage), pointer: v.pointer,
	}
}

// outcome returns v as what a mutation answers.
func (v *version) outcome() Outcome {
	if _, ok := v.document.(*metadata.ViewDocument); ok {
		return Outcome{View: v.view()}
	}
	return Outcome{Table: v.table()}
}
