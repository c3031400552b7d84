package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"moorage"
	"moorage/internal/cli"
	"moorage/internal/term"
	"moorage/maintenance/policy"
	"moorage/management/client"
	"moorage/transfer"
	"moorage/transfer/sqlcatalog"
)

// overClient sends requests through a client, which authenticates them. The server may be in this
// process.
type overClient struct{ server *client.Client }

// RoundTrip implements http.RoundTripper.
func (o overClient) RoundTrip(r *http.Request) (*http.Response, error) {
	var body io.Reader = http.NoBody
	if r.Body != nil {
		body = r.Body
		defer r.Body.Close()
	}
	return o.server.Send(r.Context(), r.Method, r.URL.RequestURI(), r.Header, body)
}

// ownCatalog returns the warehouse of the command as a REST catalog.
func (p *person) ownCatalog(ctx context.Context) (*transfer.REST, error) {
	return transfer.OpenREST(ctx, transfer.Access{
		URI: "http://moorage", Warehouse: p.Warehouse, Now: p.env.Now,
		HTTP: &http.Client{Transport: overClient{p.server}}, Patience: transfer.NewPatience(newJitter()),
	})
}

// otherCatalog returns the REST catalog that the words name.
func (p *person) otherCatalog(ctx context.Context) (*transfer.REST, error) {
	w := p.transfer
	header := make(http.Header)
	for name, values := range w.Header {
		header[http.CanonicalHeaderKey(name)] = values
	}
	return transfer.OpenREST(ctx, transfer.Access{
		URI: w.Place, Warehouse: w.Warehouse, Prefix: w.Prefix, Token: w.Token, Credential: w.Credential,
		OAuthURI: w.OAuthURI, Scope: w.Scope, Header: header, Now: p.env.Now,
		Patience: transfer.NewPatience(newJitter()),
	})
}

// source opens the catalog that an import reads. The caller calls done.
func (p *person) source(ctx context.Context) (source transfer.Source, done func() error, err error) {
	done = func() error { return nil }
	place := p.transfer.Place
	switch p.transfer.Kind {
	case cli.TransferREST:
		source, err = p.otherCatalog(ctx)
	case cli.TransferSQL:
		var found *sqlcatalog.Catalog
		if found, err = sqlcatalog.Open(ctx, place, p.transfer.Catalog); err == nil {
			source, done = found, found.Close
		}
	case cli.TransferFiles:
		source = transfer.OpenFiles(p.server, p.Warehouse, place, transfer.NewPatience(newJitter()))
	default:
		source, err = p.listed(place)
	}
	return source, done, err
}

// listed reads the list of an import.
func (p *person) listed(place string) (*transfer.List, error) {
	levels := func(text string) ([]string, error) {
		name, err := cli.ParseName(text)
		if err == nil && (name.Warehouse != "" || name.IsAll) {
			err = fmt.Errorf("%q is no namespace", text)
		}
		return name.Levels, err
	}
	if place == "-" {
		return transfer.ReadList("a list", p.env.Stdin, levels)
	}
	file, err := os.Open(place)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return transfer.ReadList(place, file, levels)
}

// run returns a run from source to the warehouse of the command.
func (p *person) run(ctx context.Context, source transfer.Source) (*transfer.Run, *transfer.REST, error) {
	own, err := p.ownCatalog(ctx)
	if err != nil {
		return nil, nil, err
	}
	w := p.transfer
	target := transfer.OpenServer(p.server, p.Warehouse, own)
	target.SourceFrozen = w.SourceFrozen
	run := &transfer.Run{
		Source: source, Target: target, Jobs: w.Jobs, Writable: w.Writable,
		Choice:   transfer.Choice{Include: w.Include, Exclude: w.Exclude, Into: w.Into},
		Progress: newBar(p).step,
	}
	return run, own, nil
}

