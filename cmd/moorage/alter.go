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
	"time"

	"moorage"
	"moorage/internal/cli"
	"moorage/internal/term"
	"moorage/management/client"
	"moorage/metadata"
)

// makeNamespace is the command mk.
func makeNamespace(ctx context.Context, p *person) error {
	warehouse := p.warehouseOf(p.Name)
	body := client.LoadedNamespace{Namespace: p.Name.Levels, Properties: orEmpty(p.Pairs)}
	var made client.LoadedNamespace
	path := client.IcebergPath(warehouse, "namespaces")
	if err := p.change(ctx, http.MethodPost, path, nil, body, &made); err != nil || p.DryRun {
		return err
	}
	p.done("Made namespace %s.", moorage.PersonLevels(p.Name.Levels...))
	return nil
}

func orEmpty(values map[string]string) map[string]string {
	if values == nil {
		return map[string]string{}
	}
	return values
}

// renameObject is the command mv.
func renameObject(ctx context.Context, p *person) error {
	found, err := p.find(ctx, p.Name, kindTable, kindView)
	if err != nil {
		return err
	}
	to := p.To.Levels
	if p.To.IsNamespace {
		to = append(to[:len(to):len(to)], found.name)
	}
	last := len(to) - 1
	switch {
	case last < 1:
		return cli.Usage("the new name has a namespace, as in sales." + p.To.String())
	case p.warehouseOf(p.To) != found.warehouse && p.To.Warehouse != "":
		return cli.Usage("an object stays in its warehouse: " + found.warehouse)
	}
	body := map[string]client.Identifier{
		"source":      {Namespace: found.namespace, Name: found.name},
		"destination": {Namespace: to[:last], Name: to[last]},
	}
	path := client.IcebergPath(found.warehouse, found.kind+"s", "rename")
	if err := p.change(ctx, http.MethodPost, path, nil, body, nil); err != nil || p.DryRun {
		return err
	}
	p.done("Renamed %s %s to %s.", found.kind, found, moorage.PersonLevels(to...))
	return nil
}

// removeObject is the command rm.
func removeObject(ctx context.Context, p *person) error {
	if p.Dropped {
		return removeDropped(ctx, p)
	}
	found, err := p.find(ctx, p.Name, kindTable, kindView, kindNamespace)
	if err != nil {
		return err
	}
	if found.row, err = p.rowOf(ctx, found); err != nil {
		return err
	}
	victims := []object{found}
	if found.kind == kindNamespace && p.Recursive {
		if victims, err = p.below(ctx, found); err != nil {
			return err
		}
	}
	question := p.costOf(found, victims)
	word := ""
	if p.Purge {
		question += " --purge also deletes the files."
		word = term.Clean(found.String())
	}
	if err := p.confirm(ctx, question, word); err != nil {
		return err
	}
	bar, end := p.progress("rm", len(victims))
	defer end()
	for _, each := range victims {
		bar.Add(1)
		query := url.Values(nil)
		if p.Purge && each.kind == kindTable {
			query = url.Values{"purgeRequested": {"true"}}
		}
		err := p.unchanged(ctx, each)
		if err == nil {
			err = p.change(ctx, http.MethodDelete, each.path(), query, nil, nil)
		}
		if isMissing(err) && len(victims) > 1 {
			continue // another caller dropped it
		}
		if err != nil {
			return fmt.Errorf("drop %s: %w", each, err)
		}
		switch {
		case p.DryRun:
		case len(victims) == 1:
			p.done("%s", p.droppedLine(ctx, each))
		default:
			p.done("Dropped %s %s.", each.kind, each)
		}
	}
	return nil
}

// unchanged returns a conflict if shown, which was found before the question, has been replaced by
// another object with the same name.
func (p *person) unchanged(ctx context.Context, shown object) error {
	if shown.row.ID == "" { // the caller may see no more than the name
		return nil
	}
	now, err := p.rowOf(ctx, shown)
	if err == nil && (now.ID != shown.row.ID || now.UUID != shown.row.UUID) {
		err = cli.Conflict("it is another %s since the question: %s, not %s", now.Kind, cmp.Or(now.UUID, now.ID),
			cmp.Or(shown.row.UUID, shown.row.ID))
	}
	return err
}

// rowOf returns the object that now has the name of o. A table or view takes precedence over a
// namespace with the same name.
func (p *person) rowOf(ctx context.Context, o object) (client.Row, error) {
	var found client.ObjectDetails
	query := url.Values{"warehouse": {o.warehouse}, "path": {client.JoinLevels(o.levels())}}
	err := p.server.Do(ctx, client.Request{Method: http.MethodGet, Path: client.Path("object"), Query: query}, &found)
	return found.Row, err
}

