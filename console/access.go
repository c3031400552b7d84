package console

import (
	"cmp"
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"

	"moorage/internal/term"
	"moorage/management/client"
)

// grantsPage shows which callers may do what on an object.
type grantsPage struct {
	head    *tableHead // nil for other objects
	now     time.Time
	object  client.Object
	isOff   bool // access control is off: every caller may do everything
	onPath  []client.ObjectGrants
	explain *client.Explanation // the answer to the question; nil if none was asked
	asked   question
	failure string // why there is no answer
	limits  *restrictions
}

// question is a question of a visitor about the access of a principal.
type question struct{ caller, privilege string }

// loadGrants loads who may do what on an object, and the answer to a question about it.
func loadGrants(ctx context.Context, v *visit) (*page, error) {
	model := grantsPage{now: v.now, object: v.object(), asked: question{v.text("caller"), v.text("privilege")}}
	if model.object.Table != "" {
		head, err := loadTableHead(ctx, v)
		if err != nil {
			return nil, err
		}
		model.head = &head
	}
	var state client.Access
	if err := v.get(ctx, "/access", nil, &state); optional(err) != nil {
		return nil, err
	} else if err == nil {
		model.isOff = !state.On
	}
	limits, err := loadRestrictions(ctx, v, model.object, model.asked.caller)
	if err != nil {
		return nil, err
	}
	model.limits, limits.access = limits, state
	if model.isOff {
		return model.page(), nil
	}
	for _, each := range pathOf(model.object) {
		var listed client.GrantsPage
		err := v.get(ctx, "/grants", each.Query(), &listed)
		if optional(err) != nil {
			return nil, err
		}
		model.onPath = append(model.onPath, listed.Grants...)
	}
	if model.asked.privilege != "" {
		asked := client.Question{Object: model.object, Privileges: []string{model.asked.privilege}}
		if model.asked.caller != "" {
			asked.Caller = &client.Subject{Name: model.asked.caller}
		}
		var answer client.Explanation
		err := v.api.Do(ctx, client.Request{Method: http.MethodPost, Path: "/access/explain", Body: asked,
			Reads: true}, &answer)
		if err != nil && statusOf(err) == 0 {
			return nil, err
		}
		if err != nil {
			model.failure = err.Error()
		} else {
			model.explain = &answer
		}
	}
	return model.page(), nil
}

// lacks returns the privilege that the visitor needs on an object and lacks, in words. It is empty
// if the visitor has it, or if that is not known.
func (v *visit) lacks(ctx context.Context, o client.Object, privilege string) string {
	if !v.authenticates {
		return ""
	}
	asked := client.Request{
		Method: http.MethodPost, Path: "/access/check", Reads: true,
		Body: map[string]any{"questions": []client.Question{{Object: o, Privileges: []string{privilege}}}},
	}
	var answer client.Checked
	if err := v.api.Do(ctx, asked, &answer); err != nil || len(answer.Allowed) != 1 || answer.Allowed[0] {
		return "" // the API decides when the change is sent
	}
	return privilege + " on " + o.String()
}

// pathOf returns an object and what contains it, up to the server.
func pathOf(o client.Object) (path []client.Object) {
	if o.Table+o.View != "" {
		path = append(path, o)
		o.Table, o.View = "", ""
	}
	for n := len(o.Namespace); n > 0; n-- {
		path = append(path, client.Object{Warehouse: o.Warehouse, Namespace: o.Namespace[:n]})
	}
	if o.Warehouse != "" {
		path = append(path, client.Object{Warehouse: o.Warehouse})
	}
	return append(path, client.Object{})
}

func (m grantsPage) page() *page {
	if m.head != nil {
		return m.head.page(placeGrants, m.node())
	}
	called, crumbs := m.object.String(), crumbsOf(m.object)
	if m.object.IsServer() {
		called = "the whole server"
		crumbs = []crumb{{name: "Access", to: to(placePrincipals, client.Object{})}, {name: called}}
	}
	return &page{
		title: "Access", section: placePrincipals, crumbs: crumbs,
		body: g.Group{h.Div(h.Class("title"), h.H1(g.Text("Access to "), name(called))), m.node()},
	}
}

