// Package demo fills a catalog with a few sample tables, so that a newcomer has rows to read: the
// namespace harbour with the tables ships, voyages and ports, and two views.
//
// # What it promises
//
// Fill can be interrupted anywhere and called again: each step looks first whether it has been
// done. After it has ended once, it does nothing, whatever the user has changed since. Nothing it
// does is out of reach for a client: files in the storage of the warehouse, and ordinary commits.
// It needs no network.
//
// The data files are embedded. demo/make.py makes them, and the metrics of them in files.json. Only
// the file of position deletes is written here, because it contains the location of the data file.
package demo
