// Package transfers moves amounts between tables with transactions. It then checks what readers saw
// and what the tables' files contain.
//
// Each table has a counter in its properties, and the sum of all counters never changes. A Client
// loads two to five tables, each from any server. It sends one request that changes some of these
// tables, or none of them. Readers load all tables one after the other. A Recorder records
// requests, answers and times. Afterwards a Book is read from the metadata files. For every table
// it has the versions in their order, and the transfers that made them. Judge compares the records
// with the Book:
//
//   - Every acknowledged transfer is in all its tables, once. No refused transfer is in a table. A
//     transfer whose outcome is unknown is in all its tables or in none.
//   - No update is lost: each version's counter is the previous version's counter, plus what its
//     transfer moves.
//   - For each transfer and each load there is one moment, between its begin and its end, at which
//     it can have happened. A client that has seen a transfer in one table sees it in all others
//     from then on. The requirements of a transfer held at its moment.
//   - The sum is right whenever a reader loads all tables twice in succession and finds the same
//     versions both times.
//
// Because the order of each table's versions is known, Judge decides that exactly, and in linear
// time.
//
// The package uses only requests, answers and metadata files, and must not know how the catalog
// works.
package transfers
