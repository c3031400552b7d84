// Package adls keeps files as blobs of Azure Storage, in accounts with and without a hierarchical
// namespace. Azure calls an account with a hierarchical namespace Data Lake Storage.
//
// It uses version serviceVersion of the REST API for blobs. Both kinds of accounts and the emulator
// Azurite support this API. The package does not need the API for folders (dfs).
//
// # What it promises
//
// Create makes a blob that did not exist. It reports success only if Azure has stored the blob. It
// sends "If-None-Match: *" and an id drawn for the call, which Azure keeps with the blob:
//
//	201            it exists
//	409, 412       the name is taken. Create reads the blob's id. If it is the id of this call, an
//	               earlier try succeeded and its answer was lost. A folder leads to ErrNotFound,
//	               since no file can have its name. Otherwise Create returns ErrExists
//	429, 5xx, cut  tried again, with growing pauses, until the tries are used up or the context
//	               ends. Whether the blob exists is then unknown, as storage.Store specifies for
//	               every error except ErrExists
//
// Every write has the MD5 of its body, which Azure checks and keeps. Each read is checked against
// the blob's length and that MD5. After a broken connection, reading resumes at the same offset.
//
// # Folders
//
// In a hierarchical account, folders exist in their own right. Azure creates the folders that lead
// to a new blob, and shows each as a blob without content. List, Stat and Open ignore them. Delete
// leaves a folder that is not empty. Folders that have become empty stay.
//
// # Names
//
// The name of a blob is the path of its location without the first slash. Package storage refuses
// names that Azure could interpret in two ways.
//
// # Where tokens go
//
// A token gives all the access that the identity has. So the package sends tokens only to hosts of
// Azure's storage, and to the endpoint in the settings of the process. A location or the options of
// a warehouse cannot name another host. The package requests tokens for Azure Storage only,
// whatever a server demands in a 401 answer. With the key of an account, it sends no token. It
// sends a signature made with the key, which is valid for one request.
//
// # What it needs
//
// It needs the role Storage Blob Data Contributor on the containers. Vend also needs Storage Blob
// Delegator on the account.
//
// # Credentials for engines
//
// Vend signs a shared access signature for one directory with a user delegation key. The signature
// expires, is for HTTPS only, and reaches the blobs at and below the directory. The parameter sdd
// has the number of segments in the directory's path. Azure compares that many whole segments of a
// request's path. So the signature does not reach a sibling whose name begins with the directory's
// name. Only hierarchical accounts support such signatures. In other accounts a signature would
// give access to the whole container, so Vend returns storage.ErrUnscopable.
//
// An engine that may write can also change the catalog's metadata files, because a signature cannot
// exclude files.
//
// # What it must not know
//
// It does not know the contents of files.
package adls
