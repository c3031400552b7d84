// Package reach finds the files that the versions of a table reach, and the files that no version
// reaches any more.
//
// It compares two sides. The live side is everything that the present document of a table leads to:
// lists, manifests, data files, delete files, statistics, and earlier metadata files. It goes into
// a Set, which may report a dead file as live, but never a live file as dead. The other side is
// everything that expired snapshots lead to. What the Set does not have of it is doomed.
//
// # What it promises
//
//   - A file that the present document reaches is never doomed, whatever the other side contains.
//   - If a file of the live side cannot be read to its end, that is an error, and nothing is
//     doomed. A file of the other side that cannot be read is skipped, with all files that only it
//     names.
//   - Files outside the table's claims, and metadata files, are never doomed.
//   - Memory is bounded: a Set by its constructor's argument. Lists and manifests are streamed.
//
// # Why all manifests are read
//
// A shorter way would read only what was written since the oldest deletion. It depends on how each
// engine removes files that were added twice, or that share a Puffin file. It is not built as long
// as no test proves that for the engines.
//
// # What it must not know
//
// It deletes nothing, and knows neither records nor jobs.
package reach