// node returns the page.
func (m grantsPage) node() g.Node {
	if m.isOff {
		return g.Group{accessOff(), m.limits.node(m)}
	}
	return g.Group{m.answer(), m.grants(), m.question(), m.limits.node(m)}
}

// accessOff returns the warning that access control is off, with what turns it on.
func accessOff() g.Node {
	return g.Group{
		h.P(h.Class("warning"), g.Text("Access control is off: every caller may do everything.")),
		panel("Switch it on", h.P(h.Class("faint"), g.Text("It cannot be switched off again.")),
			h.Ol(h.Class("says steps"),
				h.Li(g.Text("Make an administrator, and keep the key: "),
					copied(command("moorage", "key", "create", "NAME", "--admin").text)),
				h.Li(g.Text("Start the servers with "), mono("--keys"), g.Text(", "), mono("--issuer"), g.Text(" or "),
					mono("--tls-client-ca"), g.Text(", so that callers authenticate.")),
				h.Li(g.Text("Switch it on: "), copied(command("moorage", "access", "enable").text)))),
	}
}

// privileges are the privileges that a question can be about.
var privileges = []string{
	"describe", "read", "write", "create", "alter", "drop", "purge", "locate", "delegate", "maintain", "manage",
	"audit", "operate",
}

// question returns the form of a question.
func (m grantsPage) question() g.Node {
	return panel("Explain a decision", h.Div(h.Class("tools"), ask(to(placeGrants, m.object),
		h.Label(g.Text("May "), h.Input(h.Name("caller"), h.Value(term.Clean(m.asked.caller)),
			h.Placeholder("you, or corp:ann"))),
		h.Label(g.Text("do "), h.Select(h.Name("privilege"), h.Aria("label", "Privilege"), g.Map(privileges,
			func(each string) g.Node {
				return h.Option(h.Value(each), g.If(each == m.asked.privilege, h.Selected()), g.Text(each))
			})), g.Text(" here?")),
		h.Button(g.Text("Explain")))))
}

// answer returns the reasons of a decision.
func (m grantsPage) answer() g.Node {
	if m.failure != "" {
		return h.P(h.Class("warning"), text(m.failure))
	}
	e := m.explain
	if e == nil {
		return nil
	}
	look := map[string]string{"allow": "good", "forbid": "bad", "hidden": "bad"}[e.Decision]
	who := m.asked.caller
	if who == "" {
		who = "You"
	}
	list := grid{label: "Reasons", plain: true,
		columns: []column{{"On", ""}, {"Owner", ""}, {"Grants that count", "wide"}}}
	for _, step := range e.Steps {
		grants := g.Map(step.Grants, func(c client.Counted) g.Node {
			via := g.Node(nil)
			if len(c.Via) > 0 {
				via = h.Span(h.Class("faint"), text(" through "+strings.Join(c.Via, ", ")))
			}
			return h.Div(mono(strings.Join(c.Privileges, ", ")), g.Text(" to "), name(c.Grantee), via)
		})
		if len(step.Grants) == 0 {
			grants = g.Group{dash()}
		}
		list.rows = append(list.rows, []cell{
			plain(text(step.Kind + " " + step.Name)),
			plain(g.Group{caller(step.Owner), g.If(step.Owns, g.Group{g.Text(" "), badge("good", "owns it")})}),
			plain(grants),
		})
	}
	may := " may not "
	if e.Decision == "allow" {
		may = " may "
	}
	return panel("Answer",
		h.P(badge(look, e.Decision), g.Text(" "), name(who), text(may+m.asked.privilege+" "+m.object.String()),
			g.If(len(e.Missing) > 0, h.Span(text("; missing: "+strings.Join(e.Missing, ", "))))),
		g.If(len(e.Missing) > 0 && len(e.Grantors) > 0,
			h.P(h.Class("faint"), text("These can grant it: "+strings.Join(e.Grantors, ", ")))),
		list.node(),
		g.If(len(e.Missing) > 0 && m.asked.caller != "", h.P(link(to(placeGrant, m.object, "change", client.ChangeGrant,
			"grantee", m.asked.caller, "privileges", strings.Join(e.Missing, ",")), h.Class("button"),
			text("Grant "+strings.Join(e.Missing, ", ")+" …")))))
}

