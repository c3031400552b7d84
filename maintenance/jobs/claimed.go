package jobs

import (
	"context"
	"slices"

	"moorage/registry"
	"moorage/storage"
)

const (
	// claimedMax is the maximum number of folders that one value of type claimed remembers. keysMax
	// is the number of keys that it reads at a time.
	claimedMax = 100_000
	keysMax    = 500
)

// claimed finds out which folders are locations of tables and views, including dropped ones. It
// caches each answer. For the current state, create a new claimed.
type claimed struct {
	jobs  *Jobs
	known map[string]bool
}

func newClaimed(j *Jobs) *claimed { return &claimed{j, make(map[string]bool)} }

// free returns the files that are in no folder of a table or view, in the given order. It omits a
// file whose location cannot be parsed.
func (c *claimed) free(ctx context.Context, files []storage.Listed) ([]storage.Listed, error) {
	if len(c.known) > claimedMax {
		clear(c.known)
	}
	above := make([][]string, len(files)) // nil for a location that cannot be parsed
	missing := make(map[string]bool)
	for i, file := range files {
		place, err := storage.ParseFile(file.Location)
		if err != nil {
			continue
		}
		above[i] = []string{}
		for _, folder := range place.Ancestors() {
			text := folder.String()
			if len(text) > registry.KeyBytesMax {
				continue // no table can claim it
			}
			above[i] = append(above[i], text)
			if _, known := c.known[text]; !known {
				missing[text] = true
			}
		}
	}
	if err := c.ask(ctx, missing); err != nil {
		return nil, err
	}
	free := make([]storage.Listed, 0, len(files))
	for i, file := range files {
		if above[i] != nil && !slices.ContainsFunc(above[i], func(folder string) bool { return c.known[folder] }) {
			free = append(free, file)
		}
	}
	return free, nil
}

// ask reads from the store whether folders are claimed.
func (c *claimed) ask(ctx context.Context, missing map[string]bool) error {
	keys := make([]registry.Key, 0, len(missing))
	for folder := range missing {
		keys = append(keys, registry.LocationKey(folder))
	}
	for part := range slices.Chunk(keys, keysMax) {
		records, err := c.jobs.ledger.Get(ctx, part...)
		if err != nil {
			return err
		}
		for _, record := range records {
			c.known[record.Key.ID] = record.Exists() && record.State == registry.StateOwner
		}
	}
	return nil
}
