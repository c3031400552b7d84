// Package policies keeps the records of maintenance policies, and finds the policies that apply to
// a table.
//
// A policy belongs to a scope: the server, a warehouse, a namespace or a table. Each policy is one
// record.
//
//	server          applies to all tables
//	w/{warehouse}   applies to a warehouse. Each change of a policy inside rewrites this record.
//	n/{namespace}   applies to a namespace and the namespaces inside it
//	t/{pointer}     applies to one table
//
// # What it promises
//
//   - A change is one Apply with a change record, however much the scope contains.
//   - The conditions from Policies.ConditionsFor fail if a policy of the warehouse has changed
//     since the matcher was made.
//   - Current is at least as new as the beginning of each Reload that has ended.
//   - The package writes nothing that package policy refuses.
//
// # What it must not know
//
// When something is due, and how jobs do their work.
package policies
