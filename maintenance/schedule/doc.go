// Package schedule records when each table is due, for each kind of job. It has two records: the
// care of a table says what is known of it, and the due index has all times in their order.
//
//	care   {pointer}                            due times, bases and outcomes, by kind
//	due    {shard}/{seconds}/{pointer}/{kind}   empty: the key says all
//	due    blocked/{pointer}/{kind}             the kind is blocked on the table, and why
//
// # What it promises
//
//   - Care and index agree: Move writes both, for one Apply that requires the care as it was read.
//   - A kind of a table has one due time at most. Evaluate moves a time only to an earlier one. So
//     a table with many commits writes nothing once its time stands.
//   - A blocked kind is not made due until somebody unblocks it.
//
// # What it must not know
//
// Documents, policies' records, and how jobs do their work.
package schedule