// importObjects is the commands import rest, sql, files and list.
func importObjects(ctx context.Context, p *person) error {
	source, done, err := p.source(ctx)
	if err != nil {
		return err
	}
	defer done()
	run, own, err := p.run(ctx, source)
	if err != nil {
		return err
	}
	if p.DryRun {
		run.Journal = &transfer.Journal{}
		plan, err := run.Plan(ctx)
		if err == nil {
			err = p.printImportPlan(plan)
		}
		return err
	}
	for {
		began := p.env.Now()
		err := p.importOnce(ctx, run, own)
		if p.transfer.Watch == 0 {
			return err
		}
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			fmt.Fprintln(p.env.Stderr, "moorage: "+term.Clean(err.Error()))
		}
		p.done("%s: the run took %s; the next one begins in %s.", p.out.Time(p.env.Now()),
			p.env.Now().Sub(began).Round(time.Millisecond), p.transfer.Watch)
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(p.transfer.Watch):
		}
	}
}

// importOnce plans, registers and compares.
func (p *person) importOnce(ctx context.Context, run *transfer.Run, own *transfer.REST) (err error) {
	if run.Journal, err = transfer.OpenJournal(p.transfer.State, *run); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, run.Journal.Close()) }()
	plan, err := run.Plan(ctx)
	if err != nil {
		return err
	}
	if run.Writable && !p.transfer.SourceFrozen {
		if err := p.refuseDeletions(ctx, plan, run.Choice.Into); err != nil {
			return err
		}
	}
	plan, err = run.Apply(ctx, plan)
	if err != nil {
		return err
	}
	return p.finish(ctx, run, plan, own.Properties)
}

// finish compares what arrived, and prints the result.
func (p *person) finish(ctx context.Context, run *transfer.Run, plan []transfer.Planned,
	properties func(context.Context, []string) (map[string]string, error)) error {
	verified, err := run.Verify(ctx, plan)
	if err != nil {
		return err
	}
	namespaces, err := run.VerifyNamespaces(ctx, properties)
	if err != nil {
		return err
	}
	if err := run.Finish(); err != nil {
		return err
	}
	return p.printResult(arrival{plan, verified, namespaces})
}

// refuseDeletions refuses an import that makes ordinary tables while maintenance could delete files
// that the source still needs.
func (p *person) refuseDeletions(ctx context.Context, plan []transfer.Planned, into []string) error {
	scopes := []client.Object{{}, {Warehouse: p.Warehouse}} // the server, and the warehouse
	met := make(map[string]bool)
	for _, each := range plan {
		levels := slices.Concat(into, each.Object.Namespace)
		for depth := 1; depth <= len(levels); depth++ {
			if key := strings.Join(levels[:depth], "\x1f"); !met[key] {
				met[key] = true
				scopes = append(scopes, client.Object{Warehouse: p.Warehouse, Namespace: levels[:depth]})
			}
		}
	}
	for _, scope := range scopes {
		status, err := p.server.MaintenanceStatus(ctx, scope)
		refused, answered := errors.AsType[*client.Error](err)
		switch {
		case answered && refused.IsMissing():
			continue
		case err != nil:
			return fmt.Errorf("read whether maintenance deletes files of %s: %w; --source-frozen leaves that out",
				scope, err)
		}
		for name, found := range status.Policies {
			if found.Status == string(policy.Enabled) && name != string(policy.Compaction) {
				kind := cmp.Or(string(policy.Type(name).Kind()), name)
				return cli.Conflict("%s of %s may delete files that the source still needs: leave --writable out, or "+
					"add --source-frozen when nothing reads or writes at the source any more", kind, scope)
			}
		}
	}
	return nil
}

// printImportPlan prints a plan. The answer is no if an object is neither new nor the same.
func (p *person) printImportPlan(plan []transfer.Planned) error {
	var rows []row
	counts := make(map[transfer.Status]int)
	others := 0
	for _, each := range plan {
		counts[each.Status]++
		if each.Status != transfer.StatusNew && each.Status != transfer.StatusSame {
			others++
		}
		style := term.Good
		if !each.Arrives() {
			style = term.Bad
		}
		rows = append(rows, row{name: each.Object.String(), json: each, cells: []term.Cell{
			{Text: string(each.Status), Style: style}, {Text: each.Object.Kind(), Style: term.Faint},
			{Text: each.Object.String(), Style: term.Name}, term.Text(each.Why),
		}})
	}
	if err := p.rows([]string{"STATUS", "KIND", "NAME", "WHY"}, rows); err != nil {
		return err
	}
	if p.Output == cli.OutputTable || p.Output == cli.OutputWide {
		p.done("%s.", countsOf(counts, len(plan)))
	}
	if others > 0 {
		return cli.No("%d of %s neither new nor the same", others, moorage.Counted(len(plan), "object"))
	}
	return nil
}

