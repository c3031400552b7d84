package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"moorage"
	"moorage/ascode"
	"moorage/ascode/live"
	"moorage/internal/cli"
	"moorage/internal/term"
)

// isCodeFile reports whether a file in a folder is one of the catalog's files, by its name.
func isCodeFile(name string) bool {
	return (strings.HasSuffix(name, ".yaml") || strings.HasSuffix(name, ".yml")) && !strings.HasPrefix(name, ".")
}

// codeIn decodes the files, and the files in the folders, on the command line.
func (p *person) codeIn() (ascode.Catalog, error) {
	var files []ascode.File
	for _, word := range p.Code.Files {
		err := filepath.WalkDir(word, func(path string, entry fs.DirEntry, err error) error {
			switch {
			case err != nil:
				return err
			case entry.IsDir() && path != word && strings.HasPrefix(entry.Name(), "."):
				return filepath.SkipDir
			case entry.IsDir() || path != word && !isCodeFile(entry.Name()):
				return nil
			}
			text, err := os.ReadFile(path)
			files = append(files, ascode.File{Name: path, Text: text})
			return err
		})
		if broken, ok := errors.AsType[*fs.PathError](err); ok {
			return ascode.Catalog{}, fmt.Errorf("read %s: %w", broken.Path, broken.Err)
		}
		if err != nil {
			return ascode.Catalog{}, err
		}
	}
	if len(files) == 0 {
		return ascode.Catalog{}, fmt.Errorf("there are no .yaml files in %s", strings.Join(p.Code.Files, ", "))
	}
	return ascode.Decode(files...)
}

// secretIn returns the secret in an environment variable. Its errors contain no part of the secret.
func (p *person) secretIn(name string) (secret map[string]string, err error) {
	if strings.ContainsAny(name, "{}\"=: \t\n") { // it may be the secret itself
		return nil, errors.New("the key env of a secret takes the name of an environment variable, and no secret")
	}
	text, isSet := p.variable(name)
	if !isSet {
		return nil, fmt.Errorf("the environment variable %s is not set", name)
	}
	if json.Unmarshal([]byte(text), &secret) != nil || len(secret) == 0 {
		return nil, fmt.Errorf("the environment variable %s has no JSON object of texts, such as "+
			`{"access-key-id": "...", "secret-access-key": "..."}`, name)
	}
	return secret, nil
}

func (p *person) variable(name string) (value string, isSet bool) {
	for _, each := range p.env.Environ {
		if key, text, _ := strings.Cut(each, "="); key == name && text != "" {
			value, isSet = text, true
		}
	}
	return value, isSet
}

// codePlan is a plan, with the context of the command.
type codePlan struct {
	ascode.Plan

	catalog ascode.Catalog
	server  *live.Server
	missing []string // secrets that are not set
}

// makeCodePlan reads the files and the server's state, and compares them.
func (p *person) makeCodePlan(ctx context.Context) (made codePlan, err error) {
	if made.catalog, err = p.codeIn(); err != nil {
		return made, err
	}
	made.server = &live.Server{Client: p.server, Secret: p.secretIn, GivesUp: p.Code.GiveUp}
	extent := live.Named
	if p.Code.Prune {
		extent = live.Whole
	}
	access := made.catalog.DescribesAccess()
	read, err := made.server.Read(ctx, made.catalog.World(), extent, access)
	switch {
	case err != nil:
		return made, err
	case access && !read.IsAccessOn:
		return made, errors.New("the files describe roles, grants or owners, and the server has no access control: " +
			"switch it on with moorage access enable")
	}
	made.Plan, err = ascode.Make(made.catalog, read.World, ascode.Options{
		Prune: p.Code.Prune, GiveUp: p.Code.GiveUp, Caller: read.Caller,
	})
	for _, name := range made.Secrets {
		if _, err := p.secretIn(name); err != nil {
			made.missing = append(made.missing, err.Error())
		}
	}
	return made, err
}

// planCode is the command plan.
func planCode(ctx context.Context, p *person) error {
	if p.Code.Schema {
		return printJSON(p.out, ascode.Schema())
	}
	plan, err := p.makeCodePlan(ctx)
	if err != nil {
		return err
	}
	if err := p.printPlan(plan); err != nil {
		return err
	}
	switch {
	case plan.IsEmpty():
		return nil
	case len(plan.Steps) == 0:
		return cli.No("what the files describe does not all exist yet")
	}
	return cli.No("the server differs from the files: moorage apply changes it")
}

