// Package schedule records when each table is due, for each kind of job. It has two kinds of
// records: the care record of a table has its state, and the due index has all due times in order.
//
//	care   {pointer}                            due times, bases and outcomes, by kind
//	due    {shard}/{seconds}/{pointer}/{kind}   empty: the key has everything
//	due    blocked/{pointer}/{kind}             the kind is blocked on the table, and why
//
// # What it promises
//
//   - Care and index agree: Move writes both, in one Apply that requires an unchanged care record.
//   - A kind of a table has at most one due time. Evaluate moves a time only to an earlier one. So
//     a table with many commits writes nothing once its time is set.
//   - A blocked kind is not made due until an operator unblocks it.
//
// # What it must not know
//
// Documents, policies' records, and how jobs do their work.
package schedule
