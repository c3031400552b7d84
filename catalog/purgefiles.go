package catalog

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"

	"moorage/manifest"
	"moorage/metadata"
	"moorage/storage"
)

// purgeBatchMax is the largest batch that purgeFiles yields.
const purgeBatchMax = 1000

// purgeFiles yields, in batches of at most purgeBatchMax, the locations of all files that document
// names and that lie within claims, which are normalised locations. yield deletes them; its
// error ends the purge.
//
// Files are yielded before those that name them: data and delete files, then manifests, manifest
// lists, statistics, earlier metadata files and, alone and last, the file at metadataLocation,
// which is document's own. So a purge that was cut short at any point finds, when it is done again
// from the start, everything that is left. With gc.enabled=false data and delete files stay and the
// rest goes, as in the Java implementation.
//
// A manifest or manifest list that is missing, damaged or out of reach is logged and passed over:
// what only it names stays. Any other failure to read one ends the purge, to be done again.
func purgeFiles(ctx context.Context, log *slog.Logger, store storage.Store, document *metadata.Document,
	metadataLocation string, claims []string, yield func(batch []string) error,
) error {
	p := purger{log: log, yield: yield, told: newRecent()}
	p.namedFiles = namedFiles{store, document, p.logPassed}
	for _, claim := range claims {
		parsed, err := storage.Parse(claim)
		if err != nil {
			return fmt.Errorf("claim: %w", err)
		}
		p.claims = append(p.claims, parsed)
	}
	own, err := storage.Parse(metadataLocation)
	if err != nil {
		return fmt.Errorf("metadata location: %w", err)
	}
	p.own = own
	for _, step := range []func(context.Context) error{
		p.contentFiles, p.manifests,
		func(context.Context) error { return p.eachList(p.add) },
		func(context.Context) error { return p.eachStatistics(p.add) },
		func(context.Context) error { return p.eachEarlierMetadata(p.add) },
	} {
		if err := step(ctx); err != nil {
			return err
		}
		if err := p.flush(); err != nil {
			return err
		}
	}
	if p.kept > 0 {
		log.InfoContext(ctx, "purge leaves files outside the table's own locations", "files", p.kept)
	}
	if !p.isClaimed(own) {
		return nil
	}
	return yield([]string{metadataLocation})
}

// purger is one run of purgeFiles.
type purger struct {
	namedFiles
	log    *slog.Logger
	own    storage.Location // of the document
	claims []storage.Location
	yield  func(batch []string) error

	batch []string
	kept  int     // files that are named but not within claims
	told  *recent // files that the log says were passed over: lists are read twice
}

// contentFiles adds data and delete files, unless the table says that others may need them.
func (p *purger) contentFiles(ctx context.Context) error {
	if value, ok := p.document.Property("gc.enabled"); ok && !strings.EqualFold(value, "true") {
		p.log.InfoContext(ctx, "purge leaves data files: gc.enabled is not true", "location", p.document.Location())
		return nil
	}
	added := newRecent()
	return p.eachManifest(ctx, newVisited(), func(m manifest.Manifest) error {
		return p.eachFile(ctx, m, func(path string) error {
			if !added.add(path) {
				return nil
			}
			return p.add(path)
		})
	})
}

func (p *purger) manifests(ctx context.Context) error {
	return p.eachManifest(ctx, newVisited(), func(m manifest.Manifest) error { return p.add(m.Path()) })
}

func (p *purger) logPassed(ctx context.Context, path string, cause error) error {
	if p.told.add(path) {
		p.log.WarnContext(ctx, "purge passes over a file that it cannot read; what only that names stays", "file", path, "error", cause)
	}
	return nil
}

// add adds a file to the batch if it may be deleted.
func (p *purger) add(path string) error {
	location, err := storage.Parse(path)
	if err != nil || !p.isClaimed(location) {
		p.kept++
		return nil
	}
	if location == p.own {
		return nil // it goes last
	}
	p.batch = append(p.batch, path)
	if len(p.batch) < purgeBatchMax {
		return nil
	}
	return p.flush()
}

func (p *purger) isClaimed(location storage.Location) bool {
	return slices.ContainsFunc(p.claims, func(claim storage.Location) bool { return claim.Contains(location) })
}

// flush yields the batch, if there is anything in it.
func (p *purger) flush() error {
	if len(p.batch) == 0 {
		return nil
	}
	batch := p.batch
	p.batch = nil
	return p.yield(batch)
}
