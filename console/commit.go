package console

import (
	"cmp"
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"

	"github.com/google/uuid"
	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"

	"moorage/management/client"
)

// prepared is a change that a page shows before the visitor sends it: a POST to the API.
type prepared struct {
	title    string
	says     []g.Node // what the change does
	warnings []string
	option   g.Node // another way to make the change, after the warnings; nil for none
	isFinal  bool   // nothing takes the change back
	method   string // of the request; empty: POST
	path     string // of the request, escaped
	query    url.Values
	body     json.RawMessage
	key      string    // Idempotency-Key, so that a form that is sent twice makes one change
	button   string    // words on the button
	command  shellLine // the same change on the command line; may be the zero value
	back     target    // the page to go back to, before and after
	needs    string    // what the visitor lacks for the change; empty if nothing is known to be missing
	sentTo   place     // what makes the change; empty: placeDo
}

// node returns the prepared change.
func (p prepared) node() g.Node {
	address := p.path
	if len(p.query) > 0 {
		address += "?" + p.query.Encode()
	}
	request := []string{cmp.Or(p.method, http.MethodPost) + " " + address}
	if len(p.body) > 0 {
		shown, _ := pretty(p.body)
		request = append(request, strings.Split(strings.TrimSpace(shown), "\n")...)
	}
	look := "primary"
	if p.isFinal {
		look = "primary danger"
	}
	form := to(cmp.Or(p.sentTo, placeDo), client.Object{}, fieldPath, p.path, fieldQuery, p.query.Encode(),
		fieldBody, string(p.body), fieldKey, p.key, fieldBack, p.back.href())
	return h.Section(h.Class("panel prepared"),
		h.H2(g.Text(p.title)),
		h.Ul(h.Class("says"), g.Map(p.says, func(each g.Node) g.Node { return h.Li(each) })),
		g.Map(p.warnings, func(warning string) g.Node { return h.P(h.Class("warning"), text(warning)) }), p.option,
		act(form, h.Div(h.Class("tools"),
			h.Button(h.Class(look), g.If(p.needs != "", h.Disabled()), text(p.button)),
			g.If(p.needs != "", h.Span(h.Class("minus"), text("needs "+p.needs))),
			link(p.back, h.Class("button"), g.Text("Cancel")))),
		h.H3(g.Text("The request")),
		listing(request),
		g.Iff(p.command.text != "", func() g.Node {
			return g.Group{h.H3(g.Text("The same on the command line")), p.command.node()}
		}),
	)
}

// The fields of the form of a prepared change.
const (
	fieldPath  = "path"
	fieldQuery = "query"
	fieldBody  = "body"
	fieldKey   = "key"
	fieldBack  = "back"
)

// preparedPaths matches the operations that forms may send. The API decides whether the visitor may
// use them.
var preparedPaths = regexp.MustCompile(`^(/management/v1/(undrop|grants|maintenance/(run|pause|resume|rescan)|` +
	`maintenance/jobs/[^/?]+/(retry|cancel|pause|resume)|` +
	`doctor/[^/?]+/(retry|abort)|dropped/[^/?]+/(purge|forget))|/v1/[^/?]+/namespaces/[^/?]+/tables/[^/?]+)$`)

// changePrepared sends a prepared change.
func changePrepared(ctx context.Context, v *visit) (target, error) {
	next := back(v.form.Get(fieldBack))
	v.about = next.object // a failure is about the object of that page
	body := json.RawMessage(v.form.Get(fieldBody))
	query, err := url.ParseQuery(v.form.Get(fieldQuery))
	if err != nil || !json.Valid(body) || !preparedPaths.MatchString(v.form.Get(fieldPath)) {
		return target{}, errIncomplete()
	}
	v.setKey(v.form.Get(fieldKey))
	asked := client.Request{Method: http.MethodPost, Whole: v.form.Get(fieldPath), Query: query, Body: body}
	if err := v.api.Do(ctx, asked, nil); err != nil {
		return target{}, err
	}
	next.more.Set(doneParam, "yes")
	return next, nil
}

// errIncomplete returns the error of a form that no page of the console has made.
func errIncomplete() error {
	return &client.Error{
		Code: http.StatusBadRequest, Message: "The form is not complete. Go back, and prepare the change again.",
	}
}

// doneParam is the parameter of the page after a change.
const doneParam = "done"

// commitOf returns a prepared commit of a table.
func commitOf(o client.Object, requirements, updates any) (prepared, error) {
	body, err := json.Marshal(map[string]any{"requirements": requirements, "updates": updates})
	return prepared{
		path: client.TablePath(o.Warehouse, o.Namespace, o.Table), body: body, key: newKey(), back: to(placeTable, o),
	}, err
}

// newKey returns a new Idempotency-Key.
func newKey() string { return uuid.NewString() }

// rollbackPage asks before a table goes back to an earlier version.
type rollbackPage struct {
	tableHead
	to     string
	pinned string // the same version by a name that stays; of a rollback of all parts
	ref    string
	all    bool
	plan   client.RolledBack
	commit prepared
	now    *document
}

