// Package tablefiles makes the files of tables for tests. A History has snapshots with real
// manifest lists and manifests in a store, and a model of the files that each snapshot reaches.
// HostileList and HostileManifest make files that a hostile client might store: they are small on
// disk and large in memory.
package tablefiles
