package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"moorage"
	"moorage/internal/cli"
	"moorage/internal/term"
	"moorage/management/client"
	"moorage/metadata"
)

// query returns the parameters that name a table or view.
func (o object) query() url.Values {
	named := client.Object{Warehouse: o.warehouse, Namespace: o.namespace, Table: o.name}
	if o.kind == kindView {
		named.Table, named.View = "", o.name
	}
	return named.Query()
}

// diff is the command diff.
func diff(ctx context.Context, p *person) error {
	found, err := p.find(ctx, p.Name, kindTable, kindView)
	if err != nil {
		return err
	}
	query := found.query()
	query.Set("from", p.Older)
	query.Set("to", p.Version)
	var raw json.RawMessage
	asked := client.Request{Method: http.MethodGet, Path: client.Path("diff"), Query: query}
	if err := p.server.Do(ctx, asked, &raw); err != nil {
		return err
	}
	var differs client.TableDifference
	if err := json.Unmarshal(raw, &differs); err != nil {
		return fmt.Errorf("read the answer: %w", err)
	}
	switch p.Output {
	case cli.OutputJSON:
		err = printJSON(p.out, raw)
	case cli.OutputLines:
		err = json.NewEncoder(p.out).Encode(raw)
	case cli.OutputNames:
		for _, part := range partsOf(differs) {
			fmt.Fprintln(p.out, part.title)
		}
	default:
		err = p.paged(func(out *term.Output) error { return writeDifference(out, found, differs, p.Only) })
	}
	if err == nil && p.ExitCode && len(partsOf(differs)) > 0 {
		return cli.No("the versions differ")
	}
	return err
}

// writeDifference prints a difference: all of it, or only one part.
func writeDifference(out *term.Output, of object, differs client.TableDifference, only string) error {
	fmt.Fprintf(out, "%s  %s .. %s\n", out.Paint(term.Strong, term.Clean(of.String())), versionShown(out, differs.From),
		versionShown(out, differs.To))
	for _, part := range partsOf(differs) {
		if only != "" && only != part.title {
			continue
		}
		title := part.title
		for _, line := range part.lines {
			style := map[byte]term.Style{'+': term.Good, '-': term.Bad, '~': term.Changed, '>': term.Changed}[line[0]]
			fmt.Fprintf(out, "  %s  %s\n", out.Paint(term.Faint, fmt.Sprintf("%-10s", title)),
				out.Paint(style, term.Clean(line)))
			title = ""
		}
	}
	return nil
}

// versionShown returns a version as a short text: the number in the name of its file, and its time.
func versionShown(out *term.Output, version client.TableVersion) string {
	name := version.MetadataLocation[strings.LastIndexByte(version.MetadataLocation, '/')+1:]
	number, _, _ := strings.Cut(name, "-")
	return fmt.Sprintf("%s (%s)", term.Clean(number), out.Time(time.UnixMilli(version.TimestampMS)))
}

// differingPart is a part of a table that differs. Each line begins with what happened: + - ~ >.
type differingPart struct {
	title string
	lines []string
}