// countsOf describes how many objects have each status.
func countsOf(counts map[transfer.Status]int, all int) string {
	var parts []string
	for status := range counts {
		parts = append(parts, fmt.Sprintf("%d %s", counts[status], status))
	}
	slices.Sort(parts)
	text := moorage.Counted(all, "object")
	if len(parts) > 0 {
		text += ": " + strings.Join(parts, ", ")
	}
	return text
}

// arrival is what a run did.
type arrival struct {
	plan       []transfer.Planned
	verified   []transfer.Verified
	namespaces []transfer.Difference
}

// arrivalJSON is the form of an arrival in JSON.
type arrivalJSON struct {
	Plan       []transfer.Planned    `json:"plan"`
	Verified   []transfer.Verified   `json:"verified"`
	Namespaces []transfer.Difference `json:"namespace-differences,omitempty"`
}

// printResult prints what did not arrive, and what differs. The answer is no if there is any.
func (p *person) printResult(r arrival) error {
	missing, unlike := 0, 0
	counts := make(map[transfer.Status]int)
	var rows []row
	add := func(what, kind, name, why string, value any) {
		rows = append(rows, row{name: name, json: value, cells: []term.Cell{
			{Text: what, Style: term.Bad}, {Text: kind, Style: term.Faint}, {Text: name, Style: term.Name},
			term.Text(why),
		}})
	}
	for _, each := range r.plan {
		if counts[each.Status]++; !each.Arrives() {
			missing++
			add(string(each.Status), each.Object.Kind(), each.Object.String(), each.Why, each)
		}
	}
	for _, each := range r.verified {
		if !each.IsAlike() {
			unlike++
			add("differs", each.Object.Kind(), each.Object.String(), differencesOf(each), each)
		}
	}
	for _, each := range r.namespaces {
		add("differs", "namespace", each.Member, each.Source+" at the source, "+each.Target+" here", each)
	}
	var err error
	switch {
	case p.Output == cli.OutputJSON:
		err = printJSON(p.out, arrivalJSON{r.plan, r.verified, r.namespaces})
	case len(rows) > 0:
		err = p.rows([]string{"STATUS", "KIND", "NAME", "WHY"}, rows)
	}
	if err != nil {
		return err
	}
	if p.Output == cli.OutputTable || p.Output == cli.OutputWide {
		p.done("%s; %d compared, %d alike.", countsOf(counts, len(r.plan)), len(r.verified), len(r.verified)-unlike)
	}
	if differing := unlike + len(r.namespaces); missing+differing > 0 {
		return cli.No("%d did not arrive, and %s differ", missing, moorage.Counted(differing, "object"))
	}
	return nil
}

// differencesOf describes how an object differs.
func differencesOf(v transfer.Verified) string {
	if v.Why != "" {
		return v.Why
	}
	var parts []string
	for _, d := range v.Differences {
		parts = append(parts, fmt.Sprintf("%s: %s there, %s here", d.Member, d.Source, d.Target))
	}
	return strings.Join(parts, "; ")
}

