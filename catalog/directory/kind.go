package directory

import (
	"moorage"
	"moorage/registry"
)

// Kind is what a name may stand for.
type Kind struct {
	Noun    string         // in messages
	Missing moorage.Kind   // of the error if there is none of a name
	State   registry.State // of its entries
}

// The kinds.
var (
	table = &Kind{Noun: "Table", Missing: moorage.KindNoSuchTable, State: registry.StateTable}
	view  = &Kind{Noun: "View", Missing: moorage.KindNoSuchView, State: registry.StateView}
)

// Table returns the kind of tables, always the same pointer.
func Table() *Kind { return table }

// View returns the kind of views, always the same pointer.
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

// Other returns the kind that k is not.
func (k *Kind) Other() *Kind {
	if k == view {
		return table
	}
	return view
}

// NoSuch returns the error that says that there is none of the name.
func (k *Kind) NoSuch(ident moorage.Identifier) error {
	return moorage.Errorf(k.Missing, "%s does not exist: %s", k.Noun, ident)
}

// CheckFree returns KindAlreadyExists if e is an entry, so that none of kind k can be made there.
func (k *Kind) CheckFree(e Entry, ident moorage.Identifier) error {
	switch e.Record.State {
	case registry.StateNone:
		return nil
	case k.State:
		return moorage.Errorf(moorage.KindAlreadyExists, "%s already exists: %s", k.Noun, ident)
	}
	return moorage.Errorf(moorage.KindAlreadyExists, "%s with same name already exists: %s", k.Other().Noun, ident)
}
