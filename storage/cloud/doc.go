// Package cloud holds code shared by the storages of clouds. Their protocols and clients differ,
// but the answers lead to the same decisions.
//
//   - Client aborts requests whose server stalls. Resume reads an object despite cut connections.
//   - Roots decides which locations a store may touch.
//   - Settle finds out which call wrote an object whose name is taken.
//   - Resend deletes in batches, and repeats deletions that failed temporarily.
//   - Listing turns an answer into a page, and leaves out names that no location can express.
//   - VendingProbe tries credentials inside and outside their scope.
//
// The package does not know the protocol of any storage.
package cloud
