package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"moorage"

	terminal "golang.org/x/term"

	"moorage/internal/cli"
	"moorage/internal/term"
	"moorage/management/client"
)

// person is one run of a command for people. It has the catalog that the command calls, and the
// output.
type person struct {
	cli.PeopleWords

	transfer cli.TransferWords

	env    cli.Environment
	out    *term.Output
	server *client.Client
	uri    string // address of the server; empty if the process itself answers

	leftOut bool // printName has left out a name
}

// people returns a command that prepares a person, and passes it to do.
func people(do func(ctx context.Context, p *person) error) cli.Action {
	return func(ctx context.Context, c cli.Config, env cli.Environment) error {
		return withServer(ctx, c, env, func(server *client.Client) error {
			p := newPerson(c, env, server)
			err := p.explained(ctx, do(ctx, p))
			if err == nil && p.leftOut {
				err = errLeftOut
			}
			return err
		})
	}
}

func newPerson(c cli.Config, env cli.Environment, server *client.Client) *person {
	p := &person{PeopleWords: c.People, transfer: c.Transfer, env: env, server: server, uri: c.URI}
	if p.Warehouse == "" {
		p.Warehouse = defaultWarehouse
	}
	p.out = term.To(env.Stdout, env.Environ, term.When(c.People.Color), env.Now())
	if env.Columns > 0 {
		p.out.IsTerminal, p.out.Width = true, env.Columns
	}
	if p.Output == cli.OutputWide {
		p.out.Width = 0
	}
	return p
}

// warehousesShown is the maximum number of names of warehouses in an error.
const warehousesShown = 10

// explained extends an error about a warehouse that does not exist: it adds the names of the
// warehouses that the caller may list.
func (p *person) explained(ctx context.Context, err error) error {
	answered, ok := errors.AsType[*client.Error](err)
	if !ok || answered.Type != typeNoWarehouse {
		return err
	}
	_, name, _ := strings.Cut(answered.Message, ": ")
	var page client.WarehousesPage
	query := url.Values{"pageSize": {strconv.Itoa(warehousesShown)}}
	text := answered.Message + "."
	if p.get(ctx, client.RootManagement+client.Path("warehouses"), query, &page) == nil && len(page.Warehouses) > 0 {
		var names []string
		for _, each := range page.Warehouses {
			names = append(names, each.Name)
		}
		text += " There are: " + strings.Join(names, ", ") + "."
	}
	return cli.No("%s Make one: moorage warehouse create %s --location URI", text, name)
}

// paged calls print with an output that may lead to a pager.
func (p *person) paged(print func(*term.Output) error) error {
	if p.NoPager || p.Output != cli.OutputTable {
		return print(p.out)
	}
	return p.out.Paged(p.env.Environ, print)
}

// done prints one line about the effect of a change, unless --quiet is set.
func (p *person) done(format string, args ...any) {
	if !p.Quiet {
		fmt.Fprintln(p.out, term.Clean(fmt.Sprintf(format, args...)))
	}
}

// progress starts to show the progress of the command on standard error. total is the number of
// steps, or 0 if that is not known. Until end is called, the line is cleared before each output of
// p. end may be called again.
func (p *person) progress(what string, total int) (bar *term.Progress, end func()) {
	out := p.env.Stderr
	if p.Quiet {
		out = io.Discard
	}
	bar = term.StartProgress(out, p.env.Environ, what, total)
	printed := p.out.Writer
	p.out.Writer = bar.Over(printed)
	return bar, func() {
		bar.End()
		p.out.Writer = printed
	}
}

// get sends a read-only request and decodes the answer.
func (p *person) get(ctx context.Context, path string, query url.Values, answer any) error {
	return p.server.Do(ctx, client.Request{Method: http.MethodGet, Whole: path, Query: query}, answer)
}

// change sends a request that changes something. With --dry-run, it only prints the request.
func (p *person) change(ctx context.Context, method, path string, query url.Values, body, answer any) error {
	if p.DryRun {
		return p.printRequest(method, path, query, body)
	}
	return p.server.Do(ctx, client.Request{Method: method, Whole: path, Query: query, Body: body}, answer)
}

// printRequest prints a request that is not sent.
func (p *person) printRequest(method, path string, query url.Values, body any) error {
	if len(query) > 0 {
		path += "?" + query.Encode()
	}
	fmt.Fprintf(p.out, "%s %s\n", method, path)
	if body == nil {
		return nil
	}
	return printJSON(p.out, body)
}

// errUnasked ends a command that would have to ask the user, but has no terminal. Nothing was sent.
var errUnasked = cli.Usage("this needs an answer, and there is no terminal: add --yes")

