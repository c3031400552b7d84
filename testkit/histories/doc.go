// Package histories judges the calls and answers of many clients of a catalog.
//
// Clients make calls to a few names in groups: the tables of one namespace, which are renamed only
// within it. A Recorder records each call with its answer, and with the times when it began and
// ended. Afterwards a Checker searches for an order of all calls of a group in which one client
// alone could have got these answers (linearizability). It also compares every version of a table
// with the version on which it was made.
//
// The package uses only calls, answers and metadata files. It must not know how the catalog works,
// nor whether the clients call the catalog in the same process or over HTTP.
package histories
