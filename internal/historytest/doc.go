// Package historytest judges what many clients of a catalog saw.
//
// Clients make calls to a few names, which stand in groups: the tables of one namespace, which are
// renamed within it only. Each call is taken down with its answer and its place in time. Afterwards
// Checker looks for an order of all calls of a group in which a single client could have got these
// answers (linearizability). It also compares every version of a table with the one on which it was
// made.
//
// It looks at calls, answers and metadata files only. It must not know how the catalog works, nor
// whether the clients call it in the same process or over HTTP.
package historytest
