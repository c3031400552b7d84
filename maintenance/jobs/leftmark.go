package jobs

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"moorage"
	"moorage/ledger"
	"moorage/maintenance/reach"
	"moorage/registry"
	"moorage/storage"
)

// leftovers is one call of markLeftovers.
type leftovers struct {
	marking
	home    home
	claimed *claimed
	owners  []string // files below the warehouse that say which store removes orphans there
	// tables are folders outside of all locations of tables that have a metadata file. By that
	// somebody may register what is in them.
	tables map[string]bool
}

// newLeftovers returns a look at a warehouse that lists nothing yet.
func newLeftovers(j *Jobs, at home, s OrphanSettings, to sink) (*leftovers, error) {
	root, err := storage.Parse(at.location)
	if err != nil {
		return nil, moorage.E("jobs.newLeftovers", at.location, moorage.KindInternal, err)
	}
	return &leftovers{home: at, claimed: newClaimed(j), tables: make(map[string]bool), marking: marking{
		jobs: j, look: &look{claims: []storage.Location{root}}, settings: s, to: to, kept: make(map[string]int64),
	}}, nil
}

// markLeftovers lists the leftovers of a warehouse. What tables reach is read only if there is a
// file outside of their locations.
func markLeftovers(ctx context.Context, j *Jobs, at home, s OrphanSettings, to sink) (foundLeftovers, error) {
	m, err := newLeftovers(j, at, s, to)
	if err != nil {
		return foundLeftovers{}, err
	}
	some := false
	err = m.list(ctx, func(storage.Listed, time.Time) error {
		some = true
		return nil
	})
	if err != nil || !some {
		return foundLeftovers{}, err
	}
	all, err := reachAll(ctx, j)
	if err != nil {
		return foundLeftovers{}, err
	}
	m.set, m.allBytes, m.owners = all.set, 0, nil
	err = m.list(ctx, func(file storage.Listed, now time.Time) error {
		if m.isInTable(file.Location) {
			m.allBytes += file.Bytes
			m.kept[keptTable]++
			return nil
		}
		return m.add(ctx, m.look.claims[0], file, now)
	})
	if err == nil {
		err = m.judgeOwners(ctx)
	}
	if err == nil {
		err = m.judge()
	}
	return foundLeftovers{keptOf(m.kept), all.cost}, err
}

// list calls each for the files of the warehouse that are outside of the locations of all tables,
// old enough, and of a name that may be deleted.
func (m *leftovers) list(ctx context.Context, each func(file storage.Listed, now time.Time) error) error {
	lister, ok := m.home.store.(storage.Lister)
	if !ok {
		return &BlockedError{"the storage cannot list files"}
	}
	for after := ""; ; {
		if err := m.jobs.budget.List(ctx, m.home.location); err != nil {
			return err
		}
		page, err := lister.List(ctx, m.home.location, after, listPage)
		if err != nil {
			return m.jobs.budget.Note(m.home.location, err)
		}
		if err := m.page(ctx, page, each); err != nil {
			return err
		}
		if after = page.Next; after == "" {
			return nil
		}
	}
}

// page is list for one page.
func (m *leftovers) page(ctx context.Context, page storage.Page, each func(storage.Listed, time.Time) error) error {
	for _, file := range page.Files {
		m.allBytes += file.Bytes
		if strings.HasSuffix(file.Location, "/"+Folder+"/owner") && file.Location != ownerFile(m.home.location) {
			m.owners = append(m.owners, file.Location)
		}
	}
	free, err := unclaimed(ctx, m.claimed, page.Files, func(file storage.Listed) string { return file.Location })
	if err != nil {
		return err
	}
	for _, file := range free {
		if table := tableOf(file.Location); table != "" {
			m.tables[table] = true
		}
		if len(m.tables) > claimedMax {
			return &BlockedError{"too many folders outside of all tables have metadata files"}
		}
		if !m.mayBeLeft(file, page.Now) {
			continue
		}
		m.allBytes -= file.Bytes // add counts it again
		if err := each(file, page.Now); err != nil {
			return err
		}
	}
	return nil
}

// mayBeLeft reports whether a file is old enough to be a leftover, and has a name of one.
func (m *leftovers) mayBeLeft(file storage.Listed, now time.Time) bool {
	return !isHidden(strings.TrimPrefix(file.Location, m.home.location)) &&
		reach.IsOwn(m.look.claims, file.Location) && !file.Modified.IsZero() &&
		(now.Sub(file.Modified) >= m.settings.OlderThan || m.jobs.skip[checkAge])
}

// tableOf returns the folder of the table that a metadata file is of; empty for another file.
func tableOf(location string) string {
	place, err := storage.Parse(location)
	if err != nil || !strings.Contains(place.Path[strings.LastIndexByte(place.Path, '/')+1:], ".metadata.json") {
		return ""
	}
	folder := place.Parent()
	if strings.HasSuffix(folder.Path, "/metadata") {
		folder = folder.Parent()
	}
	return folder.String()
}

// isInTable reports whether a file is in a folder that has a metadata file.
func (m *leftovers) isInTable(location string) bool {
	place, err := storage.Parse(location)
	return err != nil || slices.ContainsFunc(place.Ancestors(), func(folder storage.Location) bool {
		return m.tables[folder.String()]
	})
}

// judgeOwners refuses a warehouse in which another store has one of its own: nobody knows its
// tables here.
func (m *leftovers) judgeOwners(ctx context.Context) error {
	if len(m.owners) == 0 || m.jobs.skip[checkOwner] {
		return nil
	}
	records, err := m.jobs.ledger.Get(ctx, registry.StoreIDKey())
	if err != nil {
		return err
	}
	own := ""
	if records[0].Exists() {
		id, err := ledger.Decode[registry.StoreID](records[0])
		if err != nil {
			return err
		}
		own = id.ID.String()
	}
	for _, file := range m.owners {
		owner, err := storage.ReadAll(ctx, m.home.store, file, ownerBytesMax)
		if err != nil {
			return err
		}
		if strings.TrimSpace(string(owner)) != own {
			return &BlockedError{fmt.Sprintf("another store has a warehouse in this one, as %s says", file)}
		}
	}
	return nil
}
