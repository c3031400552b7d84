// Package adls keeps files as blobs of Azure Storage, in accounts with and without a hierarchical
// namespace. Azure calls accounts with one Data Lake Storage.
//
// It uses the REST API of blobs in the version serviceVersion. Both kinds of accounts have it, and
// so does the emulator Azurite. The API of folders (dfs) is not needed.
//
// # What it promises
//
// Create makes a blob that did not exist, and reports success only if Azure has it. It sends
// "If-None-Match: *" and an id drawn for the call, which Azure keeps with the blob:
//
//	201            it exists
//	409, 412       the name is taken. A look at the blob shows by whom: with the id of this call,
//	               an earlier try succeeded and its answer was lost; a folder is ErrNotFound, as no
//	               file can have its name; else ErrExists
//	429, 5xx, cut  tried again, with growing pauses, until the tries or the context end. Then it may
//	               exist or not, as the port specifies for every error except ErrExists
//
// Every write has the MD5 of its body, which Azure checks and keeps. A read is checked against its
// length and against that MD5. After a broken connection, reading resumes at the same offset.
//
// # Folders
//
// In a hierarchical account folders are entries. Azure creates the folders that lead to a new blob,
// and describes each as a blob without content. List, Stat and Open leave them out. Delete leaves a
// folder that is not empty. Folders that have become empty stay.
//
// # Names
//
// The name of a blob is the path of its location without the first slash. Package storage refuses
// names that Azure reads in two ways.
//
// # Where tokens go
//
// A token of an identity gives the full access of the identity. So tokens are sent only to hosts of
// Azure's storage, and to the endpoint in the settings of the process. A location or the options of
// a warehouse cannot name another host. A token is for Azure Storage, whatever a server requests in
// a 401 answer. With the key of an account no token is sent: a signature of it is valid for one
// request.
//
// # What it needs
//
// It needs the role Storage Blob Data Contributor on the containers. Vend also needs Storage Blob
// Delegator on the account.
//
// # Credentials for engines
//
// Vend signs a shared access signature for one directory with a user delegation key. The signature
// expires, is for HTTPS only, and reaches the blobs at and below the directory. Azure checks the
// signature against as many segments of a request's path as sdd counts. So a directory whose name
// begins alike is another one. Only hierarchical accounts have such signatures. In others a
// signature would give access to the whole container, so there is none: storage.ErrUnscopable.
//
// The catalog's metadata files are not protected from writers: a signature has no exceptions.
//
// # What it must not know
//
// It does not know the contents of the files.
package adls
