// Package transfers moves amounts between tables by transactions. It judges what readers saw and
// what the tables' files contain.
//
// Each table has a counter in its properties, and the sum of all counters never changes. A Client
// loads two to five tables, each from any server. It sends one request that changes some of them,
// or none. Readers load all tables one after the other. A Recorder records requests, answers and
// times. Afterwards a Book is read from the metadata files. It has for every table the versions in
// their order, with the transfers that made them. Judge compares both:
//
//   - Every acknowledged transfer is in all its tables, once. Every refused transfer is in none. A
//     transfer whose outcome is unknown is in all of them or in none.
//   - No update is lost: each version's counter is the previous version's counter, plus what its
//     transfer moves.
//   - Each transfer and each load has one moment, between its begin and its end, that explains all
//     of them. A client that has seen a transfer in one table sees it in all others from then on. A
//     transfer's requirements held when it happened.
//   - The sum is right whenever two rounds of loads find the same versions, at the beginning and at
//     the end.
//
// As the order of the versions of each table is known, Judge decides that exactly, and in linear
// time.
//
// It uses only requests, answers and metadata files, and must not know how the catalog works.
package transfers