// confirm prints question and waits for a yes. If word is not empty, the user must type it instead.
// confirm returns errNotDone if the user declines, or if ctx ends first.
func (p *person) confirm(ctx context.Context, question, word string) error {
	if p.Yes || p.DryRun {
		return nil
	}
	if !p.canAsk() {
		return errUnasked
	}
	if word == "" {
		question += " Go on? [y/N]"
	} else {
		question += " Type " + word + " to go on:"
	}
	fmt.Fprint(p.env.Stderr, question+" ")
	type reply struct {
		text string
		err  error
	}
	typed := make(chan reply, 1)
	go func() { // a read cannot be interrupted: it may last until the process ends
		text, err := bufio.NewReader(p.env.Stdin).ReadString('\n')
		typed <- reply{strings.TrimSpace(text), err}
	}()
	select {
	case <-ctx.Done():
		fmt.Fprintln(p.env.Stderr)
	case answer := <-typed:
		if answer.err != nil && !errors.Is(answer.err, io.EOF) {
			return answer.err
		}
		isYes := strings.EqualFold(answer.text, "y") || strings.EqualFold(answer.text, "yes")
		if word != "" {
			isYes = answer.text == word
		}
		if isYes {
			return nil
		}
	}
	return errNotDone
}

// canAsk reports whether there is a user who can answer questions.
func (p *person) canAsk() bool {
	if p.env.Stdin == nil {
		return false
	}
	if p.env.Columns > 0 {
		return true // a test acts as the terminal
	}
	file, ok := p.env.Stdin.(*os.File)
	return ok && terminal.IsTerminal(int(file.Fd())) && p.out.IsTerminal
}

// errNotDone ends a command if the user declines.
var errNotDone = cli.No("nothing was changed")

// rows prints a list in the form of --output. Each row has its name, its JSON and its cells.
func (p *person) rows(header []string, rows []row) error {
	switch p.Output {
	case cli.OutputNames:
		for _, each := range rows {
			p.printName(each.name)
		}
		return nil
	case cli.OutputLines:
		encoder := json.NewEncoder(p.out)
		for _, each := range rows {
			if err := encoder.Encode(each.json); err != nil {
				return err
			}
		}
		return nil
	case cli.OutputJSON:
		all := make([]any, 0, len(rows))
		for _, each := range rows {
			all = append(all, each.json)
		}
		return printJSON(p.out, all)
	}
	cells := make([][]term.Cell, 0, len(rows))
	for _, each := range rows {
		cells = append(cells, each.cells)
	}
	return p.paged(func(out *term.Output) error { return out.Table(header, cells) })
}

// printName prints a line with a name, for other programs to read. A name with control characters
// is left out, because a program could take it for several names.
func (p *person) printName(name string) {
	if strings.ContainsFunc(name, unicode.IsControl) {
		fmt.Fprintf(p.env.Stderr, "left out, because it has control characters: %s\n", term.Clean(name))
		p.leftOut = true
		return
	}
	fmt.Fprintln(p.out, name)
}

// errLeftOut ends a command that left out names.
var errLeftOut = errors.New("names with control characters are left out: --output jsonl has them")

// row is an object in a list.
type row struct {
	name  string
	json  any
	cells []term.Cell
}

// object is the result of resolving a name.
type object struct {
	kind       string // "warehouse", "namespace", "table" or "view"
	warehouse  string
	namespace  []string
	name       string // of a table or view
	loaded     client.Loaded
	properties map[string]string // of a namespace
	row        client.Row        // its row in a list; set only if the object may be dropped
}

// The kinds of objects.
const (
	kindWarehouse = "warehouse"
	kindNamespace = "namespace"
	kindTable     = "table"
	kindView      = "view"
)

// levels returns the levels of the namespace, and then the name.
func (o object) levels() []string {
	if o.name == "" {
		return o.namespace
	}
	return append(o.namespace[:len(o.namespace):len(o.namespace)], o.name)
}

// String returns the name in the form of the command line, without the warehouse.
func (o object) String() string {
	if o.kind == kindWarehouse {
		return o.warehouse + "/"
	}
	return moorage.PersonLevels(o.levels()...)
}

// path returns the path of the object's REST operations.
func (o object) path() string {
	switch o.kind {
	case kindTable:
		return client.TablePath(o.warehouse, o.namespace, o.name)
	case kindView:
		return client.ViewPath(o.warehouse, o.namespace, o.name)
	}
	return client.NamespacePath(o.warehouse, o.namespace)
}

// warehouseOf returns the warehouse of a name.
func (p *person) warehouseOf(n cli.Name) string {
	if n.Warehouse != "" {
		return n.Warehouse
	}
	return p.Warehouse
}

