// Package adls keeps files as blobs of Azure Storage: in accounts with a hierarchical namespace,
// which Azure calls Data Lake Storage, and in those without.
//
// It speaks the REST API of blobs in the version that serviceVersion names. Both kinds of accounts
// have it, and so does the emulator Azurite. The API of folders (dfs) is not needed.
//
// # What it promises
//
// Create makes a blob that was not there, and reports success only if Azure has it. It sends
// "If-None-Match: *" and an id that it draws for the call, which Azure keeps with the blob:
//
//	201            it is there
//	409, 412       the name is taken. A look at the blob shows by whom: with the id of this call,
//	               an earlier try succeeded and its answer was lost; a folder is ErrNotFound, as no
//	               file can have its name; else ErrExists
//	429, 5xx, cut  tried again, with growing pauses, until the tries or the context end. Then it may
//	               be there or not, as the port says of every error except ErrExists
//
// Every write carries the MD5 of its body, which Azure checks and keeps. A read is checked against
// its length and against that MD5. After a cut connection, reading goes on where it was.
//
// # Folders
//
// In a hierarchical account folders are entries. Azure makes those that lead to a new blob, and
// answers like a blob without content for each; List, Stat and Open leave them out. Delete leaves a
// folder that is not empty. Folders that have become empty stay.
//
// # Names
//
// The name of a blob is the path of its location without the first slash. Package storage refuses
// names that Azure reads in two ways.
//
// # Where tokens go
//
// A token of an identity opens all that the identity may do. So tokens are sent to hosts of Azure's
// storage only, and to the endpoint that the settings of the process name. A location or the
// options of a warehouse cannot name another host. A token is for Azure Storage, whatever a server
// asks for in an answer of 401. With the key of an account no token is sent: a signature of it is
// good for one request.
//
// # What it needs
//
// The role Storage Blob Data Contributor on the containers. Vend needs Storage Blob Delegator on
// the account besides.
//
// # Credentials for engines
//
// Vend signs a shared access signature for one directory with a user delegation key: it ends, is
// for HTTPS only, and reaches what is at and below the directory. Azure takes the segments of a
// request's path that sdd counts, and checks the signature over just these. So a directory whose
// name begins alike is another one. Only hierarchical accounts have such signatures. In others a
// signature would open the whole container, so there is none: storage.ErrUnscopable.
//
// The catalog's metadata files are not protected from writers: a signature has no exceptions.
//
// # What it must not know
//
// What is in the files.
package adls
