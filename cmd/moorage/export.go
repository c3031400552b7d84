package main

import (
	"context"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"moorage"
	"moorage/internal/cli"
	"moorage/management/client"
	"moorage/transfer"
)

// exported returns the selected objects of the command's warehouse, sorted by name.
func (p *person) exported(ctx context.Context) (*transfer.REST, []transfer.Planned, error) {
	own, err := p.ownCatalog(ctx)
	if err != nil {
		return nil, nil, err
	}
	run := &transfer.Run{
		Source: own, Target: present{own}, Jobs: max(p.transfer.Jobs, 16), Journal: &transfer.Journal{},
		Choice: transfer.Choice{Include: p.transfer.Include, Exclude: p.transfer.Exclude}, Progress: newBar(p).step,
	}
	plan, err := run.Plan(ctx)
	return own, plan, err
}

// present is the exported catalog in the role of a target, in which every object already exists.
type present struct{ *transfer.REST }

// Check implements transfer.Target.
func (present) Check(_ context.Context, o transfer.Object) (client.RegisterChecked, error) {
	return client.RegisterChecked{Fitness: string(transfer.StatusSame), Facts: o.Facts}, nil
}

// unexported returns the error for objects that could not be read.
func unexported(plan []transfer.Planned) error {
	for _, each := range plan {
		if !each.Arrives() {
			return fmt.Errorf("%s cannot be read: %s", each.Object, each.Why)
		}
	}
	return nil
}

// listedObject is a line of the exported list.
type listedObject struct {
	Namespace        []string `json:"namespace"`
	Name             string   `json:"name"`
	Kind             string   `json:"kind"`
	MetadataLocation string   `json:"metadata-location"`
}

func listedOf(o transfer.Object) listedObject {
	return listedObject{o.Namespace, o.Name, o.Kind(), o.MetadataLocation}
}

// exportList is the command export list.
func exportList(ctx context.Context, p *person) error {
	_, plan, err := p.exported(ctx)
	if err != nil {
		return err
	}
	switch p.Output {
	case cli.OutputJSON, cli.OutputLines, cli.OutputNames:
		var rows []row
		for _, each := range plan {
			rows = append(rows, row{name: each.Object.String(), json: listedOf(each.Object)})
		}
		if err := p.rows(nil, rows); err != nil {
			return err
		}
		return unexported(plan)
	}
	lines := csv.NewWriter(p.out)
	_ = lines.Write(transfer.Columns()) // Flush keeps the error
	for _, each := range plan {
		o := each.Object
		_ = lines.Write([]string{moorage.PersonLevels(o.Namespace...), o.Name, o.Kind(), o.MetadataLocation})
	}
	lines.Flush()
	return errors.Join(lines.Error(), unexported(plan))
}

// exportREST is the command export rest.
func exportREST(ctx context.Context, p *person) (err error) {
	own, err := p.ownCatalog(ctx)
	if err != nil {
		return err
	}
	target, err := p.otherCatalog(ctx)
	if err != nil {
		return err
	}
	w := p.transfer
	run := &transfer.Run{
		Source: own, Target: target, Jobs: w.Jobs, Writable: true, Progress: newBar(p).step,
		Choice: transfer.Choice{Include: w.Include, Exclude: w.Exclude, Into: w.Into},
	}
	if p.DryRun {
		run.Journal = &transfer.Journal{}
		plan, err := run.Plan(ctx)
		if err == nil {
			err = p.printImportPlan(plan)
		}
		return err
	}
	if run.Journal, err = transfer.OpenJournal(w.State, *run); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, run.Journal.Close()) }()
	plan, err := run.Plan(ctx)
	if err == nil {
		plan, err = run.Apply(ctx, plan)
	}
	if err != nil {
		return err
	}
	return p.finish(ctx, run, plan, target.Properties)
}

// exportMark is the file that marks a folder as made by export dir.
const exportMark = "moorage-export.json"

// exportDir is the command export dir.
func exportDir(ctx context.Context, p *person) error {
	own, plan, err := p.exported(ctx)
	if err != nil {
		return err
	}
	if err := unexported(plan); err != nil {
		return err
	}
	namespaces, err := own.Namespaces(ctx)
	if err != nil {
		return err
	}
	files := map[string]any{exportMark: map[string]any{"format": 1, "warehouse": p.Warehouse}}
	for _, n := range namespaces {
		files[filepath.Join(append(foldersOf(n.Levels), "namespace.json")...)] = n
	}
	for _, each := range plan {
		o := each.Object
		name := fileNameOf(o.Name) + "." + o.Kind() + ".json"
		files[filepath.Join(append(foldersOf(o.Namespace), name)...)] = struct {
			listedObject
			Facts *client.Facts `json:"facts"`
		}{listedOf(o), o.Facts}
	}
	if err := writeExport(p.transfer.Place, files); err != nil {
		return err
	}
	p.done("Wrote %s and %s to %s.", moorage.Counted(len(namespaces), "namespace"),
		moorage.Counted(len(plan), "object"), p.transfer.Place)
	return nil
}

func foldersOf(levels []string) []string {
	folders := make([]string, len(levels))
	for i, level := range levels {
		folders[i] = fileNameOf(level)
	}
	return folders
}

// fileNameOf returns a file or folder name for an object's name. Different objects get different
// file names, even on disks that ignore case.
func fileNameOf(name string) string {
	var text strings.Builder
	for _, b := range []byte(name) {
		switch {
		case b >= 'a' && b <= 'z', b >= '0' && b <= '9', b == '_', b == '-':
			text.WriteByte(b)
		default:
			fmt.Fprintf(&text, "%%%02x", b)
		}
	}
	return text.String()
}

// writeExport writes the files of an export to folder, and removes all other files except those
// whose names begin with a dot.
func writeExport(folder string, files map[string]any) error {
	present, err := os.ReadDir(folder)
	switch {
	case errors.Is(err, os.ErrNotExist), err == nil && len(present) == 0:
	case err != nil:
		return err
	default:
		if _, err := os.Stat(filepath.Join(folder, exportMark)); err != nil {
			return cli.Conflict("%s has other files: name an empty folder, or one that this command made", folder)
		}
	}
	for _, each := range present {
		if strings.HasPrefix(each.Name(), ".") { // such as .git
			continue
		}
		if err := os.RemoveAll(filepath.Join(folder, each.Name())); err != nil {
			return err
		}
	}
	names := make([]string, 0, len(files))
	for name := range files {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		text, err := json.MarshalIndent(files[name], "", "  ")
		if err != nil {
			return err
		}
		path := filepath.Join(folder, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(path, append(text, '\n'), 0o644); err != nil {
			return err
		}
	}
	return nil
}