// partsOf returns the parts that differ.
func partsOf(d client.TableDifference) (parts []differingPart) {
	add := func(title string, lines ...string) {
		if len(lines) > 0 {
			parts = append(parts, differingPart{title, lines})
		}
	}
	if d.FormatVersion != nil {
		add("format", fmt.Sprintf("~ %d -> %d", d.FormatVersion[0], d.FormatVersion[1]))
	}
	if d.Location != nil {
		add("location", fmt.Sprintf("~ %s -> %s", d.Location[0], d.Location[1]))
	}
	add("sql", sqlLines(d.SQL)...)
	var lookups []string
	if d.DefaultCatalog != nil {
		lookups = append(lookups, fmt.Sprintf("~ catalog %s -> %s", cmp.Or(d.DefaultCatalog[0], "(none)"),
			cmp.Or(d.DefaultCatalog[1], "(none)")))
	}
	if d.DefaultNamespace != nil {
		was, is := moorage.PersonLevels(d.DefaultNamespace[0]...), moorage.PersonLevels(d.DefaultNamespace[1]...)
		lookups = append(lookups, fmt.Sprintf("~ namespace %s -> %s", cmp.Or(was, "(none)"), cmp.Or(is, "(none)")))
	}
	add("names in", lookups...)
	if d.Schema != nil {
		add("schema", schemaLines(*d.Schema)...)
	}
	for title, pair := range map[string]*[2]any{"partitions": d.PartitionSpec, "sort order": d.SortOrder} {
		if pair != nil {
			was, _ := json.Marshal(pair[0]) // it was read from JSON
			is, _ := json.Marshal(pair[1])
			add(title, fmt.Sprintf("~ %s -> %s", was, is))
		}
	}
	if d.Properties != nil {
		var lines []string
		for _, name := range slices.Sorted(maps.Keys(d.Properties.Set)) {
			pair := d.Properties.Set[name]
			if pair[0] == nil {
				lines = append(lines, fmt.Sprintf("+ %s %s", name, *pair[1]))
			} else {
				lines = append(lines, fmt.Sprintf("~ %s %s -> %s", name, *pair[0], *pair[1]))
			}
		}
		for _, name := range slices.Sorted(maps.Keys(d.Properties.Removed)) {
			lines = append(lines, fmt.Sprintf("- %s %s", name, d.Properties.Removed[name]))
		}
		add("properties", lines...)
	}
	if d.Refs != nil {
		add("refs", refLines(*d.Refs)...)
	}
	if line := snapshotsLine(d); line != "" {
		add("snapshots", line)
	}
	slices.SortStableFunc(parts, func(a, b differingPart) int {
		return slices.Index(cli.DiffParts(), a.title) - slices.Index(cli.DiffParts(), b.title)
	})
	return parts
}

// sqlLines returns the queries of a view that differ, by dialect.
func sqlLines(queries map[string][2]*string) (lines []string) {
	for _, dialect := range slices.Sorted(maps.Keys(queries)) {
		if was := queries[dialect][0]; was != nil {
			lines = append(lines, fmt.Sprintf("- %s %s", dialect, *was))
		}
		if is := queries[dialect][1]; is != nil {
			lines = append(lines, fmt.Sprintf("+ %s %s", dialect, *is))
		}
	}
	return lines
}

func schemaLines(d client.SchemaDifference) (lines []string) {
	for _, column := range d.Added {
		lines = append(lines, fmt.Sprintf("+ %2d %s %s", column.ID, column.Path, column.Type))
	}
	for _, column := range d.Removed {
		lines = append(lines, fmt.Sprintf("- %2d %s %s", column.ID, column.Path, column.Type))
	}
	for _, column := range d.Changed {
		for _, trait := range slices.Sorted(maps.Keys(column.Is)) {
			was, is := fmt.Sprint(column.Was[trait]), fmt.Sprint(column.Is[trait])
			switch trait {
			case "path":
				lines = append(lines, fmt.Sprintf("~ %2d %s -> %s", column.ID, was, is))
			case "type":
				lines = append(lines, fmt.Sprintf("~ %2d %s %s -> %s", column.ID, column.Path, was, is))
			default:
				lines = append(lines, fmt.Sprintf("~ %2d %s %s %s -> %s", column.ID, column.Path, trait, was, is))
			}
		}
	}
	return lines
}

