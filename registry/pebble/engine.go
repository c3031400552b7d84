package pebble

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	engine "github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/bloom"

	"moorage/registry"
)

// engineOptions returns the engine's settings.
func (s *instance) engineOptions(cache *engine.Cache, tune func(*engine.Options)) *engine.Options {
	options := &engine.Options{
		FS:                         s.guard,
		Cache:                      cache,
		FormatMajorVersion:         engineFormat,
		MemTableSize:               memTableBytes,
		MaxOpenFiles:               openFilesMax,
		CompactionConcurrencyRange: func() (lower, upper int) { return 1, compactionsMax },
		Logger:                     engineLogger{s.logger, s.fail},
		EventListener: &engine.EventListener{
			// Without this, the engine would retry at once, without end.
			BackgroundError: func(err error) { s.fail(fmt.Errorf("in the background: %w", err)) },
			// Without this, the engine logs the corruption with a hundred lines of stack traces.
			DataCorruption: func(info engine.DataCorruptionInfo) {
				s.fail(fmt.Errorf("%s is damaged; replace the store by a backup: %w", info.Path, info.Details))
			},
			WriteStallBegin: func(info engine.WriteStallBeginInfo) {
				s.logger.Warn("store waits for its engine to catch up", "reason", info.Reason)
			},
		},
	}
	// With sampling, a reader sometimes waits for a sync of the list of files.
	options.Experimental.ReadSamplingMultiplier = -1
	for level := range options.Levels {
		options.Levels[level].FilterPolicy = bloom.FilterPolicy(bloomBitsPerKey)
	}
	tune(options)
	return options
}

// openEngine opens the engine, which panics on some errors.
func (s *instance) openEngine(cacheBytes int64, tune func(*engine.Options)) (db *engine.DB, err error) {
	if err := s.checkFiles(); err != nil {
		return nil, err
	}
	cache := engine.NewCache(cacheBytes)
	defer cache.Unref()
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("the engine panicked: %v", p)
		}
	}()
	return engine.Open(s.dir, s.engineOptions(cache, tune))
}

// checkFiles returns ErrNewerFormat if the format of the engine's files is unknown to this version
// of the engine. The engine keeps the format in the name of a file. checkFiles also refuses a
// directory that is not a complete store. In such a directory the engine would make a new store and
// delete the tables.
func (s *instance) checkFiles() error {
	names, err := s.guard.List(s.dir)
	if err != nil {
		return nil // the directory does not exist yet, or the engine will report the error
	}
	for _, name := range names {
		rest, isMarker := strings.CutPrefix(name, "marker.format-version.")
		_, version, _ := strings.Cut(rest, ".")
		if number, err := strconv.ParseUint(version, 10, 64); isMarker && err == nil &&
			number > uint64(engine.FormatNewest) {
			return fmt.Errorf("%w: its files have format %d, this one reads up to %d", ErrNewerFormat, number,
				engine.FormatNewest)
		}
	}
	if slices.ContainsFunc(names, isContent) && !slices.ContainsFunc(names, isManifestMarker) {
		return fmt.Errorf("it is damaged; replace the store by a backup: %s* is missing, as in an incomplete copy",
			manifestMarker)
	}
	return nil
}

// manifestMarker is the prefix of the name of the file that refers to the list of tables. A new
// store gets that file before its first log. If the file is missing, the engine takes the directory
// for empty.
const manifestMarker = "marker.manifest."

func isManifestMarker(name string) bool { return strings.HasPrefix(name, manifestMarker) }

// isContent reports whether a file may hold records. Such a file is a table or a log of the engine,
// and its name is a number.
func isContent(name string) bool {
	number, ending, _ := strings.Cut(name, ".")
	return number != "" && strings.Trim(number, "0123456789") == "" && (ending == "sst" || ending == "log")
}

// load checks that the engine's content is a store in a format that this version can read. If the
// engine is empty, load creates a store. It also reads the last assigned position.
func (s *instance) load() error {
	v := newView(s.db, &s.retired)
	defer v.release()
	format, err := s.loadFormat(v)
	if err == nil {
		_, err = v.read(positionKey(), func(stored []byte) (err error) {
			s.last, err = splitPosition(stored)
			return err
		})
	}
	if err != nil {
		return err
	}
	if format.Version > 0 {
		return nil
	}
	record := registry.FormatRecord()
	stored := appendRecord(nil, registry.Put(record.Key, record.State, record.Value), record.ETag)
	if err := s.db.Set(appendRecordKey(nil, record.Key), stored, engine.Sync); err != nil {
		return fmt.Errorf("write the format record: %w", err)
	}
	// The engine logs a sync error, but does not return it.
	if err := s.failure.get(); err != nil {
		return err
	}
	s.logger.Info("made a new store", "dir", s.dir)
	return nil
}

// loadFormat returns the format of the store. Its version is 0 if the engine is empty.
func (s *instance) loadFormat(v *view) (format registry.Format, err error) {
	key := registry.FormatKey()
	found, err := v.read(appendRecordKey(nil, key), func(stored []byte) error {
		h, value, err := splitRecord(key, stored)
		if err != nil {
			return err
		}
		record := h.record(key)
		record.Value = value
		format, err = registry.Decode[registry.Format](record)
		return err
	})
	switch {
	case err != nil:
		return format, err
	case found && format.Version > registry.FormatVersion:
		return format, fmt.Errorf("%w: it has format %d, this one reads up to %d", ErrNewerFormat, format.Version,
			registry.FormatVersion)
	case found && format.Version < 1:
		return format, fmt.Errorf("%w: its format is %d", ErrForeign, format.Version)
	case found:
		return format, nil
	}
	iter, err := v.snapshot.NewIter(nil)
	if err != nil {
		return format, fmt.Errorf("read the store: %w", err)
	}
	foreign := iter.First()
	if err := iter.Close(); err != nil {
		return format, fmt.Errorf("read the store: %w", err)
	}
	if foreign {
		return format, ErrForeign
	}
	return format, nil
}

// closeEngine closes the engine, which must not be in use.
func (s *instance) closeEngine() (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("close the engine: %v", p)
		}
	}()
	if err := s.db.Close(); err != nil {
		return fmt.Errorf("close the engine: %w", err)
	}
	return nil
}
