package history

// Waits returns how many requests wait.
func (f *Feed) Waits() int {
	f.follower.mu.Lock()
	defer f.follower.mu.Unlock()
	return f.follower.waits
}

// WaitsMax is how many requests may wait.
const WaitsMax = waitsMax