// cutOver is the command import cutover.
func cutOver(ctx context.Context, p *person) error {
	source, done, err := p.source(ctx)
	if err != nil {
		return err
	}
	defer done()
	run, _, err := p.run(ctx, source)
	if err != nil {
		return err
	}
	question := "Mirrors of " + source.Name() + " become tables that are written here."
	if p.transfer.Detach {
		question += " They leave the source first; their files stay."
	}
	if p.DryRun {
		p.done("%s", question)
		return nil
	}
	if err := p.confirm(ctx, question, ""); err != nil {
		return err
	}
	if run.Journal, err = transfer.OpenJournal(p.transfer.State, *run); err != nil {
		return err
	}
	defer run.Journal.Close()
	ended, err := run.Cutover(ctx, p.transfer.Detach)
	if err != nil {
		return err
	}
	if err := run.Finish(); err != nil {
		return err
	}
	var rows []row
	for _, each := range ended {
		if !each.Ended {
			rows = append(rows, row{name: each.Object.String(), json: each, cells: []term.Cell{
				{Text: "a mirror still", Style: term.Bad}, {Text: each.Object.String(), Style: term.Name},
				term.Text(differencesOf(each.Verified)),
			}})
		}
	}
	gone, err := p.goneMirrors(ctx, source.Name(), ended)
	if err != nil {
		return err
	}
	rows = append(rows, gone...)
	switch {
	case p.Output == cli.OutputJSON:
		err = printJSON(p.out, ended)
	case len(rows) > 0:
		err = p.rows([]string{"STATUS", "NAME", "WHY"}, rows)
	}
	if err != nil {
		return err
	}
	if len(rows) > 0 {
		return cli.No("%s cut over, and %s not", moorage.Counted(len(ended)-len(rows)+len(gone), "object"),
			moorage.Counted(len(rows), "object"))
	}
	p.done("%s cut over. What clients type now: moorage connect --warehouse %s", moorage.Counted(len(ended), "object"),
		moorage.ShellWord(p.Warehouse))
	return nil
}

// goneMirrors returns rows for the mirrors of source that a cut-over did not meet, because the
// source has them no more. A cut-over of selected objects has no such rows.
func (p *person) goneMirrors(ctx context.Context, source string, met []transfer.CutOver) (rows []row, err error) {
	if len(p.transfer.Include)+len(p.transfer.Exclude) > 0 {
		return nil, nil
	}
	all, err := p.objectsIn(ctx, p.Warehouse, nil, true)
	if err != nil {
		return nil, err
	}
	known := make(map[string]bool)
	for _, each := range met {
		levels := slices.Concat(p.transfer.Into, each.Object.Namespace, []string{each.Object.Name})
		known[moorage.PersonLevels(levels...)] = true
	}
	for _, each := range all {
		name := moorage.PersonLevels(each.Levels()...)
		if each.Mirror != source || known[name] {
			continue
		}
		rows = append(rows, row{name: name, json: each, cells: []term.Cell{
			{Text: "a mirror still", Style: term.Bad}, {Text: name, Style: term.Name},
			term.Text("The source has it no more: moorage api POST /management/v1/mirror/end ends that"),
		}})
	}
	return rows, nil
}

// barEvery is how often progress is printed on a terminal, and elsewhere.
const (
	barEvery     = 200 * time.Millisecond
	barEveryLine = 10 * time.Second
)

// bar prints how far a run has come on the standard error. It is safe for concurrent use.
type bar struct {
	p *person

	mu      sync.Mutex // guards the fields below; leaf
	stage   transfer.Stage
	began   time.Time // of the stage
	printed time.Time
}

func newBar(p *person) *bar { return &bar{p: p} }

// step is a Progress of a run.
func (b *bar) step(stage transfer.Stage, done, all int) {
	if b.p.Quiet {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	now := b.p.env.Now()
	if stage != b.stage {
		b.stage, b.began, b.printed = stage, now, now
	}
	every := barEveryLine
	if b.p.out.IsTerminal {
		every = barEvery
	}
	isLast := done == all && b.p.out.IsTerminal
	if now.Sub(b.printed) < every && !isLast {
		return
	}
	b.printed = now
	text := fmt.Sprintf("%s  %d", stage, done)
	if all > 0 {
		rate := float64(done) / max(now.Sub(b.began).Seconds(), 0.001)
		left := time.Duration(float64(all-done) / max(rate, 0.001) * float64(time.Second)).Round(time.Second)
		text = fmt.Sprintf("%s  %d of %d  %.0f/s  %s left", stage, done, all, rate, left)
	}
	switch {
	case !b.p.out.IsTerminal:
		fmt.Fprintln(b.p.env.Stderr, text)
	case isLast:
		fmt.Fprintf(b.p.env.Stderr, "\r%-60s\r", "")
	default:
		fmt.Fprintf(b.p.env.Stderr, "\r%-60s", text)
	}
}