// grants returns the grants on the object and on what contains it.
func (m grantsPage) grants() g.Node {
	list := grid{label: "Grants", columns: []column{
		{"On", ""}, {"Grantee", ""}, {"Privileges", "wide"}, {"By", ""}, {"Since", ""}, {"", "next"},
	}}
	for _, on := range m.onPath {
		if on.Owner != "" {
			list.rows = append(list.rows, []cell{
				plain(text(on.Object.String())), plain(name(on.Owner)), plain(badge("good", "owner")), plain(dash()),
				plain(dash()), plain(nil),
			})
		}
		for _, each := range on.Grants {
			revoke := g.Node(nil)
			if isSame(on.Object, m.object) {
				revoke = link(to(placeGrant, m.object, "change", client.ChangeRevoke, "grantee", each.Grantee,
					"privileges", strings.Join(each.Privileges, ",")), g.Text("revoke …"))
			}
			list.rows = append(list.rows, []cell{
				plain(text(on.Object.String())), plain(name(each.Grantee)),
				plain(mono(strings.Join(each.Privileges, ", "))),
				plain(caller(each.By)), timed(m.now, &each.At), plain(revoke),
			})
		}
	}
	form := h.Div(h.Class("tools"), ask(to(placeGrant, m.object, "change", client.ChangeGrant),
		h.Label(g.Text("Grant "), h.Select(h.Name("privileges"), g.Map(privileges, func(each string) g.Node {
			return h.Option(h.Value(each), g.Text(each))
		}))),
		h.Label(g.Text("to "), h.Input(h.Name("grantee"), h.Required(), h.Placeholder("corp:ann or a role"))),
		h.Button(g.Text("Grant …"))))
	if len(list.rows) == 0 {
		words := append([]string{"moorage", "grant", "read", "on"}, objectWords(m.object)...)
		return panel("Grants", empty("No grant that you may see affects this object.",
			command(append(words, "to", "corp:ann")...)), form)
	}
	title := "Grants here and above"
	if m.object.IsServer() {
		title = "Grants"
	}
	return panel(title, list.node(), form)
}

// objectWords returns an object as the commands for access and maintenance take it: its kind and
// its name.
func objectWords(o client.Object) []string { return strings.SplitN(o.String(), " ", 2) }

// isSame reports whether two objects are the same.
func isSame(a, b client.Object) bool {
	return a.Warehouse == b.Warehouse && slices.Equal(a.Namespace,
		b.Namespace) && a.Table == b.Table && a.View == b.View
}

// loadGrant prepares a grant, or the end of one.
func loadGrant(ctx context.Context, v *visit) (*page, error) {
	o := v.object()
	change, grantee := v.text("change"), v.text("grantee")
	asked := strings.Split(v.text("privileges"), ",")
	if grantee == "" || change != client.ChangeGrant && change != client.ChangeRevoke {
		return nil, &client.Error{Code: http.StatusBadRequest, Message: "A grant has a grantee and privileges."}
	}
	body, err := json.Marshal(client.GrantChanges{Changes: []client.GrantChange{{
		Change: change, Object: o, Grantee: grantee, Privileges: asked,
	}}})
	if err != nil {
		return nil, err
	}
	words := map[string]string{client.ChangeGrant: "can", client.ChangeRevoke: "can no longer, by this grant,"}[change]
	made := prepared{
		title: strings.ToUpper(change[:1]) + change[1:] + " privileges", path: client.RootManagement + "/grants",
		body:  body,
		needs: v.lacks(ctx, o, "manage"), key: newKey(), back: to(placeGrants, o),
		button: strings.ToUpper(change[:1]) + change[1:], isFinal: change == client.ChangeRevoke,
		says: []g.Node{g.Group{name(grantee), g.Text(" " + words + " "), h.Strong(text(strings.Join(asked, ", "))),
			g.Text(" on "), text(o.String()),
			g.Text(", and in everything in it.")}},
	}
	return &page{title: made.title, section: placePrincipals, crumbs: crumbsOf(o), body: made.node()}, nil
}

