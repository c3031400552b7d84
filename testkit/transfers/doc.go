// Package transfers moves amounts between tables with transactions. It then checks the readers'
// observations and the contents of the tables' files.
//
// Each table has a counter in its properties, and the sum of all counters never changes. A Client
// loads two to five tables, each from any server. It sends one request that changes some of these
// tables, or none of them. Readers load all tables, one at a time. A Recorder records requests,
// answers and times. Afterwards, a Book is read from the metadata files. For every table, it has
// the versions in order, and the transfers that made them. Judge compares the records with the
// Book:
//
//   - Every acknowledged transfer is in all its tables, once. No refused transfer is in a table. A
//     transfer with an unknown outcome is in all its tables or in none.
//   - No update is lost: each version's counter is the previous version's counter, plus the amount
//     that its transfer moves.
//   - Each transfer and each load can be explained as happening at a single moment between its
//     start and its end. A client that has seen a transfer in one table sees it in all others from
//     then on. A transfer's requirements held at its moment.
//   - The sum is correct whenever a reader loads all tables twice in succession and finds the same
//     versions both times.
//
// Because the order of each table's versions is known, Judge can decide all this exactly, and in
// linear time.
//
// The package uses only requests, answers and metadata files. It does not know how the catalog
// works.
package transfers
