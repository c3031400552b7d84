package storage

import (
	"context"
	"time"
)

// Listed is a file in a listing.
type Listed struct {
	// Location is the normalised location of the file.
	Location string
	Info
}

// Page is a part of a listing.
type Page struct {
	Files []Listed
	// Next is the token of the next page, which only the store can read. It is empty on the last
	// page.
	Next string
	// Now is the present time by the clock that also sets the modification times of the files. It
	// may be a little in the past.
	Now time.Time
}

// Lister is implemented by stores that can list the files below a folder.
type Lister interface {
	// List returns at most limit regular files below folder, at any depth. after is the Next of the
	// previous page, possibly from another Store of the same files, or empty for the first page.
	// Pages before the last may also be short, or even empty. The store decides the order.
	//
	// Links are neither followed nor listed, and file systems mounted below folder are left out.
	// Files whose names no location can express are left out. Files that are made or deleted during
	// the listing may or may not be listed. A missing folder has no files.
	List(ctx context.Context, folder, after string, limit int) (Page, error)
}