func refLines(d client.RefsDifference) (lines []string) {
	for _, ref := range d.Moved {
		if ref.Ahead == nil {
			lines = append(lines, fmt.Sprintf("> %s back from %d to %d", ref.Name, ref.Was, ref.Is))
		} else {
			lines = append(lines, fmt.Sprintf("> %s +%s", ref.Name, moorage.Counted(*ref.Ahead, "snapshot")))
		}
	}
	for _, ref := range d.Added {
		lines = append(lines, fmt.Sprintf("+ %s %s at %d", ref.Type, ref.Name, ref.SnapshotID))
	}
	for _, ref := range d.Removed {
		lines = append(lines, fmt.Sprintf("- %s %s at %d", ref.Type, ref.Name, ref.SnapshotID))
	}
	for _, ref := range d.Changed {
		lines = append(lines, fmt.Sprintf("~ %s %s -> %s", ref.Name, ref.Was, ref.Is))
	}
	return lines
}

// snapshotsLine returns the numbers of snapshots and of rows, files and bytes in one line.
func snapshotsLine(d client.TableDifference) string {
	var words []string
	if d.Snapshots != nil {
		words = append(words, fmt.Sprintf("+%d -%d", len(d.Snapshots.Added), len(d.Snapshots.Removed)))
	}
	for _, name := range []string{"rows", "files", "deletes", "bytes"} {
		pair := d.Totals[name]
		if len(pair) != 2 || pair[0] < 0 || pair[1] < 0 {
			continue
		}
		change := pair[1] - pair[0]
		sign, format := "+", func(n int64) string { return strconv.FormatInt(n, 10) }
		if name == "bytes" {
			format = term.Size
		}
		if change < 0 {
			sign, change = "-", -change
		}
		words = append(words, name+" "+sign+format(change))
	}
	return strings.Join(words, "   ")
}

// rollback is the command rollback.
func rollback(ctx context.Context, p *person) error {
	found, err := p.find(ctx, p.Name, kindTable, kindView)
	if err != nil {
		return err
	}
	asked := client.RollbackRequest{To: p.Version, Ref: p.Ref, Any: p.AnyState}
	if p.All {
		asked.Parts = []string{client.PartAll}
	}
	asked.DryRun = true // what was agreed to is then sent as a commit
	var plan client.RolledBack
	request := client.Request{
		Method: http.MethodPost, Path: client.Path("rollback"), Query: found.query(), Body: asked, Reads: true,
	}
	if err := p.server.Do(ctx, request, &plan); err != nil {
		return err
	}
	if string(plan.Updates) == "[]" {
		p.done("%s is in that state already.", found)
		for _, warning := range plan.Warnings {
			p.done("%s", warning)
		}
		return nil
	}
	describe := describeRollback
	if found.kind == kindView {
		describe = describeViewRollback
	}
	question, err := describe(found, plan)
	if err != nil {
		return err
	}
	if err := p.confirm(ctx, question, ""); err != nil {
		return err
	}
	if found.kind == kindView {
		return p.rollBackView(ctx, found, asked, plan)
	}
	// The requirements refuse the commit if what it replaces has changed since the question.
	body := map[string]any{"requirements": plan.Requirements, "updates": plan.Updates}
	var made client.Loaded
	if err := p.change(ctx, http.MethodPost, found.path(), nil, body, &made); err != nil || p.DryRun {
		return err
	}
	document, err := parseTable(made.Metadata)
	if err != nil {
		return err
	}
	former := ""
	if log := document.MetadataLog; len(log) > 0 {
		former = log[len(log)-1].File
	}
	p.done("Done.%s", p.undoLine(former))
	return nil
}

// rollBackView carries out the rollback of a view that was agreed to. A commit of a view cannot
// require a version, so the server compares the metadata file with the one of the plan. It goes to
// the version of the plan, which a duration such as 2h may not mean any more.
func (p *person) rollBackView(ctx context.Context, of object, asked client.RollbackRequest,
	plan client.RolledBack) error {
	asked.DryRun, asked.PreviousMetadataLocation, asked.To = false, plan.PreviousMetadataLocation, plan.To
	var done client.RolledBack
	path := client.RootManagement + client.Path("rollback")
	if err := p.change(ctx, http.MethodPost, path, of.query(), asked, &done); err != nil || p.DryRun {
		return err
	}
	p.done("Done.%s", p.undoLine(done.PreviousMetadataLocation))
	return nil
}

