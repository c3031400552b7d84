// Package live reads the facts of package ascode from a server, and makes the steps of a plan
// there.
//
// It uses the operations of the management API and of the Iceberg REST specification, with the
// rights of its caller, and has no power of its own.
//
// # What it promises
//
//   - Before each step Make reads what the step changes. If that is no longer what the plan was
//     made for, it makes nothing, and returns a Conflict. What is already as wanted is left alone,
//     so a step can be repeated. A step that removes an object removes it as it is then: the server
//     refuses if the object is protected or has something in it.
//   - What others change in a role, an owner, labels, a policy of maintenance or the settings of a
//     warehouse after that read is not lost: the server compares the ETag, and Make returns a
//     Conflict.
//   - Before a step that removes grants on the server, members or roles, Make reads all roles. If
//     the step would now take the caller's right as an administrator, Make returns a Conflict,
//     unless Server.GivesUp permits it.
//   - A secret comes from Server.Secret, and goes into the body of one request. No error has it.
//
// cmd/moorage tests it against real servers: TestAsCode, TestAsCodeKeepsWhatOthersChange and
// TestAsCodeOfALargeCatalog.
package live
