// Package demo fills a catalog with a few sample tables, so that a newcomer has rows to read. It
// makes the namespace harbour with the tables ships, voyages and ports, and two views.
//
// # What it promises
//
// Fill can be interrupted anywhere and called again, because each step first checks whether it has
// been done. Once Fill has completed, later calls do nothing, whatever the user has changed since.
// It only writes files to the storage of the warehouse, and makes ordinary commits, as any client
// could. It needs no network.
//
// The data files are embedded. demo/make.py makes them, and their metrics in files.json. Only the
// file of position deletes is made by this package, because it contains the location of a data
// file.
package demo