// find returns the object that a name refers to. A table takes precedence over a view, and both
// over a namespace. kinds are the kinds that the object may have. If kinds is empty, any kind will
// do.
func (p *person) find(ctx context.Context, n cli.Name, kinds ...string) (object, error) {
	o := object{warehouse: p.warehouseOf(n), namespace: n.Levels}
	isWanted := func(kind string) bool { return len(kinds) == 0 || slices.Contains(kinds, kind) }
	if n.IsAll {
		return o, cli.Usage("a single slash means all warehouses, and this command takes one object")
	}
	if len(n.Levels) == 0 {
		o.kind = kindWarehouse
		if !isWanted(kindWarehouse) {
			return o, cli.Usage(n.String() + " is a warehouse; this command takes a " + strings.Join(kinds, " or a "))
		}
		return o, nil
	}
	if last := len(n.Levels) - 1; last > 0 && !n.IsNamespace {
		o.namespace, o.name = n.Levels[:last], n.Levels[last]
		for _, kind := range []string{kindTable, kindView} {
			o.kind = kind
			if !isWanted(kind) {
				continue
			}
			query := url.Values(nil)
			if kind == kindTable {
				query = url.Values{"snapshots": {"all"}}
			}
			err := p.get(ctx, o.path(), query, &o.loaded)
			if err == nil || !isMissing(err) {
				return o, err
			}
		}
		o.namespace, o.name = n.Levels, ""
	}
	o.kind = kindNamespace
	if isWanted(kindNamespace) {
		var found client.LoadedNamespace
		err := p.get(ctx, o.path(), nil, &found)
		o.properties = found.Properties
		if err == nil || !isMissing(err) {
			return o, err
		}
	}
	return o, p.missing(ctx, n, kinds)
}

// isMissing reports whether a server answered that something does not exist.
func isMissing(err error) bool {
	answered, ok := errors.AsType[*client.Error](err)
	return ok && answered.IsMissing() && answered.Type != typeNoWarehouse
}

// typeNoWarehouse is the type of the answer if the warehouse does not exist.
const typeNoWarehouse = "NoSuchWarehouseException"

// closeMax is the maximum number of similar names in an error.
const closeMax = 3

// missing returns the error for a name that refers to nothing. The error lists similar names.
func (p *person) missing(ctx context.Context, n cli.Name, kinds []string) error {
	name := moorage.PersonLevels(n.Levels...)
	// There may be an object with this name and another kind.
	other, err := p.rowOf(ctx, object{warehouse: p.warehouseOf(n), namespace: n.Levels})
	if err == nil && len(kinds) > 0 && !slices.Contains(kinds, other.Kind) {
		return cli.No("%s is a %s; this command takes a %s", name, other.Kind, strings.Join(kinds, " or a "))
	}
	if n.IsNamespace || len(n.Levels) == 1 {
		kinds = []string{kindNamespace}
	}
	what := "Table, view or namespace"
	if len(kinds) == 1 || len(kinds) == 2 {
		what = strings.ToUpper(kinds[0][:1]) + strings.Join(kinds, " or ")[1:]
	}
	text := fmt.Sprintf("%s does not exist: %s", what, name)
	last := len(n.Levels) - 1
	var near []string
	for _, each := range p.children(ctx, p.warehouseOf(n), n.Levels[:last]) {
		if cli.IsNear(n.Levels[last], each) && len(near) < closeMax {
			near = append(near, moorage.PersonLevels(append(n.Levels[:last:last], each)...))
		}
	}
	if dropped := p.wasDropped(ctx, n); dropped != "" {
		return cli.No("%s. %s", text, dropped)
	}
	if len(near) > 0 {
		text += ". Close: " + strings.Join(near, ", ")
	}
	return cli.No("%s", text)
}

// children returns the names in a namespace, but only the first page of each list. It ignores
// failures, because the names are only suggestions.
func (p *person) children(ctx context.Context, warehouse string, namespace []string) (names []string) {
	query := url.Values{}
	if len(namespace) > 0 {
		query.Set("parent", client.JoinLevels(namespace))
		for _, list := range []string{"tables", "views"} {
			var page client.IdentifiersPage
			path := client.NamespacePath(warehouse, namespace) + "/" + list
			if p.get(ctx, path, url.Values{"pageSize": {"1000"}}, &page) == nil {
				for _, each := range page.Identifiers {
					names = append(names, each.Name)
				}
			}
		}
	}
	var page client.NamespacesPage
	query.Set("pageSize", "1000")
	if p.get(ctx, client.IcebergPath(warehouse, "namespaces"), query, &page) == nil {
		for _, each := range page.Namespaces {
			names = append(names, each[len(each)-1])
		}
	}
	return names
}
