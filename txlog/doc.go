// Package txlog is the log of transactions: operations of several steps that take effect at one
// moment. It keeps a record of each transaction, from before the first file is written until all
// work is done. Package recovery ends the transactions whose coordinator did not finish.
//
// # The states
//
//	          Begin                 Commit                      Finish
//	(none) ──────────▶ PENDING ───────────────▶ COMMITTED ──────────────────▶ (none)
//	                   │  ▲  │   with surplus
//	            Extend └──┘  │       Commit
//	                         ├────────────────────────────────────────────▶ (none)
//	                         │   without surplus
//	                         │       Abort                      Finish
//	                         └─────────────────▶ ABORTED ──────────────────▶ (none)
//
//	PENDING    the coordinator writes files; readers see none of them
//	COMMITTED  it took effect; its surplus, the files of its earlier tries, must still be deleted
//	ABORTED    it can no longer take effect; all its files must still be deleted
//	(none)     it did not begin, or is done: its change record shows whether it took effect
//
// A record is deleted as soon as all work is done. So the log is the list of unfinished work, and
// reading it stays cheap, however many transactions are made.
//
// # What it promises
//
// The record lists a file before the file is written. Every step requires that the record still has
// the version that the previous step wrote. So writing ABORTED makes the coordinator's remaining
// steps fail, including Commit. This is called fencing. It does not require knowing whether the
// coordinator is alive. If the coordinator wakes up late, its next step fails.
//
// Commit returns a condition and a write, which the caller adds to the one Apply that moves the
// pointers.
//
// Recovery deletes the files that were recorded and not published. It cannot rely on the pointers,
// because after a later commit, a published file may remain only in a table's metadata log. This is
// correct only if no two transactions ever use the same file name, and no transaction begins twice.
// So if the outcome of Begin is unknown, the caller must discard the id and the file names and draw
// new ones. The record may still appear later, and recovery would roll back its transaction.
//
// A record that is damaged or of a later version does not delay other transactions. No step changes
// it, because its files and the state of its coordinator are unknown.
//
// # What it must not know
//
// It does not know about files, locks and tables.
package txlog