// shownPlan is a plan as JSON. Its lists are never null.
type shownPlan struct {
	MissingSecrets []string      `json:"missing-secrets"`
	Changes        []ascode.Line `json:"changes"`
	Waiting        []string      `json:"waiting"` // tables and views that do not exist
	Stays          []shownStay   `json:"stays"`
	Kept           int           `json:"kept"`
}

// shownStay is an object that --prune does not remove.
type shownStay struct {
	Object string `json:"object"`
	Why    string `json:"why"`
}

func shownOf(plan codePlan) shownPlan {
	shown := shownPlan{
		MissingSecrets: append([]string{}, plan.missing...), Changes: append([]ascode.Line{}, plan.Lines()...),
		Waiting: []string{}, Stays: []shownStay{}, Kept: plan.Kept,
	}
	for _, each := range plan.Waiting {
		shown.Waiting = append(shown.Waiting, each.String())
	}
	for _, each := range plan.Stays {
		shown.Stays = append(shown.Stays, shownStay{each.Object.String(), each.Why})
	}
	return shown
}

// printPlan prints a plan: missing secrets first.
func (p *person) printPlan(plan codePlan) error {
	if p.Output == cli.OutputJSON {
		return printJSON(p.out, shownOf(plan))
	}
	return p.paged(func(out *term.Output) error {
		for _, each := range plan.missing {
			fmt.Fprintf(out, "missing secret: %s\n", term.Clean(each))
		}
		styles := map[string]term.Style{"+": term.Good, "-": term.Bad, "~": term.Warning}
		for _, line := range plan.Lines() {
			sign := line.Sign
			if sign == "" {
				sign = " "
			}
			indent := ""
			if line.Inner {
				indent = "  "
			}
			fmt.Fprintf(out, "%s%s %s\n", indent, out.Paint(styles[line.Sign], sign), term.Clean(line.Text))
		}
		for _, each := range plan.Waiting {
			fmt.Fprintf(out, "%s does not exist: an engine makes it; apply again then\n", term.Clean(each.String()))
		}
		for _, each := range plan.Stays {
			fmt.Fprintf(out, "%s stays: %s\n", term.Clean(each.Object.String()), term.Clean(each.Why))
		}
		if len(plan.Steps) > 0 {
			fmt.Fprintln(out, plan.Summary())
		} else {
			fmt.Fprintln(out, "Nothing to change.")
		}
		if plan.Kept > 0 {
			fmt.Fprintf(out, "Only on the server, and kept: %d. --prune removes them.\n", plan.Kept)
		}
		return nil
	})
}

// applyCode is the command apply.
func applyCode(ctx context.Context, p *person) error {
	plan, err := p.makeCodePlan(ctx)
	if err != nil {
		return err
	}
	if err := p.printPlan(plan); err != nil {
		return err
	}
	if len(plan.missing) > 0 {
		return errors.New("secrets are missing, so nothing is changed: set them in the environment")
	}
	if p.DryRun {
		for _, step := range plan.Steps {
			p.done("would %s", step)
		}
		return nil
	}
	if len(plan.Steps) > 0 {
		if err := p.confirm(ctx, fmt.Sprintf("%s.", moorage.Counted(len(plan.Steps), "step")), ""); err != nil {
			return err
		}
	}
	for i, step := range plan.Steps {
		err := plan.server.Make(ctx, plan.catalog, step)
		if conflict, ok := errors.AsType[*live.Conflict](err); ok {
			return cli.Conflict("%s. %d of %d steps are made; look at moorage plan, then apply again", conflict, i,
				len(plan.Steps))
		}
		if err != nil {
			return fmt.Errorf("step %d of %d, %s: %w", i+1, len(plan.Steps), step, err)
		}
		p.done("%d/%d %s", i+1, len(plan.Steps), step)
	}
	if len(plan.Waiting) > 0 {
		return cli.No("all that exists is as the files describe: apply again when the rest exists")
	}
	return nil
}

// exportCode is the command export.
func exportCode(ctx context.Context, p *person) error {
	server := &live.Server{Client: p.server}
	extent := live.Whole
	if p.Code.Tables {
		extent = live.WithTables
	}
	read, err := server.Read(ctx, nil, extent, true)
	if err != nil {
		return err
	}
	text, err := ascode.Encode(ascode.CatalogOf(live.Shown(read.World)))
	if err != nil {
		return err
	}
	_, err = p.out.Write(text)
	return err
}
