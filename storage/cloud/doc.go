// Package cloud has the common code of the storages of clouds. Their protocols and clients differ,
// but a store makes the same decisions from the answers.
//
//   - Client aborts requests whose server stalls. Resume reads an object despite cut connections.
//   - Roots decides which locations a store may touch.
//   - Settle decides which call wrote an object whose name is taken.
//   - Resend deletes in batches, and repeats deletions that failed temporarily.
//   - Listing turns an answer into a page, and leaves out names that no location expresses.
//   - VendingProbe tries credentials inside and outside their scope.
//
// The package must not know the protocol of a storage.
package cloud
