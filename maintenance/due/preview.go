package due

import (
	"context"
	"time"

	"moorage"
	"moorage/catalog"
	"moorage/catalog/gate"
	"moorage/ledger"
	"moorage/maintenance/jobs"
	"moorage/maintenance/policy"
	"moorage/metadata"
	"moorage/registry"
)

// previewPointers bounds the pointers that one page of a preview reads, because most of them may be
// outside the preview's scope.
const previewPointers = 5000

// Preview describes what a policy would do to a table now.
type Preview struct {
	Table moorage.Identifier
	// Nothing explains why nothing would happen to the table. It is empty if something might
	// happen.
	Nothing string
	// Failed explains why the result is unknown. It is empty if the result is known.
	Failed string
	Run    jobs.DryRun // for the kinds snapshots and orphans
	// Due is true if compaction would be due now. In that case, Files is the number of data files,
	// or negative if the number is unknown.
	Due   bool
	Files int64
}

// Preview returns what would happen now to the tables of a scope if the scope had the requested
// policy. It covers at most limit tables, in the order of the IDs of their pointers, and begins
// with the first ID greater than after. To get the next page, pass next as after. On the last page,
// next is empty. A page can be empty without being the last. Preview reads the files that the jobs
// would read, and changes nothing.
//
// Errors: KindIllegalArgument for settings that Policies.Put refuses; the errors of
// catalog.Scopes.Find.
func (s *Control) Preview(ctx context.Context, scopes policy.Scopes, ident moorage.Identifier,
	asked policy.Asked, after string, limit int) (all []Preview, next string, err error) {
	const op = "due.Preview"
	if err := asked.Check(); err != nil {
		return nil, "", moorage.Annotate(op, ident.String(), err)
	}
	scope, err := scopes.Find(ctx, gate.PreviewMaintenancePolicy, ident)
	if err != nil {
		return nil, "", err
	}
	p, err := s.previewOf(ctx, scope, asked)
	if err != nil {
		return nil, "", moorage.Annotate(op, ident.String(), err)
	}
	if !scope.Pointer.IsZero() {
		preview, err := p.table(ctx, scope.Pointer, ident)
		return []Preview{preview}, "", moorage.Annotate(op, ident.String(), err)
	}
	in := registry.Pause{Scope: scope.Name, Ident: scope.Ident} // Covers reports which tables are in the scope
	read := 0
	err = s.Ledger.Scan(ctx, registry.TablePointer, "", after, func(record registry.Record) (bool, error) {
		if len(all) == limit || read == previewPointers {
			next = after
			return false, nil
		}
		read, after = read+1, record.Key.ID
		pointer, err := ledger.Decode[registry.Pointer](record)
		if err != nil || record.State != registry.StateLive || pointer.View || !in.Covers(pointer) {
			return true, nil // moorage doctor --deep reports an unreadable pointer
		}
		preview, err := p.table(ctx, pointer.ID, pointer.Identifier())
		all = append(all, preview)
		return true, err
	})
	return all, next, moorage.Annotate(op, ident.String(), err)
}

// previewing is one call of Preview.
type previewing struct {
	*Control
	of      policy.Type
	matcher *policy.Matcher // with the requested policy
	now     time.Time
}

// previewOf returns the policies as the requested change would make them, as of the store's time.
func (s *Control) previewOf(ctx context.Context, scope catalog.Scope, asked policy.Asked) (*previewing, error) {
	now, err := s.Ledger.Time(ctx)
	if err != nil {
		return nil, err
	}
	matcher, err := s.Policies.Reload(ctx)
	if err != nil {
		return nil, err
	}
	said, err := s.Policies.Of(ctx, scope)
	if err != nil {
		return nil, err
	}
	job := policy.Job{Status: asked.Status, Settings: asked.Settings, Since: now, Unsafe: asked.Unsafe}
	if before := said[asked.Type]; before.Status == asked.Status {
		job.Since = before.Since
	}
	return &previewing{s, asked.Type, matcher.With(scope, asked.Type, job), now}, nil
}

// table returns what would happen to one table. It returns an error only if ctx ends; any other
// failure is in Preview.Failed.
func (p *previewing) table(ctx context.Context, id registry.ID, ident moorage.Identifier) (Preview, error) {
	preview := Preview{Table: ident}
	if err := p.fill(ctx, id, &preview); err != nil {
		if ctx.Err() != nil {
			return preview, ctx.Err()
		}
		preview.Failed = moorage.OneLine(moorage.MessageOf(err))
	}
	return preview, nil
}

func (p *previewing) fill(ctx context.Context, id registry.ID, preview *Preview) error {
	version, table, err := p.Tables.TableByID(ctx, id)
	if err != nil {
		return err
	}
	document := version.Document.(*metadata.Document)
	rule := policy.Effective(p.matcher.Chain(id, table.Identifier()), document.Properties())[p.of]
	switch {
	case !rule.Enabled:
		preview.Nothing = "the " + sourceText(rule.From) + " says no"
	case rule.Held != "":
		preview.Nothing = rule.Held
	case p.of == policy.SnapshotManagement:
		preview.Run, err = jobs.DryRunSnapshots(ctx, p.Jobs, id, SnapshotSettings(rule, 0), 0)
	case p.of == policy.UnreferencedFileRemoval:
		settings := OrphanSettings(rule)
		if !settings.Since.Before(p.now.Add(-settings.OlderThan)) {
			preview.Nothing = "the files that are there now stay, unless includeOlder is true"
			return nil
		}
		preview.Run, err = jobs.DryRunOrphans(ctx, p.Jobs, id, settings, 0)
	default:
		return p.compaction(ctx, id, document, rule, preview)
	}
	if preview.Run.Held != "" {
		preview.Nothing = preview.Run.Held
	}
	return err
}

// compaction records whether compaction of a table would be due.
func (p *previewing) compaction(ctx context.Context, id registry.ID, document *metadata.Document, rule policy.Rule,
	preview *Preview) error {
	schedules, err := ReadSchedules(ctx, p.Ledger, id)
	if err != nil {
		return err
	}
	summary := document.Summary()
	base := policy.Base{Files: schedules[0].Value.Job(string(policy.Compact)).Base.Files}
	known := policy.Facts{Known: true, Snapshots: summary.Snapshots, Files: summary.Files}
	due := policy.Due(known, base, rule, p.now)
	preview.Due, preview.Files = !due.IsZero(), summary.Files
	return nil
}

func sourceText(source policy.Source) string {
	if source.Level == policy.LevelServer {
		return string(source.Level)
	}
	return string(source.Level) + " " + source.Name
}
