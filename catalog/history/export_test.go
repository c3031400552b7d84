package history

import "moorage/registry"

// Kept returns the changes that a follower keeps of those that it read, and their weight in bytes.
func Kept(read []registry.PositionedChange) (kept []registry.PositionedChange, bytes int) {
	f := newFollower(Config{})
	f.add(read)
	return f.kept, f.bytes
}

// KeptMax and KeptBytesMax bound what a follower keeps.
const (
	KeptMax      = keptMax
	KeptBytesMax = keptBytesMax
)

// Waits returns how many requests wait.
func (f *Feed) Waits() int {
	f.follower.mu.Lock()
	defer f.follower.mu.Unlock()
	return f.follower.waits
}

// WaitsMax is how many requests may wait.
const WaitsMax = waitsMax
