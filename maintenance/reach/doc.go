// Package reach knows which files the versions of a table reach, and which nobody reaches any more.
//
// Two sides meet in it. The live side is all that the present document of a table leads to: lists,
// manifests, data files, delete files, statistics, earlier metadata files. It goes into a Set,
// which may report a dead file as live, never a live file as dead. The other side is what expired
// snapshots lead to. What of it the Set does not have is doomed.
//
// # What it promises
//
//   - A file that the present document reaches is never doomed, whatever the other side says.
//   - A file of the live side that cannot be read to its end is an error, and nothing is doomed
//     then. A file of the other side that cannot be read is passed over, with all that only it
//     names.
//   - What is not within the table's claims, and metadata files, are never doomed.
//   - Memory is bounded: a Set by its constructor's argument, lists and manifests are streamed.
//
// # Why all manifests are read
//
// A shorter way reads only what was written since the oldest deletion. It relies on how each engine
// removes files that were added twice or that share a Puffin file. It is not built as long as no
// test shows that for the engines.
//
// # What it must not know
//
// It deletes nothing, and knows neither records nor jobs.
package reach
