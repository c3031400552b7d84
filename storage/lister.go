package storage

import (
	"context"
	"time"
)

// Listed is a file that a listing found.
type Listed struct {
	// Location is the normalised location of the file.
	Location string
	Info
}

// Page is a part of a listing.
type Page struct {
	Files []Listed
	// Next asks for the next page; empty if this is the last. Only the store can read it.
	Next string
	// Now is the present time by the clock that dates the files. It may be a little in the past.
	Now time.Time
}

// Lister is implemented by stores that can tell which files are below a folder.
type Lister interface {
	// List returns regular files below folder, at any depth, at most limit of them. after is the
	// Next of the page before, also one that another Store of the same files returned; empty for
	// the first page. A page may be short, even empty, before the last. The order is the store's.
	//
	// Links are neither followed nor listed, and other file systems that are mounted below folder
	// are not looked into. What no location can name is left out. Files that are made or deleted
	// meanwhile may be listed or not. A folder that is missing has no files.
	List(ctx context.Context, folder, after string, limit int) (Page, error)
}
