// Package policy defines which maintenance a table gets, and when. It is pure: no I/O, no clock.
//
// A policy belongs to a scope: the server, a warehouse, a namespace or a table. It has a status and
// settings for each type of job. The names of the settings come from Amazon S3 Tables. Each value
// comes from the first of these sources that has one:
//
//	field of a ref ─ property of the table ─ policy of the table ─ of its namespace, and the
//	namespaces above it, nearest first ─ of the warehouse ─ of the server ─ default
//
// Each job is off unless a policy enables it. A property whose value cannot be read holds the job
// back, because the table's owner intended something by it. The package guesses no other value.
//
// # What it must not know
//
// Records, documents, or how a job does its work.
package policy
