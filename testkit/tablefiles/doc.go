// Package tablefiles makes the files of tables for tests. A History has snapshots with real
// manifest lists and manifests in a store, and a model of the files that each snapshot reaches.
// HostileList and HostileManifest make what a hostile client stores: small on disk and large in
// memory.
package tablefiles