// loadRollback prepares a rollback. The API plans it without a change.
func loadRollback(ctx context.Context, v *visit) (*page, error) {
	head, err := loadTableHead(ctx, v)
	if err != nil {
		return nil, err
	}
	model := rollbackPage{tableHead: head, to: v.text("to"), ref: v.text("ref"), all: v.query.Has("all")}
	asked := client.RollbackRequest{To: model.to, Ref: model.ref, Any: v.query.Has("any"), DryRun: true}
	if model.all {
		asked.Parts = []string{client.PartAll}
	}
	request := client.Request{
		Method: http.MethodPost, Path: "/rollback", Query: head.object.Query(), Body: asked, Reads: true,
	}
	if err := v.api.Do(ctx, request, &model.plan); err != nil {
		return nil, err
	}
	if model.all {
		model.pinned = pinned(ctx, v, head.object, model.to)
	}
	if model.now, err = loadDocument(ctx, v, head.object, "now"); err != nil {
		return nil, err
	}
	if model.commit, err = commitOf(head.object, model.plan.Requirements, model.plan.Updates); err != nil {
		return nil, err
	}
	return head.page(placeHistory, model.node()), nil
}

// pinned returns the name of the metadata file of a version, which the version keeps after further
// commits. It returns the version if it has no such file, as the id of a snapshot.
func pinned(ctx context.Context, v *visit, o client.Object, version string) string {
	query, location := o.Query(), ""
	query.Set("version", version)
	asked := client.Request{Method: http.MethodGet, Path: "/metadata", Query: query, Tag: &location}
	if err := v.api.Do(ctx, asked, &json.RawMessage{}); err != nil {
		return version
	}
	return cmp.Or(versionName(strings.Trim(location, `"`)), version)
}

// tableUpdate has the members of an update that pages put into words.
type tableUpdate struct {
	Action   string `json:"action"`
	Ref      string `json:"ref-name"`
	Snapshot int64  `json:"snapshot-id"`
}

// node returns the page.
func (m rollbackPage) node() g.Node {
	var updates []tableUpdate
	if err := json.Unmarshal(m.plan.Updates, &updates); err != nil || len(updates) == 0 {
		return empty("The table is in that state already: there is nothing to roll back.", shellLine{})
	}
	made := m.commit
	made.title = "Roll back"
	for _, each := range updates {
		made.says = append(made.says, m.says(each))
	}
	made.says = append(made.says, g.Text("No file is deleted. A rollback is undone by another rollback."))
	made.warnings = m.plan.Warnings
	made.button = "Roll back " + m.object.Table
	made.back = to(placeHistory, m.object)
	// The version in the address may be relative, such as now~3. The command names what the request
	// does.
	words := []string{"moorage", "rollback", nameOf(m.object)}
	if m.all {
		words = append(words, m.pinned, "--all")
	} else {
		words = append(words, m.goal(updates))
		made.option = h.P(link(to(placeRollback, m.object, "to", m.to, "ref", m.ref, "all", "yes"),
			g.Text("Roll back all parts: also the schema, the partitioning, the sort order and the properties")))
	}
	if m.ref != "" {
		words = append(words, "--ref", m.ref)
	}
	made.command = command(words...)
	return made.node()
}

// goal returns the version of a rollback of one ref: the snapshot that the ref goes to.
func (m rollbackPage) goal(updates []tableUpdate) string {
	for _, each := range updates {
		if each.Action == "set-snapshot-ref" {
			return strconv.FormatInt(each.Snapshot, 10)
		}
	}
	return m.to
}

// says returns what an update does, in words.
func (m rollbackPage) says(each tableUpdate) g.Node {
	switch each.Action {
	case "set-snapshot-ref":
		is, was := m.now.snapshot(each.Snapshot), m.now.snapshot(m.now.Refs[each.Ref].Snapshot)
		if is == nil || was == nil {
			return g.Group{h.Strong(name(each.Ref)), g.Text(" goes to snapshot "),
				mono(strconv.FormatInt(each.Snapshot, 10))}
		}
		return g.Group{
			h.Strong(name(each.Ref)), g.Text(" goes from snapshot "), shortID(was.ID), g.Text(" of "),
			agoAt(m.tableHead.now, was.at()),
			g.Text(" back to "), shortID(is.ID), g.Text(" of "), agoAt(m.tableHead.now, is.at()), g.Text(": "),
			g.Text("rows "), number(was.number("total-records")), g.Text(" → "), number(is.number("total-records")),
			g.Text(", files "), number(was.number("total-data-files")), g.Text(" → "),
			number(is.number("total-data-files")), g.Text("."),
		}
	case "remove-snapshot-ref":
		return g.Group{h.Strong(name(each.Ref)), g.Text(" is removed: the table was empty.")}
	}
	return g.Group{g.Text("It also does: "), mono(each.Action)}
}

// changeTheme keeps the visitor's choice between light and dark.
func changeTheme(_ context.Context, v *visit) (target, error) {
	chosen := v.form.Get("theme")
	if isTheme(chosen) {
		v.cookies = append(v.cookies, &http.Cookie{
			Name: themeCookie, Value: chosen, Path: Root, MaxAge: themeSeconds, SameSite: http.SameSiteLaxMode,
			HttpOnly: true,
		})
	}
	return back(v.form.Get("back")), nil
}

// themeSeconds is how long a browser keeps the choice of a theme: a year.
const themeSeconds = 365 * 24 * 60 * 60
