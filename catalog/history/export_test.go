package history

import "moorage/registry"

// Kept returns the positions of the changes that a follower keeps after it has read some changes,
// and their weight in bytes.
func Kept(read []registry.PositionedChange) (kept []registry.Position, bytes int) {
	f := newFollower(Config{})
	f.add(placedOf(read))
	for _, each := range f.kept {
		kept = append(kept, each.position)
	}
	return kept, f.bytes
}

// KeptMax and KeptBytesMax bound the changes that a follower keeps.
const (
	KeptMax      = keptMax
	KeptBytesMax = keptBytesMax
)

// Waits returns the number of waiting requests.
func (f *Feed) Waits() int {
	f.follower.mu.Lock()
	defer f.follower.mu.Unlock()
	return f.follower.waits
}

// WaitsMax is the maximum number of waiting requests.
const WaitsMax = waitsMax
