// Package transfertest moves amounts between tables by transactions. It judges what readers saw and
// what the tables' files say.
//
// Each table has a counter in its properties, and the sum of all counters never changes. A Client
// loads two to five tables, each where it likes. It sends one request that changes some of them, or
// none. Readers load all tables one after the other. A Recorder takes down what was asked, what was
// answered and when. Afterwards a Book is read from the metadata files. It says for every table
// which transfer made which version, and which version came before. Judge compares both:
//
//   - every acknowledged transfer is in all its tables, once; every refused one in none; one whose
//     outcome is unknown in all of them or in none;
//   - no update is lost: each version's counter is the counter of the one before it, plus what its
//     transfer moves;
//   - each transfer and each load has one moment, between its begin and its end, that explains all
//     of them. A client that has seen a transfer in one table sees it in all others from then on.
//     What a transfer required was so when it happened;
//   - the sum is right whenever two rounds of loads find the same versions, at the beginning and at
//     the end.
//
// As the order of the versions of each table is known, Judge decides that exactly, and in linear
// time.
//
// It looks at requests, answers and metadata files only, and must not know how the catalog works.
package transfertest
