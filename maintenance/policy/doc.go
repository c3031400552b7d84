// Package policy says what maintenance a table is to have, and when. It is pure: no I/O, no clock.
//
// A policy belongs to a scope: the server, a warehouse, a namespace or a table. It has a status and
// settings for each type of job, which are called as Amazon S3 Tables calls them. Each value comes
// from the first of these that says something:
//
//	field of a ref ─ property of the table ─ policy of the table ─ of its namespace, and those
//	above it, nearest first ─ of the warehouse ─ of the server ─ default
//
// A setting that nobody switched on is off. A value of a property that cannot be read holds the job
// back, because its owner meant something by it. No other value is guessed in its place.
//
// # What it must not know
//
// Records, documents, or how a job does its work.
package policy
