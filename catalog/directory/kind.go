package directory

import (
	"moorage"
	"moorage/registry"
)

// Kind is a kind of object that a name can have: table or view.
type Kind struct {
	Noun    string         // in messages
	Missing moorage.Kind   // the kind of the error for a missing object
	State   registry.State // the state of its entries
}

// The kinds.
var (
	table = &Kind{Noun: "Table", Missing: moorage.KindNoSuchTable, State: registry.StateTable}
	view  = &Kind{Noun: "View", Missing: moorage.KindNoSuchView, State: registry.StateView}
)

// Table returns the kind of tables. It always returns the same pointer.
func Table() *Kind { return table }

// View returns the kind of views. It always returns the same pointer.
func View() *Kind { return view }

// KindOf returns the kind of a pointer.
func KindOf(pointer registry.Pointer) *Kind {
	if pointer.View {
		return view
	}
	return table
}

// IsOf reports whether a pointer is of kind k.
func (k *Kind) IsOf(pointer registry.Pointer) bool { return KindOf(pointer) == k }

// Other returns the kind of views for tables, and the kind of tables for views.
func (k *Kind) Other() *Kind {
	if k == view {
		return table
	}
	return view
}

// NoSuch returns the error for a name that does not exist.
func (k *Kind) NoSuch(ident moorage.Identifier) error {
	return moorage.Errorf(k.Missing, "%s does not exist: %s", k.Noun, ident)
}

// CheckFree returns KindAlreadyExists if the entry e exists, because an object of kind k cannot be
// created at its name.
func (k *Kind) CheckFree(e Entry, ident moorage.Identifier) error {
	switch e.Record.State {
	case registry.StateNone:
		return nil
	case k.State:
		return moorage.Errorf(moorage.KindAlreadyExists, "%s already exists: %s", k.Noun, ident)
	}
	return moorage.Errorf(moorage.KindAlreadyExists, "%s with same name already exists: %s", k.Other().Noun, ident)
}