// viewUpdate is an update of a rollback of a view.
type viewUpdate struct {
	Action string `json:"action"`
	ID     int    `json:"view-version-id"`
}

func viewUpdatesOf(plan client.RolledBack) (updates []viewUpdate, err error) {
	if err := json.Unmarshal(plan.Updates, &updates); err != nil {
		return nil, fmt.Errorf("read the answer: %w", err)
	}
	return updates, nil
}

// describeViewRollback describes what a rollback of a view does.
func describeViewRollback(of object, plan client.RolledBack) (string, error) {
	document, err := parseView(of.loaded.Metadata)
	if err != nil {
		return "", err
	}
	updates, err := viewUpdatesOf(plan)
	if err != nil {
		return "", err
	}
	var lines, others []string
	for _, update := range updates {
		if update.Action != "set-current-view-version" {
			others = append(others, update.Action)
			continue
		}
		lines = append(lines, fmt.Sprintf("%s goes back from its version %d to its version %d:",
			term.Clean(of.String()), document.Current, update.ID))
		if version := document.version(update.ID); version != nil {
			for _, each := range version.Representations {
				lines = append(lines, fmt.Sprintf("  %s %s", term.Clean(each.Dialect), term.Clean(each.SQL)))
			}
		}
	}
	if len(others) > 0 {
		lines = append(lines, "It also does: "+strings.Join(others, ", ")+".")
	}
	return strings.Join(append(lines, plan.Warnings...), "\n"), nil
}

// undoLine returns how to take back a commit: a rollback to the metadata file before it. It is
// empty without such a file.
func (p *person) undoLine(file string) string {
	if file == "" {
		return ""
	}
	former := file[strings.LastIndexByte(file, '/')+1:]
	words := []string{"moorage rollback", moorage.ShellWord(p.Name.String()), moorage.ShellWord(former)}
	if p.Ref != "" && p.Ref != metadata.MainBranch {
		words = append(words, "--ref", moorage.ShellWord(p.Ref))
	}
	if p.All {
		words = append(words, "--all")
	}
	return " To undo: " + strings.Join(words, " ")
}

// describeRollback describes what a rollback of a table does.
func describeRollback(of object, plan client.RolledBack) (string, error) {
	document, err := parseTable(of.loaded.Metadata)
	if err != nil {
		return "", err
	}
	var updates []struct {
		Action string `json:"action"`
		Ref    string `json:"ref-name"`
		ID     int64  `json:"snapshot-id"`
	}
	if err := json.Unmarshal(plan.Updates, &updates); err != nil {
		return "", fmt.Errorf("read the answer: %w", err)
	}
	var lines, others []string
	name := term.Clean(of.String())
	for _, update := range updates {
		ref := term.Clean(update.Ref)
		switch update.Action {
		case "set-snapshot-ref":
			was, is := document.snapshot(document.Refs[update.Ref].SnapshotID), document.snapshot(update.ID)
			line := fmt.Sprintf("%s of %s goes to %d", ref, name, update.ID)
			if was != nil && is != nil {
				line = fmt.Sprintf("%s of %s goes back from %d to %d:\nrows %s -> %s, files %s -> %s",
					ref, name, was.ID, is.ID,
					countOf(was.total("total-records")), countOf(is.total("total-records")),
					countOf(was.total("total-data-files")), countOf(is.total("total-data-files")))
			}
			lines = append(lines, line+"; no file is deleted.")
		case "remove-snapshot-ref":
			lines = append(lines,
				fmt.Sprintf("%s of %s is removed: the table was empty; no file is deleted.", ref, name))
		default:
			others = append(others, update.Action)
		}
	}
	if len(others) > 0 {
		lines = append(lines, "It also does: "+strings.Join(others, ", ")+".")
	}
	return strings.Join(append(lines, plan.Warnings...), "\n"), nil
}
