// Package transfer brings the tables and views of one catalog into another: names, namespaces with
// their properties, and the locations of metadata files. No file of a table is copied or changed.
//
// It promises:
//
//   - A plan comes first, and changes nothing: TestPlanChangesNothing.
//   - An object arrives as it was at the source, with the same metadata file, or the result names
//     it: TestImportEverything, TestVerifyFindsEachDifference.
//   - A run that is killed at any point can be repeated with its journal, and has the same result:
//     TestImportKilled.
//   - A mirror follows the source until the cut-over, and loses no commit that the source
//     acknowledged: TestCutoverLosesNothing.
//
// A Source lists and loads, a Target checks and registers. The package must not know stores, files
// or the parts of a server: it calls catalogs over HTTP, and package transfer/sqlcatalog reads
// tables of a database.
package transfer
