// Package console is the part of the server that a person opens in a browser, below /console/.
//
// The console has no power of its own. It gets all its data, and makes all changes, through the
// operations of package management and of the Iceberg REST specification. A request to the console
// becomes requests to the server's own routes, with the credential and the address of the visitor.
// So access control, the audit log, limits and errors are the API's own.
//
// A page is a pure function of a model to HTML (a method node of the model). The function that
// loads the model asks the API. Every page works without a script: scripts sort, filter, copy and
// refresh. GET changes nothing. Names, properties and SQL are hostile text: html.go is the only
// file that may write a value into HTML unescaped, and link.go the only one that makes addresses.
//
// It must not know catalogs, stores or files.
package console