// principalsPage is the principals and the roles of the server.
type principalsPage struct {
	now        time.Time
	isOff      bool
	principals client.PrincipalsPage
	roles      client.RolesPage
	denied     *client.NodeDenials // nil if the visitor may not see them
	visitor    string              // name of the visitor; empty without authentication
	needs      string              // what the visitor lacks to see and to change principals; may be empty
}

// loadPrincipals loads the principals and roles.
func loadPrincipals(ctx context.Context, v *visit) (*page, error) {
	model := principalsPage{now: v.now, visitor: v.name}
	var state client.Access
	if err := v.get(ctx, "/access", nil, &state); optional(err) != nil {
		return nil, err
	} else if err == nil && !state.On {
		model.isOff = true
	} else {
		query := url.Values{"pageSize": {"200"}, "pageToken": {v.query.Get("page")}}
		err := v.get(ctx, "/principals", query, &model.principals)
		if statusOf(err) == http.StatusForbidden {
			model.needs = cmp.Or(v.lacks(ctx, client.Object{}, "admin"), "admin on server")
		} else if err != nil {
			return nil, err
		}
		if err := v.get(ctx, "/roles", url.Values{"pageSize": {"200"}}, &model.roles); optional(err) != nil {
			return nil, err
		}
		if model.denied, err = loadDenials(ctx, v); err != nil {
			return nil, err
		}
	}
	return &page{title: "Access", section: placePrincipals, body: model.node()}, nil
}

// node returns the page.
func (m principalsPage) node() g.Node {
	title := h.Div(h.Class("title"), h.H1(g.Text("Access")))
	if m.isOff {
		return g.Group{title, accessOff()}
	}
	principals := grid{label: "Principals", columns: []column{
		{"Name", ""}, {"Description", "wide"}, {"Keys", "num"}, {"Next key ends", ""}, {"Created", ""},
	}}
	for _, p := range m.principals.Principals {
		keys := int64(len(p.Keys))
		principals.rows = append(principals.rows, []cell{
			plain(g.Group{principalLink(p.Name), g.If(p.Disabled, g.Group{g.Text(" "), badge("bad", "disabled")})}),
			plain(text(p.Description)), numeric(number(&keys), &keys),
			timed(m.now, firstEnd(p.Keys)), timed(m.now, &p.Created),
		})
	}
	roles := grid{label: "Roles", columns: []column{{"Name", ""}, {"Description", ""}, {"Members", "wide"}}}
	for _, r := range m.roles.Roles {
		roles.rows = append(roles.rows,
			[]cell{plain(name(r.Name)), plain(text(r.Description)), plain(text(strings.Join(r.Members, ", ")))})
	}
	more := g.Node(nil)
	if next := m.principals.Next(); next != "" {
		more = h.Div(h.Class("pager"),
			link(to(placePrincipals, client.Object{}, "page", next), h.Rel("next"), g.Text("Next page")))
	}
	return g.Group{
		title,
		h.P(h.Class("lead"), link(to(placeGrants, client.Object{}), g.Text("Grants on the whole server"))),
		ownKeys(m.visitor),
		g.If(m.needs != "", panel("Principals",
			h.P(h.Class("faint"), text("To see and change them you need "+m.needs+".")),
			keyForm("", m.needs))),
		g.Iff(m.needs == "", func() g.Node {
			return panel("Principals", filled(principals, "No principal has a record yet.",
				command("moorage", "key", "create", "etl")), more, keyForm("", ""))
		}),
		panel("Roles", filled(roles, "There are no roles.",
			command("moorage", "role", "create", "analysts"))),
		denialPanel(m.now, m.denied),
	}
}

// filled returns a table, or the text of an empty one.
func filled(list grid, sentence string, fill shellLine) g.Node {
	if len(list.rows) == 0 {
		return empty(sentence, fill)
	}
	return list.node()
}