// below returns a namespace and everything in it. The contents of a namespace precede the
// namespace, and a table or view precedes a namespace with the same name.
func (p *person) below(ctx context.Context, of object) (all []object, err error) {
	rows, err := p.objectsIn(ctx, of.warehouse, of.namespace, true)
	for _, row := range rows {
		o := object{kind: row.Kind, warehouse: of.warehouse, namespace: row.Namespace, name: row.Name, row: row}
		if row.Kind == kindNamespace {
			o.namespace, o.name = row.Levels(), ""
		}
		all = append(all, o)
	}
	// In the list, the contents of a namespace follow the namespace, and tables and views follow
	// namespaces.
	slices.Reverse(all)
	return append(all, of), err
}

// costOf describes what a drop would remove.
func (p *person) costOf(found object, victims []object) string {
	name := term.Clean(found.String())
	if len(victims) > 1 {
		counts := make(map[string]int)
		for _, each := range victims {
			counts[each.kind]++
		}
		return fmt.Sprintf("Drop %s, %s and %s: all of %s.", moorage.Counted(counts[kindTable], "table"),
			moorage.Counted(counts[kindView], "view"), moorage.Counted(counts[kindNamespace], "namespace"), name)
	}
	if found.kind != kindTable {
		return fmt.Sprintf("Drop %s %s.", found.kind, name)
	}
	text := fmt.Sprintf("Drop table %s", name)
	if document, err := parseTable(found.loaded.Metadata); err == nil {
		if head := document.head(); head != nil {
			text += fmt.Sprintf(": %s rows, %s in %s", countOf(head.total("total-records")),
				sizeOf(head.total("total-files-size")), filesOf(head.total("total-data-files")))
		}
		text += fmt.Sprintf(", changed %s", p.out.Time(time.UnixMilli(document.LastUpdatedMS)))
	}
	return text + "."
}

// register is the command register.
func register(ctx context.Context, p *person) error {
	last := len(p.Name.Levels) - 1
	switch {
	case p.Name.IsNamespace:
		return cli.Usage(p.Name.String() + " is a namespace: add the name of the table")
	case last < 1:
		return cli.Usage("a table has a namespace, as in sales." + p.Name.String())
	}
	body := map[string]any{"name": p.Name.Levels[last], "metadata-location": p.File}
	if p.Replace {
		body["overwrite"] = true
	}
	path := client.NamespacePath(p.warehouseOf(p.Name), p.Name.Levels[:last]) + "/register"
	var made client.Loaded
	if err := p.change(ctx, http.MethodPost, path, nil, body, &made); err != nil || p.DryRun {
		return err
	}
	p.done("Registered table %s.", moorage.PersonLevels(p.Name.Levels...))
	return nil
}

// setOnObject is the command set.
func setOnObject(ctx context.Context, p *person) error {
	return p.changeProperties(ctx, p.Pairs, nil)
}

// unsetOnObject is the command unset.
func unsetOnObject(ctx context.Context, p *person) error {
	return p.changeProperties(ctx, nil, p.Words)
}

// changeProperties sets and removes properties of an object, and prints their former values.
func (p *person) changeProperties(ctx context.Context, set map[string]string, removed []string) error {
	found, err := p.find(ctx, p.Name)
	if err != nil {
		return err
	}
	before, err := p.propertiesOf(ctx, found)
	if err != nil {
		return err
	}
	var body, answer any
	method, path := http.MethodPost, found.path()
	switch found.kind {
	case kindWarehouse:
		method, path = http.MethodPatch, client.RootManagement+client.Path("warehouses", found.warehouse)
		body = client.WarehouseChange{Properties: edits(set, removed)}
		answer = &client.Warehouse{}
	case kindNamespace:
		path += "/properties"
		body = map[string]any{"updates": orEmpty(set), "removals": append([]string{}, removed...)}
	default:
		var updates []map[string]any
		if len(set) > 0 {
			updates = append(updates, map[string]any{"action": "set-properties", "updates": set})
		}
		if len(removed) > 0 {
			updates = append(updates, map[string]any{"action": "remove-properties", "removals": removed})
		}
		body, answer = found.commit(updates), &client.Loaded{}
	}
	if err := p.change(ctx, method, path, nil, body, answer); err != nil || p.DryRun {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(set)) {
		p.done("%s %s -> %s", name, wasOf(before, name), set[name])
	}
	for _, name := range removed {
		p.done("%s %s -> (none)", name, wasOf(before, name))
	}
	return nil
}

// wasOf returns the former value of a property in words.
func wasOf(before map[string]string, name string) string {
	value, ok := before[name]
	if !ok {
		return "(none)"
	}
	return value
}

