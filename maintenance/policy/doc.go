// Package policy decides which maintenance a table gets, and when. It stores maintenance policies,
// and finds the policies that apply to a table.
//
// A policy belongs to a scope: the server, a warehouse, a namespace or a table. It has a status and
// settings for each type of job. The names of the settings come from Amazon S3 Tables. The value of
// a setting comes from the first of these sources that has one:
//
//	field of a ref ─ property of the table ─ policy of the table ─ of its namespace, and the
//	namespaces above it, nearest first ─ of the warehouse ─ of the server ─ default
//
// Each job is off unless a policy enables it. If a property's value cannot be parsed, the job does
// not run. The table's owner intended something by the value, and the package does not guess what.
//
// # Records
//
// Each policy is one record, with its scope in the key.
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
//   - Current is at least as new as the start of every Reload that has ended.
//   - The package never writes a policy that Asked.Check refuses.
//   - Effective, Due and Hash are pure: no I/O, no clock.
//
// # What it must not know
//
// It does not know about documents, due times in the store, or how jobs do their work.
package policy
