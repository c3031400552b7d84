// Package ascode describes the set-up of a catalog in YAML files, and plans the steps that bring a
// server to what the files describe. It is pure: it reads no server and no environment.
//
// Files describe warehouses, namespaces, roles, grants, owners and maintenance policies, and
// protection, labels and properties of tables. Decode reads files into a Catalog. Catalog.World
// takes it apart into facts, such as one property, one privilege of one grantee, or one member of a
// role. Make compares the facts of the files with the facts of a server:
//
//	files ── Decode ──► Catalog ── World ──┐
//	                                       ├──► Make ──► Plan: steps, in their order
//	server ── package live ───────► World ─┘
//	                                   │
//	                                   └── CatalogOf ──► Encode ──► a file
//
// # What it promises
//
//   - A plan whose steps are made brings the server to what the files describe: TestPlanReaches.
//     The next plan has no steps then.
//   - Each step can be repeated, and a plan that was interrupted can be made again:
//     TestPlanAfterInterruption.
//   - No step takes the right of an administrator from the caller, unless Options.GiveUp permits
//     it; then the steps that do are the last ones: TestNoStepLocksOut.
//   - No step makes roles contain themselves, or too many roles contain each other, on the way to
//     roles that do not: TestMembershipsThatChangePlaces.
//   - No step creates or drops a table or view, or a namespace or warehouse that has one:
//     TestTablesStay.
//   - What only the server has stays, unless Options.Prune removes it: TestKept.
//   - An unknown key of a file is an error with its file and line, and the nearest known key:
//     TestDecodeFaults.
//   - Encode writes equal catalogs as equal bytes, and Decode reads them back: TestEncodeDecode.
//
// # What it must not know
//
// It knows no HTTP, no client, and no secret: a file names the environment variables that have the
// secrets of a storage.
package ascode
