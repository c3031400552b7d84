package jobs

import (
	"context"
	"slices"

	"moorage/registry"
	"moorage/storage"
)

const (
	// claimedMax is how many folders are remembered, and keysMax how many are asked for at a time.
	claimedMax = 100_000
	keysMax    = 500
)

// claimed knows which folders tables and views live in, or lived in before they were dropped.
type claimed struct {
	jobs  *Jobs
	known map[string]bool
}

func newClaimed(j *Jobs) *claimed { return &claimed{j, make(map[string]bool)} }

// unclaimed returns those of files that lie in no such folder. A file whose location cannot be read
// is none of them.
func unclaimed[T any](ctx context.Context, c *claimed, files []T, locationOf func(T) string) ([]T, error) {
	if len(c.known) > claimedMax {
		clear(c.known)
	}
	folders := make([][]string, len(files))
	var missing []registry.Key
	for i, file := range files {
		place, err := storage.Parse(locationOf(file))
		if err != nil {
			continue
		}
		folders[i] = []string{}
		for _, folder := range place.Ancestors() {
			text := folder.String()
			if len(text) > registry.KeyBytesMax {
				continue // nobody can claim it
			}
			if folders[i] = append(folders[i], text); !c.has(text) {
				missing = append(missing, registry.LocationKey(text))
			}
		}
	}
	for part := range slices.Chunk(missing, keysMax) {
		records, err := c.jobs.ledger.Get(ctx, part...)
		if err != nil {
			return nil, err
		}
		for _, record := range records {
			c.known[record.Key.ID] = record.Exists() && record.State == registry.StateOwner
		}
	}
	free := make([]T, 0, len(files))
	for i, file := range files {
		if folders[i] != nil && !slices.ContainsFunc(folders[i], func(folder string) bool { return c.known[folder] }) {
			free = append(free, file)
		}
	}
	return free, nil
}

// has reports whether it is known, or asked for already, who lives in a folder.
func (c *claimed) has(folder string) bool {
	_, known := c.known[folder]
	if !known {
		c.known[folder] = false
	}
	return known
}
