// Package policies keeps the records that say which maintenance is asked for. It finds those
// that are about a table.
//
// A policy belongs to a scope: the server, a warehouse, a namespace or a table. It is one record.
//
//	server          what is asked for everywhere
//	w/{warehouse}   and for a warehouse. Each change of a policy inside it rewrites this record.
//	n/{namespace}   and for a namespace, with those inside it
//	t/{pointer}     and for one table
//
// # What it promises
//
//   - A change is one Apply with a change record, whatever the scope has inside it.
//   - The conditions from Matcher.Requires fail if a policy of the warehouse has changed since the
//     matcher was made.
//   - Current is at least as new as the beginning of each Reload that has ended.
//   - Nothing is written that package policy refuses.
//
// # What it must not know
//
// When something is due, and how jobs do their work.
package policies
