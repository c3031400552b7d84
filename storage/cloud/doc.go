// Package cloud has what the storages of clouds share. Their protocols differ, and so do their
// clients; what a store decides by the answers does not.
//
//   - Client aborts requests whose server stalls. Resume reads an object despite cut connections.
//   - Roots decides which locations a store may touch.
//   - Settle decides which call wrote an object whose name is taken.
//   - Resend deletes in batches, and sends again what failed for the moment.
//   - Listing turns an answer into a page, and leaves out names that no location expresses.
//   - VendingProbe tries credentials inside and outside their scope.
//
// It must not know the protocol of a storage.
package cloud
