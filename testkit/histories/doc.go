// Package histories judges the calls and answers of many clients of a catalog.
//
// Clients make calls to a few names in groups: the tables of one namespace, which are renamed only
// within it. A Recorder records each call with its answer and its place in time. Afterwards Checker
// searches for an order of all calls of a group in which a single client could have got these
// answers (linearizability). It also compares every version of a table with the version on which it
// was made.
//
// It uses only calls, answers and metadata files. It must not know how the catalog works, nor
// whether the clients call it in the same process or over HTTP.
package histories
