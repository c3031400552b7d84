// Package histories judges the calls and answers of many clients of a catalog.
//
// Clients make calls to a few names in groups: the tables of one namespace, which are renamed only
// within it. A Recorder records each call with its answer, and with the times when it began and
// ended. Afterwards, a Checker searches for an order of a group's calls in which a single client
// could have got these answers (linearizability). It also compares every version of a table with
// the previous version.
//
// The package uses only calls, answers and metadata files. It does not know how the catalog works,
// or whether the clients call it in the same process or over HTTP.
package histories