// propertiesOf returns the properties of an object.
func (p *person) propertiesOf(ctx context.Context, o object) (map[string]string, error) {
	switch o.kind {
	case kindNamespace:
		return o.properties, nil
	case kindWarehouse:
		var found client.Warehouse
		asked := client.Request{Method: http.MethodGet, Path: client.Path("warehouses", o.warehouse)}
		err := p.server.Do(ctx, asked, &found)
		return found.Properties, err
	}
	var document struct {
		Properties map[string]string `json:"properties"`
	}
	err := json.Unmarshal(o.loaded.Metadata, &document)
	return document.Properties, err
}

// commit returns the body of a commit to a table or view. The commit requires that the name still
// refers to the same object.
func (o object) commit(updates []map[string]any, more ...map[string]any) map[string]any {
	var document struct {
		Table string `json:"table-uuid"`
		View  string `json:"view-uuid"`
	}
	_ = json.Unmarshal(o.loaded.Metadata, &document) // the server has checked it
	requirements := []map[string]any{}
	switch {
	case document.Table != "":
		requirements = append(requirements, map[string]any{"type": "assert-table-uuid", "uuid": document.Table})
	case document.View != "":
		requirements = append(requirements, map[string]any{"type": "assert-view-uuid", "uuid": document.View})
	}
	return map[string]any{"requirements": append(requirements, more...), "updates": updates}
}

// setTag is the command tag, and setBranch is the command branch.
func setTag(ctx context.Context, p *person) error    { return p.setRef(ctx, "tag") }
func setBranch(ctx context.Context, p *person) error { return p.setRef(ctx, "branch") }

// setRef makes, moves or removes a ref of a table. Moving a ref keeps its retention.
func (p *person) setRef(ctx context.Context, kind string) error {
	if kind == "branch" && p.Ref == metadata.MainBranch && (p.Delete || p.Move) {
		if p.Delete {
			return cli.Usage("the branch main cannot be removed: readers see it unless they name another")
		}
		return cli.Usage(fmt.Sprintf("readers see main, so moving it asks first: moorage rollback %s %s --any",
			moorage.ShellWord(p.Name.String()), moorage.ShellWord(cmp.Or(p.Version, "VERSION"))))
	}
	found, err := p.find(ctx, p.Name, kindTable)
	if err != nil {
		return err
	}
	document, err := parseTable(found.loaded.Metadata)
	if err != nil {
		return err
	}
	present, exists := document.Refs[p.Ref]
	required := map[string]any{"type": "assert-ref-snapshot-id", "ref": p.Ref, "snapshot-id": nil}
	if exists {
		required["snapshot-id"] = present.SnapshotID
	}
	update := map[string]any{"action": "remove-snapshot-ref", "ref-name": p.Ref}
	is := "(removed)"
	switch {
	case exists && present.Type != kind:
		return cli.Conflict("%s is a %s of %s, not a %s", p.Ref, present.Type, found, kind)
	case p.Delete && !exists:
		return cli.No("there is no %s %s of %s", kind, p.Ref, found)
	case p.Delete:
	case exists && !p.Move:
		return cli.Conflict("the %s %s of %s exists, at %d: --move moves it", kind, p.Ref, found, present.SnapshotID)
	default:
		id, err := document.snapshotCalled(p.Version)
		if err != nil {
			return err
		}
		is = strconv.FormatInt(id, 10)
		update = map[string]any{"action": "set-snapshot-ref", "ref-name": p.Ref, "type": kind, "snapshot-id": id}
		if present.MaxRefAgeMS != nil {
			update["max-ref-age-ms"] = *present.MaxRefAgeMS
		}
		if present.MinSnapshots != nil {
			update["min-snapshots-to-keep"] = *present.MinSnapshots
		}
		if present.MaxSnapshotAgeMS != nil {
			update["max-snapshot-age-ms"] = *present.MaxSnapshotAgeMS
		}
		if p.Keep > 0 {
			update["max-ref-age-ms"] = p.Keep.Milliseconds()
		}
	}
	var answer client.Loaded
	body := found.commit([]map[string]any{update}, required)
	if err := p.change(ctx, http.MethodPost, found.path(), nil, body, &answer); err != nil || p.DryRun {
		return err
	}
	was := ""
	if exists {
		was = fmt.Sprintf(" (was %d)", present.SnapshotID)
	}
	p.done("%s -> %s%s", p.Ref, is, was)
	return nil
}

// snapshotCalled returns the snapshot that word refers to: by its id, a branch or a tag. An empty
// word means main.
func (d tableDocument) snapshotCalled(word string) (int64, error) {
	if word == "" {
		word = metadata.MainBranch
	}
	if ref, ok := d.Refs[word]; ok {
		return ref.SnapshotID, nil
	}
	id, err := strconv.ParseInt(word, 10, 64)
	switch {
	case word == metadata.MainBranch:
		return 0, cli.No("the table has no snapshot")
	case err != nil || d.snapshot(id) == nil:
		return 0, cli.No("%s is no snapshot, branch or tag of the table", word)
	}
	return id, nil
}
